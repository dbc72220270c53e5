/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The hash of keys, compared with a plain array. */
#include "dgram/dgram_map.h"

#include <criterion/criterion.h>

#include "support/rng.h"

#define KEYS 97u

/* Returns a key of few different words, so that keys collide and differ little. */
static struct dgram_key key_of(uint32_t n)
{
	return (struct dgram_key){ .word = { n % 7, n / 7, 0, 0, 0, ~(uint64_t)(n % 3) } };
}

Test(dgram_map, an_empty_map_finds_nothing)
{
	struct dgram_map map = { 0 };
	struct dgram_key key = key_of(3);

	cr_expect_eq(dgram_map_get(&map, &key), DGRAM_NONE);
	cr_expect_not(dgram_map_erase(&map, &key));
	dgram_map_fini(&map);
}

Test(dgram_map, behaves_like_an_array)
{
	uint64_t want[KEYS];
	struct dgram_map map = { 0 };
	struct rng rng = { .state = 7 };

	for (uint32_t i = 0; i < KEYS; i++)
		want[i] = DGRAM_NONE;
	for (uint32_t step = 0; step < 20000; step++) {
		uint32_t n = (uint32_t)rng_below(&rng, KEYS);
		struct dgram_key key = key_of(n);

		if (rng_below(&rng, 2)) {
			want[n] = step;
			cr_assert_eq(dgram_map_put(&map, &key, step), 0);
		} else {
			cr_assert_eq(dgram_map_erase(&map, &key), want[n] != DGRAM_NONE);
			want[n] = DGRAM_NONE;
		}
		n = (uint32_t)rng_below(&rng, KEYS);
		key = key_of(n);
		cr_assert_eq(dgram_map_get(&map, &key), want[n], "step %u, key %u", step, n);
	}
	for (uint32_t i = 0; i < KEYS; i++) {
		struct dgram_key key = key_of(i);

		cr_expect_eq(dgram_map_get(&map, &key), want[i]);
	}
	dgram_map_fini(&map);
}
