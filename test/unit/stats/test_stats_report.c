/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of reports; what is written at the end of a job is in test/suite.d/54-stats. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stats/stats_report.h"

static char name[64];

static void setup(void)
{
	static const char *const launchers[] = {
		"OMPI_COMM_WORLD_RANK", "PMIX_RANK",      "PMI_RANK",    "MV2_COMM_WORLD_RANK",
		"PALS_RANKID",          "FLUX_TASK_RANK", "SLURM_PROCID"
	};

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
		unsetenv(launchers[i]);
}

TestSuite(stats_report, .init = setup);

Test(stats_report, conversions_are_replaced)
{
	char host[32] = "", want[64];

	gethostname(host, sizeof(host) - 1);
	cr_assert_eq(stats_report_name("plain", name, sizeof(name)), 0);
	cr_expect_str_eq(name, "plain");
	cr_assert_eq(stats_report_name("a%rb%%c", name, sizeof(name)), 0);
	cr_expect_str_eq(name, "a0b%c");
	setenv("PMIX_RANK", "17", 1);
	cr_assert_eq(stats_report_name("%r", name, sizeof(name)), 0);
	cr_expect_str_eq(name, "17");
	snprintf(want, sizeof(want), "%d", (int)getpid());
	cr_assert_eq(stats_report_name("%p", name, sizeof(name)), 0);
	cr_expect_str_eq(name, want);
	if (strlen(host) < sizeof(host) - 1) {
		cr_assert_eq(stats_report_name("%h", name, sizeof(name)), 0);
		cr_expect_str_eq(name, host);
	}
}

Test(stats_report, other_names_are_errors)
{
	cr_expect_eq(stats_report_name("", name, sizeof(name)), -EINVAL);
	cr_expect_eq(stats_report_name("%", name, sizeof(name)), -EINVAL);
	cr_expect_eq(stats_report_name("a%q", name, sizeof(name)), -EINVAL);
	cr_expect_eq(stats_report_name("%r%", name, sizeof(name)), -EINVAL);
	cr_expect_eq(stats_report_name("abcd", name, 5), 0);
	cr_expect_eq(stats_report_name("abcde", name, 5), -ENAMETOOLONG);
	cr_expect_eq(stats_report_name("abc%r%r", name, 5), -ENAMETOOLONG);
}
