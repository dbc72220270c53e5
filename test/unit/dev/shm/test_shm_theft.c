/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Evidence of lines that are taken away: dev/shm/shm_theft.c. */
#include "dev/shm/shm_theft.h"

#include <criterion/criterion.h>

#define OWN 30 /* counts of a private load */

/*
 * Adds `cnt` loads that take `extra` counts more than private ones. Returns how often the sum was
 * reached.
 */
static uint32_t add(uint32_t *sum, uint64_t tick, uint64_t extra, uint32_t cnt)
{
	struct shm_times times = { .tick = tick, .own = OWN };
	uint32_t reached = 0;

	while (cnt--)
		reached += shm_theft_add(sum, &times, OWN + extra);
	return reached;
}

Test(shm_theft, loads_within_what_is_allowed_are_no_evidence)
{
	uint32_t sum = 0;

	cr_expect_eq(add(&sum, 100, SHM_THEFT_ALLOWED, 100000), 0u);
	cr_expect_eq(sum, 0u);
}

Test(shm_theft, a_load_that_is_quicker_than_a_private_one_is_no_evidence)
{
	struct shm_times times = { .tick = 100, .own = OWN };
	uint32_t sum = 0;

	cr_expect(!shm_theft_add(&sum, &times, 0));
	cr_expect_eq(sum, 0u);
}

Test(shm_theft, slow_loads_reach_the_sum_again_and_again)
{
	uint32_t sum = 0, once = SHM_THEFT_SUM / (SHM_THEFT_MOST - SHM_THEFT_ALLOWED) + 1;

	cr_expect_eq(add(&sum, 100, SHM_THEFT_MOST, once - 1), 0u);
	cr_expect_eq(add(&sum, 100, SHM_THEFT_MOST, 1), 1u);
	cr_expect_eq(sum, 0u);
	cr_expect_eq(add(&sum, 100, SHM_THEFT_MOST, 9 * once), 9u);
}

Test(shm_theft, an_interruption_counts_as_one_slow_load)
{
	uint32_t sum = 0;

	cr_expect_eq(add(&sum, 100, UINT64_MAX / 2, 1), 0u);
	cr_expect_eq(sum, SHM_THEFT_MOST - SHM_THEFT_ALLOWED);
}

Test(shm_theft, few_slow_loads_among_many_are_balanced)
{
	uint32_t sum = 0;

	for (int i = 0; i < 10000; i++) {
		cr_assert_eq(add(&sum, 100, SHM_THEFT_MOST, 1), 0u);
		cr_assert_eq(add(&sum, 100, 0, 6), 0u);
	}
	for (int i = 0; i < 100; i++)
		add(&sum, 100, SHM_THEFT_MOST, 1);
	cr_expect_neq(add(&sum, 100, SHM_THEFT_MOST, 100), 0u, "without them they are not");
}

Test(shm_theft, a_program_that_polls_seldom_may_miss_each_time)
{
	uint32_t sum = 0;

	cr_expect_eq(add(&sum, SHM_THEFT_SHARE * SHM_THEFT_MOST, SHM_THEFT_MOST, 100000), 0u);
	cr_expect_neq(add(&sum, SHM_THEFT_SHARE * SHM_THEFT_MOST / 2, SHM_THEFT_MOST, 100), 0u);
}
