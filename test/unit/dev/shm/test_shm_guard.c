/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Guard of the inbox: dev/shm/shm_guard.c. */
#include "dev/shm/shm_guard.h"

#include <criterion/criterion.h>

static void close_inbox(struct shm_guard *guard)
{
	for (uint32_t i = 0; i < SHM_GUARD_SURPLUS; i++) {
		cr_assert_eq(guard->closed, 0u);
		shm_guard_count(guard, true);
	}
	cr_assert_eq(guard->closed, SHM_GUARD_TICKS);
}

Test(shm_guard, surplus_posts_close_the_inbox_unless_owed_ones_balance_them)
{
	struct shm_guard guard = { 0 };

	for (int i = 0; i < 1000; i++) {
		shm_guard_count(&guard, true);
		shm_guard_count(&guard, false);
		cr_assert_eq(guard.closed, 0u);
	}
	close_inbox(&guard);
}

Test(shm_guard, a_closed_inbox_is_looked_at_in_fixed_intervals_and_opens)
{
	struct shm_guard guard = { 0 };
	uint32_t looks = 0, ticks;

	close_inbox(&guard);
	for (ticks = 0; guard.closed; ticks++)
		looks += shm_guard_tick(&guard);
	cr_expect_eq(ticks, SHM_GUARD_TICKS);
	cr_expect_eq(looks, SHM_GUARD_TICKS / SHM_GUARD_LOOK);
	close_inbox(&guard);
}

Test(shm_guard, posts_that_are_owed_do_not_open_a_closed_inbox)
{
	struct shm_guard guard = { 0 };

	close_inbox(&guard);
	for (uint32_t i = 0; i < 10 * SHM_GUARD_TICKS; i++)
		if (shm_guard_tick(&guard))
			shm_guard_count(&guard, i / SHM_GUARD_LOOK % 8 == 0);
	cr_expect_neq(guard.closed, 0u);
}

Test(shm_guard, closing_again_never_shortens_the_time)
{
	struct shm_guard guard = { 0 };

	shm_guard_close(&guard, SHM_GUARD_THEFT);
	cr_expect_eq(guard.closed, SHM_GUARD_THEFT);
	shm_guard_count(&guard, true);
	cr_expect_eq(guard.closed, SHM_GUARD_THEFT);
}

Test(shm_guard, a_surplus_post_keeps_the_inbox_closed)
{
	struct shm_guard guard = { 0 };

	close_inbox(&guard);
	for (uint32_t i = 0; i < 10 * SHM_GUARD_TICKS; i++)
		if (shm_guard_tick(&guard))
			shm_guard_count(&guard, true);
	cr_expect_neq(guard.closed, 0u);
}
