/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* States of processes: see proc.h. */
#include "util/proc.h"

#include <stdio.h>
#include <string.h>

#include "util/line.h"

char util_proc_state(int pid)
{
	char path[32], line[256];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (pid <= 0 || !util_line_read(path, line, sizeof(line)))
		return '\0';
	end = strrchr(line, ')'); /* the name in front may have any character */
	return end && end[1] == ' ' ? end[2] : '\0';
}
