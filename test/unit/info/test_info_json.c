/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * JSON: strings of any bytes, and the form of a report. test/integ/info/info-bites parses reports.
 */
#include "info/info_plan.h"
#include "info/info_print.h"

#include "unit/info/info_tree.h"

static char *json_of(const char *text)
{
	char *got = NULL;
	size_t len;
	FILE *out = open_memstream(&got, &len);

	info_json_string(out, text);
	fclose(out);
	return got;
}

Test(info_json, strings_are_escaped)
{
	static const char *const pairs[][2] = {
		{ "", "\"\"" },
		{ "a \"b\" \\c", "\"a \\\"b\\\" \\\\c\"" },
		{ "line\n\ttab\x7f\x01", "\"line\\u000a\\u0009tab\\u007f\\u0001\"" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		  "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ "\xff\x80z", "\"\\ufffd\\ufffdz\"" },
		{ "\xc3", "\"\\ufffd\"" },
		{ "\xe2\x82", "\"\\ufffd\\ufffd\"" },
		{ "\xc0\x80", "\"\\ufffd\\ufffd\"" },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char *got = json_of(pairs[i][0]);

		cr_expect_str_eq(got, pairs[i][1]);
		free(got);
	}
}

Test(info_json, a_report_has_the_documented_fields)
{
	struct info_report report = { 0 };
	struct info_plan plan = { .ranks = 12, .unserved = 3 };
	char *got = NULL;
	size_t len;
	FILE *out = open_memstream(&got, &len);

	info_add(&report, INFO_SLOW, "memory", "some-id", "why");
	info_mend(&report, "how");
	info_add(&report, INFO_GOOD, "limits", "other-id", "fine");
	info_json_print(out, &report, &plan);
	fclose(out);
	cr_expect(strstr(got, "\"schema\": \"copyrpc_info/1\""));
	cr_expect(strstr(got, "\"verdict\": \"slow\",\n  \"findings\""));
	cr_expect(strstr(got,
			 "{\"id\": \"some-id\", \"topic\": \"memory\", \"verdict\": \"slow\",\n"
			 "     \"text\": \"why\",\n     \"mend\": \"how\"},"));
	cr_expect(strstr(got, "\"mend\": null}\n"));
	cr_expect(strstr(got, "\"plan\": {\"ranks\": 12, "));
	cr_expect(strstr(got, "\"unserved\": 3}"));
	free(got);
	info_report_fini(&report);
}
