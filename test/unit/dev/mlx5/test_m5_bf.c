/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/mlx5/m5_bf.h"

#include <criterion/criterion.h>
#include <stdalign.h>
#include <string.h>

#include "support/guard.h"

TestSuite(m5_bf, .timeout = 200);

typedef void bf_copy_fn(void *reg, const void *wqe, unsigned blocks);

static void check_copy(bf_copy_fn *copy)
{
	alignas(64) uint8_t reg[256];
	unsigned blocks, i;

	for (blocks = 1; blocks <= 4; blocks++) {
		uint8_t *wqe = guard_alloc(blocks * 64);

		for (i = 0; i < blocks * 64; i++)
			wqe[i] = (uint8_t)(i * 7 + blocks);
		memset(reg, 0xee, sizeof(reg));
		copy(reg, wqe, blocks);
		cr_assert_arr_eq(reg, wqe, blocks * 64);
		for (i = blocks * 64; i < sizeof(reg); i++)
			cr_assert_eq(reg[i], 0xee, "byte %u behind %u blocks", i, blocks);
		guard_free(wqe, blocks * 64);
	}
}

Test(m5_bf, copies_whole_blocks_and_nothing_else)
{
	check_copy(m5_bf_copy);
}

Test(m5_bf, wide_copy_does_the_same_where_the_processor_has_it)
{
	if (!m5_bf_has_wide())
		cr_skip_test("no 64-byte stores here");
	check_copy(m5_bf_copy_wide);
}
