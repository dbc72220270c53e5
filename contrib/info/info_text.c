/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The report for people: verdict, topic and text in columns, and below them the command that mends.
 *
 * Text is wrapped at 100 columns. Commands are not, so that they can be copied.
 */
#include <stdio.h>
#include <string.h>

#include "info/info.h"
#include "info/info_print.h"

#define INFO_TEXT_COLUMNS 100
#define INFO_TEXT_INDENT  18

/* Prints words from column INFO_TEXT_INDENT on. */
static void info_text_wrap(FILE *out, const char *text)
{
	int column = INFO_TEXT_INDENT;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (column > INFO_TEXT_INDENT && column + 1 + len > INFO_TEXT_COLUMNS) {
			fprintf(out, "\n%*s", INFO_TEXT_INDENT, "");
			column = INFO_TEXT_INDENT;
		} else if (column > INFO_TEXT_INDENT) {
			fputc(' ', out);
			column++;
		}
		fprintf(out, "%.*s", len, text);
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void info_text_finding(FILE *out, const struct info_finding *it)
{
	fprintf(out, "%-7s %-9s ", info_verdict_name(it->verdict), it->topic);
	info_text_wrap(out, it->text);
	if (it->mend)
		fprintf(out, "%*s-> %s\n", INFO_TEXT_INDENT, "", it->mend);
}

static size_t info_text_count(const struct info_report *report, enum info_verdict verdict)
{
	size_t cnt = 0;

	for (size_t i = 0; i < report->cnt; i++)
		cnt += report->list[i].verdict == verdict;
	return cnt;
}

void info_text_print(FILE *out, const struct info_report *report, bool quiet)
{
	for (size_t i = 0; i < report->cnt; i++)
		if (!quiet || report->list[i].verdict >= INFO_SLOW)
			info_text_finding(out, &report->list[i]);
	fprintf(out, "%s: %zu broken, %zu slow, %zu good\n",
		info_verdict_name(info_report_verdict(report)),
		info_text_count(report, INFO_BROKEN), info_text_count(report, INFO_SLOW),
		info_text_count(report, INFO_GOOD));
}
