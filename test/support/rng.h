/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random numbers for property tests (splitmix64), the same on every machine: the seed that a failed
 * run prints reproduces it.
 *
 *	COPYRPC_TEST_SEED   the only seed to run (default: the test's own list)
 *	COPYRPC_TEST_STEPS  steps per run (default: few enough for `make check`)
 */
#ifndef SUPPORT_RNG_H
#define SUPPORT_RNG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += 0x9E3779B97F4A7C15ull;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	return z ^ (z >> 31);
}

/** Returns a uniform number in [0, n), n > 0. */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)rng_next(r) * n) >> 64);
}

/** Returns true with probability num / den. */
static inline bool rng_chance(struct rng *r, unsigned num, unsigned den)
{
	return rng_below(r, den) < num;
}

/** Returns the number in the environment variable `name`, or `def`. */
static inline uint64_t rng_env(const char *name, uint64_t def)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : def;
}

#endif
