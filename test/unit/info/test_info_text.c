/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The report for people: columns, wrapping, and what --quiet leaves. */
#include "info/info_print.h"

#include "unit/info/info_tree.h"

static char *text_of(const struct info_report *report, bool quiet)
{
	char *got = NULL;
	size_t len;
	FILE *out = open_memstream(&got, &len);

	info_text_print(out, report, quiet);
	fclose(out);
	return got;
}

Test(info_text, quiet_leaves_what_is_slow_or_broken)
{
	struct info_report report = { 0 };
	char *got;

	info_add(&report, INFO_GOOD, "limits", "a", "fine");
	info_add(&report, INFO_NOTE, "limits", "b", "so it is");
	info_add(&report, INFO_SLOW, "memory", "c", "two words");
	info_mend(&report, "do  this");
	got = text_of(&report, true);
	cr_expect_str_eq(got, "slow    memory    two words\n"
			      "                  -> do  this\n"
			      "slow: 0 broken, 1 slow, 1 good\n");
	free(got);
	got = text_of(&report, false);
	cr_expect(strstr(got, "good    limits    fine\nnote    limits    so it is\n") == got);
	free(got);
	info_report_fini(&report);
}

Test(info_text, lines_end_at_column_100_and_no_word_is_lost)
{
	struct info_report report = { 0 };
	char words[4000] = "", *got;
	size_t cnt = 0;

	for (int i = 0; i < 400; i++)
		sprintf(words + strlen(words), "%s%.*s", i ? " " : "", i % 9 + 1, "abcdefghi");
	info_add(&report, INFO_GOOD, "limits", "a", "%s", words);
	got = text_of(&report, false);
	for (char *line = strtok(got, "\n"); line; line = strtok(NULL, "\n")) {
		cr_expect_leq(strlen(line), 100);
		for (char *at = line + 18; strlen(line) > 18 && *at; at += strspn(at, " "))
			at += strcspn(at, " "), cnt++;
	}
	cr_expect_geq(cnt, 400);
	free(got);
	info_report_fini(&report);
}
