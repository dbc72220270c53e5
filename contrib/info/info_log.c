/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See info_log.h. */
#include "info/info_log.h"

#include <stdlib.h>
#include <string.h>

#include "info/info.h"
#include "info/info_filter.h"

#define PREFIX "FI_COPYRPC_"

void info_log_warnings_on(void)
{
	setenv("FI_LOG_LEVEL", "warn", 1);
	unsetenv("FI_LOG_SUBSYS");
	setenv("FI_LOG_PROV", "copyrpc", 1);
}

/* Returns whether another probe (probe_param.c, probe_net.c) or an earlier line has it. */
static bool info_log_is_known(const struct info_report *report, const char *text)
{
	if (strstr(text, "is not a parameter") || strstr(text, "permits no address of this host"))
		return true;
	for (size_t i = 0; i < report->cnt; i++)
		if (!strcmp(report->list[i].text, text))
			return true;
	return false;
}

/* Adds a finding. A warning that begins with a parameter's value is mended by unsetting that. */
static void info_log_finding(struct info_report *report, const char *text)
{
	size_t name = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

	info_add(report, INFO_SLOW, "provider", "provider-warning", "%s", text);
	if (!strncmp(text, PREFIX, strlen(PREFIX)) && text[name] == '=')
		info_mend(report, "unset %.*s (fi_copyrpc(7) has its values)", (int)name, text);
}

void info_log_add(struct info_report *report, const char *log)
{
	const char *line;
	size_t len;

	while (log && (line = info_log_warning(&log, &len))) {
		char *text = info_print("%.*s", (int)len, line);

		if (!info_log_is_known(report, text))
			info_log_finding(report, text);
		free(text);
	}
}
