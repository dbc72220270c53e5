/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Is every block as long as was asked for, its own, given again, and is no more kept than was allowed? */
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>

#include "support/rng.h"
#include "util/spare.h"

#define BLOCKS 200
#define STEPS  20000

static size_t random_len(struct rng *rng)
{
	static const size_t edges[] = { 1, 255, 256, 257, 320, 321, 65535, 65536, 65537, 100000 };
	uint32_t roll = (uint32_t)rng_below(rng, 10);

	if (!roll)
		return edges[rng_below(rng, sizeof(edges) / sizeof(edges[0]))];
	return 1 + rng_below(rng, roll < 6 ? 5000 : 70000);
}

Test(spare, every_length_up_to_the_longest_fits_and_wastes_little)
{
	struct util_spare spare;

	util_spare_init(&spare, 1 << 20);
	for (size_t len = 1; len <= UTIL_SPARE_MAX + 1; len++) {
		void *block = util_spare_alloc(&spare, len);
		size_t usable = malloc_usable_size(block);

		if (usable < len || usable > len + len / 4 + 32)
			cr_assert_fail("%zu bytes for %zu", usable, len);
		memset(block, 1, len);
		util_spare_free(&spare, block, len);
	}
	cr_assert_leq(spare.kept, 1 << 20);
	util_spare_fini(&spare);
}

Test(spare, blocks_are_apart_and_keep_their_bytes_and_the_limit_holds)
{
	struct rng rng = { .state = 7 };
	struct util_spare spare;
	uint8_t *blocks[BLOCKS] = { NULL };
	size_t lens[BLOCKS];
	size_t most = 0;

	util_spare_init(&spare, 300000);
	for (int step = 0; step < STEPS; step++) {
		uint32_t i = (uint32_t)rng_below(&rng, BLOCKS);

		if (blocks[i]) {
			if (blocks[i][0] != (uint8_t)i || blocks[i][lens[i] - 1] != (uint8_t)i)
				cr_assert_fail("somebody else wrote into a block of %zu bytes",
					       lens[i]);
			util_spare_free(&spare, blocks[i], lens[i]);
			blocks[i] = NULL;
		} else {
			lens[i] = random_len(&rng);
			blocks[i] = util_spare_alloc(&spare, lens[i]);
			memset(blocks[i], (int)i, lens[i]);
		}
		most = spare.kept > most ? spare.kept : most;
		cr_assert_leq(spare.kept, spare.kept_max);
	}
	cr_assert_gt(most, 200000, "hardly anything was kept: %zu bytes", most);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		if (blocks[i])
			util_spare_free(&spare, blocks[i], lens[i]);
	}
	util_spare_fini(&spare);
	cr_assert_eq(spare.kept, 0);
}

Test(spare, what_was_given_back_is_given_again)
{
	static const size_t lens[] = { 257, 300, 4096, 5000, 16384, 65536 };
	struct util_spare spare;

	util_spare_init(&spare, 1 << 20);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		void *first = util_spare_alloc(&spare, lens[i]), *second;

		util_spare_free(&spare, first, lens[i]);
		cr_assert_geq(spare.kept, lens[i]);
		second = util_spare_alloc(&spare, lens[i]);
		cr_assert_eq(first, second);
		cr_assert_eq(spare.kept, 0);
		util_spare_free(&spare, second, lens[i]);
		util_spare_fini(&spare);
	}
}

Test(spare, nothing_is_kept_where_nothing_may_be)
{
	struct util_spare spare;

	util_spare_init(&spare, 0);
	util_spare_free(&spare, util_spare_alloc(&spare, 4096), 4096);
	util_spare_free(&spare, NULL, 4096);
	cr_assert_eq(spare.kept, 0);
	util_spare_fini(&spare);
}
