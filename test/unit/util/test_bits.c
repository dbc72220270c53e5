/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Powers of two at the edges: 0, 1, a power, its neighbours, the largest; prefetch of no memory. */
#include <criterion/criterion.h>
#include <sys/mman.h>

#include "util/bits.h"

Test(bits, only_powers_of_two_are_powers_of_two)
{
	cr_assert_not(util_is_pow2(0));
	for (int s = 0; s < 64; s++) {
		uint64_t p = 1ull << s;

		cr_assert(util_is_pow2(p));
		cr_assert_eq(util_is_pow2(p + 1), s == 0);
		cr_assert_eq(util_is_pow2(p - 1), s == 1);
	}
}

Test(bits, align_up_is_the_least_multiple_that_is_not_below)
{
	cr_assert_eq(util_align_up(0, 32), 0);
	cr_assert_eq(util_align_up(1, 32), 32);
	cr_assert_eq(util_align_up(31, 32), 32);
	cr_assert_eq(util_align_up(32, 32), 32);
	cr_assert_eq(util_align_up(33, 32), 64);
	cr_assert_eq(util_align_up(7, 1), 7);
	cr_assert_eq(util_align_up((1ull << 32) + 1, 64), (1ull << 32) + 64);
}

Test(bits, floor_and_ceil_enclose_and_meet_at_powers)
{
	cr_assert_eq(util_pow2_ceil(1), 1);
	for (int s = 1; s < 63; s++) {
		uint64_t p = 1ull << s;

		cr_assert_eq(util_pow2_floor(p), p);
		cr_assert_eq(util_pow2_ceil(p), p);
		cr_assert_eq(util_pow2_floor(p + 1), p);
		cr_assert_eq(util_pow2_ceil(p + 1), 2 * p);
		cr_assert_eq(util_pow2_floor(2 * p - 1), p);
	}
	cr_assert_eq(util_pow2_ceil(1ull << 63), 1ull << 63);
	cr_assert_eq(util_pow2_floor(UINT64_MAX), 1ull << 63);
}

Test(bits, prefetch_of_what_is_not_accessible_does_not_fault)
{
	char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(none, MAP_FAILED);
	util_prefetch_store(none);
	util_prefetch_store(NULL);
	munmap(none, 4096);
}
