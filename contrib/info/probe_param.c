/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of variables that no parameter has, and the job key.
 *
 * The list of names is that of the provider (util/param_table.c). Values are checked by the
 * provider itself, whose warnings probe_offer.c reports. The job key is never printed.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info/info.h"
#include "info/info_probes.h"
#include "util/param.h"

#define TOPIC   "settings"
#define PREFIX  "FI_COPYRPC_"
#define KEY_MIN 16u

static void param_check(struct info_report *report, const char *name)
{
	size_t len = strcspn(name, "=");
	const char *near;

	if (util_param_is_known(name, len, &near))
		return;
	info_add(report, INFO_SLOW, TOPIC, "unknown-parameter",
		 PREFIX "%.*s is not a parameter and has no effect", (int)len, name);
	if (near)
		info_mend(report, "unset " PREFIX "%.*s; export " PREFIX "%s=...", (int)len, name,
			  near);
	else
		info_mend(report, "unset " PREFIX "%.*s (fi_info -e lists the parameters)",
			  (int)len, name);
}

static void param_check_key(struct info_report *report)
{
	const char *key = getenv(PREFIX "JOB_KEY");

	if (key && strlen(key) >= KEY_MIN) {
		info_add(report, INFO_GOOD, TOPIC, "job-key",
			 PREFIX "JOB_KEY is set: processes without it are refused");
	} else if (key && *key) {
		info_add(report, INFO_NOTE, TOPIC, "job-key-short",
			 PREFIX "JOB_KEY has %zu characters, which can be guessed", strlen(key));
		info_mend(report, "unset " PREFIX "JOB_KEY; eval \"$(copyrpc_env)\"");
	} else {
		info_add(report, INFO_NOTE, TOPIC, "job-key-none",
			 PREFIX
			 "JOB_KEY is not set: within a host the same user is enough, and any "
			 "process that reaches the addresses of a job on other hosts can connect");
		info_mend(report, "eval \"$(copyrpc_env)\"");
	}
}

void info_probe_param(struct info *info)
{
	for (char **env = environ; env && *env; env++)
		if (!strncmp(*env, PREFIX, strlen(PREFIX)))
			param_check(&info->report, *env + strlen(PREFIX));
	param_check_key(&info->report);
}
