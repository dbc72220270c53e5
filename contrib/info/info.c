/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The report of copyrpc_info: see info.h. */
#include "info/info.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void info_no_memory(void)
{
	fputs("copyrpc_info: out of memory\n", stderr);
	exit(3);
}

static char *info_vprint(const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		info_no_memory();
	return text;
}

char *info_print(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = info_vprint(format, args);
	va_end(args);
	return text;
}

void info_add(struct info_report *report, enum info_verdict verdict, const char *topic,
	      const char *id, const char *format, ...)
{
	struct info_finding *list = realloc(report->list, (report->cnt + 1) * sizeof(*list));
	va_list args;

	if (!list)
		info_no_memory();
	report->list = list;
	va_start(args, format);
	list[report->cnt++] = (struct info_finding){
		.verdict = verdict, .topic = topic, .id = id, .text = info_vprint(format, args)
	};
	va_end(args);
}

void info_mend(struct info_report *report, const char *format, ...)
{
	struct info_finding *last = &report->list[report->cnt - 1];
	va_list args;

	free(last->mend);
	va_start(args, format);
	last->mend = info_vprint(format, args);
	va_end(args);
}

enum info_verdict info_report_verdict(const struct info_report *report)
{
	enum info_verdict worst = INFO_GOOD;

	for (size_t i = 0; i < report->cnt; i++)
		if (report->list[i].verdict > worst)
			worst = report->list[i].verdict;
	return worst;
}

const struct info_finding *info_report_find(const struct info_report *report, const char *id)
{
	for (size_t i = 0; i < report->cnt; i++)
		if (!strcmp(report->list[i].id, id))
			return &report->list[i];
	return NULL;
}

void info_drop(struct info_report *report, size_t cnt)
{
	while (report->cnt > cnt) {
		report->cnt--;
		free(report->list[report->cnt].text);
		free(report->list[report->cnt].mend);
	}
}

void info_report_fini(struct info_report *report)
{
	info_drop(report, 0);
	free(report->list);
	*report = (struct info_report){ 0 };
}

const char *info_verdict_name(enum info_verdict verdict)
{
	static const char *const names[] = { "note", "good", "slow", "broken" };

	return names[verdict];
}
