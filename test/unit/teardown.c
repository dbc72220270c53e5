/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * In every unit program: an expectation that is not met counts wherever it stands. Criterion ends a
 * test before its .fini, and what fails there changes neither its result nor the exit status.
 */
#include <criterion/criterion.h>
#include <criterion/hooks.h>

static size_t unmet;

ReportHook(ASSERT)(struct criterion_assert_stats *stats)
{
	unmet += !stats->passed;
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
	if (unmet && !stats->tests_failed)
		stats->tests_failed = 1;
}
