/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sums of the process are known before the page, and follow each change. (util/held.h) */
#include "util/held.h"

#include <criterion/criterion.h>

#include "util/pool.h"
#include "util/stats.h"

static const struct copyrpc_stats_process *shown(void)
{
	struct copyrpc_stats_page *page = util_stats_make_page();

	cr_assert_not_null(page);
	return util_held_row(page);
}

Test(util_held, sums_make_no_page_and_are_in_a_later_one)
{
	util_held_registered(4096);
	util_held_registered(100);
	util_held_deregistered(4096);
	util_held_refused();
	util_held_add(UTIL_HELD_SLOTS, 1000);
	util_held_add(UTIL_HELD_SLOTS, -300);
	cr_assert_null(util_stats_page());
	cr_expect_eq(shown()->row.state, COPYRPC_STATS_LIVE);
	cr_expect_eq(shown()->registered, 1);
	cr_expect_eq(shown()->pinned, 100);
	cr_expect_eq(shown()->registrations, 2);
	cr_expect_eq(shown()->registration_errors, 1);
	cr_expect_eq(shown()->slots, 700);
}

Test(util_held, changes_are_shown_at_once)
{
	const struct copyrpc_stats_process *row = shown();
	struct util_pool pool;

	cr_expect_eq(row->pools, 0);
	util_pool_init(&pool, 64, 16, 0);
	cr_assert_not_null(util_pool_alloc(&pool));
	cr_expect_eq(row->pools, 17 * 64, "a chunk and its line");
	for (int i = 0; i < 16; i++)
		cr_assert_not_null(util_pool_alloc(&pool));
	cr_expect_eq(row->pools, 2 * 17 * 64);
	util_pool_fini(&pool);
	cr_expect_eq(row->pools, 0);
	util_held_registered(1);
	util_held_deregistered(1);
	cr_expect_eq(row->pinned, 0);
	cr_expect_eq(row->registered, 0);
	cr_expect_eq(row->registrations, 1);
}

Test(util_held, no_object_takes_the_row_of_the_process)
{
	cr_expect_null(util_stats_get(COPYRPC_STATS_PROCESS));
	cr_expect_eq(shown()->row.state, COPYRPC_STATS_LIVE);
}
