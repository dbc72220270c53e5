/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The report: its verdict, and findings that are dropped. */
#include "unit/info/info_tree.h"

Test(info, the_worst_finding_is_the_verdict_and_notes_do_not_count)
{
	struct info_report report = { 0 };

	cr_expect_eq(info_report_verdict(&report), INFO_GOOD);
	info_add(&report, INFO_NOTE, "topic", "a", "%d", 1);
	cr_expect_eq(info_report_verdict(&report), INFO_GOOD);
	info_add(&report, INFO_BROKEN, "topic", "b", "%d", 2);
	info_add(&report, INFO_SLOW, "topic", "c", "%d", 3);
	cr_expect_eq(info_report_verdict(&report), INFO_BROKEN);
	info_drop(&report, 1);
	cr_expect_eq(report.cnt, 1);
	cr_expect_eq(info_report_verdict(&report), INFO_GOOD);
	info_report_fini(&report);
}

Test(info, a_remedy_belongs_to_the_last_finding)
{
	struct info_report report = { 0 };

	info_add(&report, INFO_SLOW, "topic", "a", "text");
	info_add(&report, INFO_SLOW, "topic", "b", "text");
	info_mend(&report, "first");
	info_mend(&report, "do %s", "this");
	info_expect(&report, INFO_SLOW, "a", NULL);
	info_expect(&report, INFO_SLOW, "b", "do this");
	cr_expect_null(info_report_find(&report, "c"));
	info_report_fini(&report);
}
