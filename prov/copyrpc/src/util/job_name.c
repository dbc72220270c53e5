/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements job_name.h. */
#include "util/job_name.h"

#include <stdio.h>

struct util_job_name util_job_peer(const struct util_job_name *stated, int32_t pid)
{
	struct util_job_name name = { .rank = -1 };

	if (stated)
		name = *stated;
	if (pid)
		name.pid = pid;
	return name;
}

char *util_job_text(const struct util_job_name *name, char text[UTIL_JOB_TEXT_LEN])
{
	const char *sep = *name->host && name->pid ? ", " : "";
	char pid[24] = "";

	if (name->pid)
		snprintf(pid, sizeof(pid), "pid %d", (int)name->pid);
	if (name->rank >= 0 && (*name->host || *pid))
		snprintf(text, UTIL_JOB_TEXT_LEN, "rank %d (%s%s%s)", (int)name->rank, name->host,
			 sep, pid);
	else if (name->rank >= 0)
		snprintf(text, UTIL_JOB_TEXT_LEN, "rank %d", (int)name->rank);
	else if (*name->host)
		snprintf(text, UTIL_JOB_TEXT_LEN, "%s on %s", *pid ? pid : "a process", name->host);
	else
		snprintf(text, UTIL_JOB_TEXT_LEN, "%s", pid);
	return text;
}
