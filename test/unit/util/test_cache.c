/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Size-class cache: block lengths, block contents, reuse, and the limit on retained bytes. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>

#include "support/rng.h"
#include "util/cache.h"

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

Test(cache, blocks_of_every_length_fit_and_waste_at_most_a_quarter)
{
	struct util_cache cache;

	util_cache_init(&cache, 1 << 20);
	for (size_t len = 1; len <= UTIL_CACHE_MAX + 1; len++) {
		void *block = util_cache_alloc(&cache, len);
		size_t usable = malloc_usable_size(block);

		if (usable < len || usable > len + len / 4 + 32)
			cr_assert_fail("%zu bytes for %zu", usable, len);
		memset(block, 1, len);
		util_cache_free(&cache, block, len);
	}
	cr_assert_leq(cache.kept, 1 << 20);
	util_cache_fini(&cache);
}

Test(cache, blocks_do_not_overlap_and_retained_bytes_stay_below_the_limit)
{
	struct rng rng = { .state = 7 };
	struct util_cache cache;
	uint8_t *blocks[BLOCKS] = { NULL };
	size_t lens[BLOCKS];
	size_t most = 0;

	util_cache_init(&cache, 300000);
	for (int step = 0; step < STEPS; step++) {
		uint32_t i = (uint32_t)rng_below(&rng, BLOCKS);

		if (blocks[i]) {
			if (blocks[i][0] != (uint8_t)i || blocks[i][lens[i] - 1] != (uint8_t)i)
				cr_assert_fail("a block of %zu bytes was overwritten", lens[i]);
			util_cache_free(&cache, blocks[i], lens[i]);
			blocks[i] = NULL;
		} else {
			lens[i] = random_len(&rng);
			blocks[i] = util_cache_alloc(&cache, lens[i]);
			memset(blocks[i], (int)i, lens[i]);
		}
		most = cache.kept > most ? cache.kept : most;
		cr_assert_leq(cache.kept, cache.kept_max);
	}
	cr_assert_gt(most, 200000, "only %zu bytes were retained", most);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		if (blocks[i])
			util_cache_free(&cache, blocks[i], lens[i]);
	}
	util_cache_fini(&cache);
	cr_assert_eq(cache.kept, 0);
}

Test(cache, a_freed_block_is_reused)
{
	static const size_t lens[] = { 257, 300, 4096, 5000, 16384, 65536 };
	struct util_cache cache;

	util_cache_init(&cache, 1 << 20);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		void *first = util_cache_alloc(&cache, lens[i]), *second;

		util_cache_free(&cache, first, lens[i]);
		cr_assert_geq(cache.kept, lens[i]);
		second = util_cache_alloc(&cache, lens[i]);
		cr_assert_eq(first, second);
		cr_assert_eq(cache.kept, 0);
		util_cache_free(&cache, second, lens[i]);
		util_cache_fini(&cache);
	}
}

Test(cache, a_limit_of_zero_retains_nothing)
{
	struct util_cache cache;

	util_cache_init(&cache, 0);
	util_cache_free(&cache, util_cache_alloc(&cache, 4096), 4096);
	util_cache_free(&cache, NULL, 4096);
	cr_assert_eq(cache.kept, 0);
	util_cache_fini(&cache);
}
