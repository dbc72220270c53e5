/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Warnings become findings once. */
#include "info/info_log.h"

#include "unit/info/info_tree.h"

Test(info_log, each_warning_is_one_finding)
{
	struct info_report report = { 0 };
	const char *log =
		"l:1:2::copyrpc:fabric:f():3<warn> a\n"
		"l:1:2::copyrpc:fabric:f():3<warn> b\n"
		"l:1:2::copyrpc:fabric:f():3<warn> a\n"
		"l:1:2::copyrpc:fabric:f():3<warn> FI_COPYRPC_X is not a parameter and has\n"
		"l:1:2::copyrpc:fabric:f():3<warn> IFACE=x permits no address of this host\n";

	info_log_add(&report, NULL);
	info_log_add(&report, log);
	info_log_add(&report, log);
	cr_assert_eq(report.cnt, 2);
	cr_expect_str_eq(report.list[0].text, "a");
	cr_expect_str_eq(report.list[1].text, "b");
	info_report_fini(&report);
}

Test(info_log, a_value_that_is_refused_is_unset)
{
	struct info_report report = { 0 };

	info_log_add(&report,
		     "l:1:2::copyrpc:fabric:f():3<warn> FI_COPYRPC_RAILS=x is not a number\n"
		     "l:1:2::copyrpc:fabric:f():3<warn> FI_COPYRPC_RAILS is 2\n"
		     "l:1:2::copyrpc:fabric:f():3<warn> PATH=x is not a number\n");
	cr_assert_eq(report.cnt, 3);
	cr_expect_str_eq(report.list[0].mend,
			 "unset FI_COPYRPC_RAILS (fi_copyrpc(7) has its values)");
	cr_expect_null(report.list[1].mend);
	cr_expect_null(report.list[2].mend);
	info_report_fini(&report);
}

Test(info_log, a_child_logs_warnings_whatever_the_user_set)
{
	setenv("FI_LOG_LEVEL", "debug", 1);
	setenv("FI_LOG_SUBSYS", "av", 1);
	setenv("FI_LOG_PROV", "tcp", 1);
	info_log_warnings_on();
	cr_expect_str_eq(getenv("FI_LOG_LEVEL"), "warn");
	cr_expect_str_eq(getenv("FI_LOG_PROV"), "copyrpc");
	cr_expect_null(getenv("FI_LOG_SUBSYS"));
}
