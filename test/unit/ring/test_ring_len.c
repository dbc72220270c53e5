/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sizes of the rings of new connections, from the memory that is left. */
#include <criterion/criterion.h>

#include "ring/ring_len.h"

#define MIB ((size_t)1 << 20)

Test(ring_len, is_a_64th_of_what_is_left_between_two_bounds)
{
	cr_expect_eq(ring_len_next(256 * MIB, false, 0), RING_LEN_DEFAULT);
	cr_expect_eq(ring_len_next(16 * MIB, false, 0), RING_LEN_DEFAULT);
	cr_expect_eq(ring_len_next(16 * MIB - 1, false, 0), RING_LEN_DEFAULT / 2);
	cr_expect_eq(ring_len_next(MIB, false, 0), RING_LEN_LEAST);
	cr_expect_eq(ring_len_next(RING_LEN_LEAST, false, 0), RING_LEN_LEAST);
	cr_expect_eq(ring_len_next(RING_LEN_LEAST - 1, false, 0), 0);
	cr_expect_eq(ring_len_next(0, false, 0), 0);
}

Test(ring_len, counts_the_send_ring_of_a_device)
{
	cr_expect_eq(ring_len_next(32 * MIB, true, 0), RING_LEN_DEFAULT);
	cr_expect_eq(ring_len_next(32 * MIB - 2, true, 0), RING_LEN_DEFAULT / 2);
	cr_expect_eq(ring_len_next(2 * RING_LEN_LEAST, true, 0), RING_LEN_LEAST);
	cr_expect_eq(ring_len_next(2 * RING_LEN_LEAST - 1, true, 0), 0);
}

Test(ring_len, a_fixed_size_is_rounded_down_and_fits)
{
	cr_expect_eq(ring_len_next(MIB, false, 5000), 4096);
	cr_expect_eq(ring_len_next(MIB, false, MIB), MIB);
	cr_expect_eq(ring_len_next(MIB - 1, false, MIB), 0);
	cr_expect_eq(ring_len_next(MIB, true, MIB), 0);
}

Test(ring_len, all_connections_stay_within_the_budget)
{
	for (size_t budget = MIB; budget <= 300 * MIB; budget += 7 * MIB + 4093) {
		size_t left = budget;
		uint64_t before = RING_LEN_DEFAULT, len;

		while ((len = ring_len_next(left, false, 0))) {
			cr_assert_leq(len, before);
			cr_assert_leq(len, left);
			before = len;
			left -= len;
		}
		cr_expect_lt(left, RING_LEN_LEAST);
	}
}
