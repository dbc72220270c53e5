/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sizes of the rings of new connections, from the memory that is left. */
#include <criterion/criterion.h>

#include "ring/ring_len.h"

#define MIB ((size_t)1 << 20)

/** Returns the size while rings have nothing of the budget. */
static uint64_t first(size_t mem, bool registers, size_t fixed)
{
	return ring_len_next(mem, mem, registers, fixed, ENG_SIZE_DEFAULT);
}

Test(ring_len, is_a_64th_of_what_is_left_between_two_bounds)
{
	cr_expect_eq(first(256 * MIB, false, 0), RING_LEN_DEFAULT);
	cr_expect_eq(first(16 * MIB, false, 0), RING_LEN_DEFAULT);
	cr_expect_eq(first(16 * MIB - 1, false, 0), RING_LEN_DEFAULT / 2);
	cr_expect_eq(first(MIB, false, 0), RING_LEN_LEAST);
	cr_expect_eq(ring_len_next(MIB, RING_LEN_LEAST, false, 0, ENG_SIZE_DEFAULT),
		     RING_LEN_LEAST);
	cr_expect_eq(ring_len_next(MIB, RING_LEN_LEAST - 1, false, 0, ENG_SIZE_DEFAULT), 0);
	cr_expect_eq(ring_len_next(MIB, 0, false, 0, ENG_SIZE_DEFAULT), 0);
}

Test(ring_len, beyond_a_quarter_of_the_budget_rings_are_small)
{
	size_t mem = 256 * MIB, quarter = mem / 4;

	cr_expect_eq(ring_len_next(mem, mem - quarter + 1, false, 0, ENG_SIZE_DEFAULT),
		     RING_LEN_DEFAULT);
	cr_expect_eq(ring_len_next(mem, mem - quarter, false, 0, ENG_SIZE_DEFAULT), RING_LEN_MANY);
	cr_expect_eq(ring_len_next(mem, mem - quarter, true, 0, ENG_SIZE_DEFAULT),
		     RING_LEN_MANY / 2, "two of them");
	cr_expect_eq(ring_len_next(mem, MIB, false, 0, ENG_SIZE_DEFAULT), RING_LEN_LEAST);
	cr_expect_eq(ring_len_next(mem, mem - quarter, false, MIB, ENG_SIZE_DEFAULT), MIB,
		     "a fixed size stays");
}

Test(ring_len, the_size_follows_use)
{
	size_t mem = 256 * MIB, quarter = mem / 4;

	cr_expect_eq(ring_len_next(mem, mem - quarter, false, 0, ENG_SIZE_LARGE), RING_LEN_DEFAULT);
	cr_expect_eq(ring_len_next(mem, quarter + 1, true, 0, ENG_SIZE_LARGE), RING_LEN_DEFAULT);
	cr_expect_eq(ring_len_next(mem, quarter, false, 0, ENG_SIZE_LARGE), RING_LEN_MANY);
	cr_expect_eq(ring_len_next(mem, quarter, true, 0, ENG_SIZE_LARGE), RING_LEN_MANY / 2);
	cr_expect_eq(ring_len_next(mem, mem - quarter, false, 8192, ENG_SIZE_LARGE), 8192, "fixed");
	cr_expect_eq(ring_len_next(mem, mem, false, 0, ENG_SIZE_SMALL), RING_LEN_MANY);
	cr_expect_eq(ring_len_next(mem, MIB, false, 0, ENG_SIZE_SMALL), RING_LEN_LEAST);
	cr_expect_eq(ring_len_next(16 * MIB, 8 * MIB, false, 0, ENG_SIZE_LARGE),
		     RING_LEN_DEFAULT / 2, "a 64th of what is left is less");
}

Test(ring_len, by_default_256_peers_have_large_rings_and_4096_have_some)
{
	for (unsigned rings = 1; rings <= 2; rings++) {
		size_t mem = 256 * MIB, left = mem, at_256 = 0;

		for (unsigned peers = 0; peers < 4096; peers++) {
			uint64_t len = ring_len_next(mem, left, rings == 2, 0, ENG_SIZE_DEFAULT);

			cr_assert(len);
			cr_assert_eq(len == RING_LEN_DEFAULT, peers < 256 / rings);
			if (peers == 256)
				at_256 = left;
			left -= rings * len;
		}
		cr_expect_leq(at_256 - left, (4096 - 256) * (size_t)RING_LEN_MANY);
	}
}

Test(ring_len, counts_the_send_ring_of_a_device)
{
	cr_expect_eq(first(32 * MIB, true, 0), RING_LEN_DEFAULT);
	cr_expect_eq(first(32 * MIB - 2, true, 0), RING_LEN_DEFAULT / 2);
	cr_expect_eq(first(2 * RING_LEN_LEAST, true, 0), RING_LEN_LEAST);
	cr_expect_eq(first(2 * RING_LEN_LEAST - 1, true, 0), 0);
}

Test(ring_len, a_fixed_size_is_rounded_down_and_fits)
{
	cr_expect_eq(first(MIB, false, 5000), 4096);
	cr_expect_eq(first(MIB, false, MIB), MIB);
	cr_expect_eq(first(MIB - 1, false, MIB), 0);
	cr_expect_eq(first(MIB, true, MIB), 0);
}

Test(ring_len, all_connections_stay_within_the_budget)
{
	for (size_t budget = MIB; budget <= 300 * MIB; budget += 7 * MIB + 4093) {
		size_t left = budget;
		uint64_t before = RING_LEN_DEFAULT, len;

		while ((len = ring_len_next(budget, left, false, 0, ENG_SIZE_DEFAULT))) {
			cr_assert_leq(len, before);
			cr_assert_leq(len, left);
			before = len;
			left -= len;
		}
		cr_expect_lt(left, RING_LEN_LEAST);
	}
}
