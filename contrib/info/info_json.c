/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The report for programs: one JSON object, whose fields copyrpc_info(1) lists.
 *
 * Written by hand, because a report needs strings, numbers and lists and no parser, and a library
 * would be one more package for every user.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "info/info.h"
#include "info/info_plan.h"
#include "info/info_print.h"

#define INFO_JSON_SCHEMA "copyrpc_info/1"

/* Returns the length of the UTF-8 character at `s`, 0 if there is none. */
static size_t info_json_utf8(const unsigned char *s)
{
	static const struct {
		unsigned char mask, bits, low;
		size_t len;
	} forms[] = { { 0xE0, 0xC0, 0xC2, 2 }, { 0xF0, 0xE0, 0xE0, 3 }, { 0xF8, 0xF0, 0xF0, 4 } };

	if (*s < 0x80)
		return 1;
	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		size_t i = 1;

		if ((*s & forms[f].mask) != forms[f].bits || *s < forms[f].low || *s > 0xF4)
			continue;
		while (i < forms[f].len && (s[i] & 0xC0) == 0x80)
			i++;
		return i == forms[f].len ? i : 0;
	}
	return 0;
}

void info_json_string(FILE *out, const char *text)
{
	const unsigned char *s = (const void *)text;

	fputc('"', out);
	while (*s) {
		size_t len = info_json_utf8(s);

		if (!len)
			fputs("\\ufffd", out);
		else if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7F)
			fprintf(out, "\\u%04x", *s);
		else
			fprintf(out, "%.*s", (int)len, (const char *)s);
		s += len ? len : 1;
	}
	fputc('"', out);
}

static void info_json_field(FILE *out, const char *name, const char *text, const char *behind)
{
	fprintf(out, "\"%s\": ", name);
	if (text)
		info_json_string(out, text);
	else
		fputs("null", out);
	fputs(behind, out);
}

static void info_json_finding(FILE *out, const struct info_finding *it)
{
	fputs("    {", out);
	info_json_field(out, "id", it->id, ", ");
	info_json_field(out, "topic", it->topic, ", ");
	info_json_field(out, "verdict", info_verdict_name(it->verdict), ",\n     ");
	info_json_field(out, "text", it->text, ",\n     ");
	info_json_field(out, "mend", it->mend, "}");
}

static void info_json_plan(FILE *out, const struct info_plan *plan)
{
	fputs(",\n  \"plan\": {", out);
	for (size_t i = 0; i < info_plan_row_cnt; i++)
		fprintf(out, "%s\"%s\": %llu", i ? ", " : "", info_plan_rows[i].id,
			(unsigned long long)info_plan_value(plan, &info_plan_rows[i]));
	fputs("}", out);
}

void info_json_print(FILE *out, const struct info_report *report, const struct info_plan *plan)
{
	fputs("{\n  ", out);
	info_json_field(out, "schema", INFO_JSON_SCHEMA, ",\n  ");
	info_json_field(out, "version", PACKAGE_VERSION, ",\n  ");
	info_json_field(out, "verdict", info_verdict_name(info_report_verdict(report)), ",\n  ");
	fputs("\"findings\": [\n", out);
	for (size_t i = 0; i < report->cnt; i++) {
		info_json_finding(out, &report->list[i]);
		fputs(i + 1 < report->cnt ? ",\n" : "\n", out);
	}
	fputs("  ]", out);
	if (plan)
		info_json_plan(out, plan);
	fputs("\n}\n", out);
}
