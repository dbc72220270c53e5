/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Histogram of latencies: buckets whose width is at most 1/32 of their value, so a percentile is
 * reported at most 3.2 % too high (the method of HdrHistogram). Written by one client, merged at
 * the end. Tested by test/unit/benchkv/test_bench_hist.c.
 */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include <stdint.h>

#define BENCH_HIST_SUB_BITS 5u /* 32 buckets for each power of two */
#define BENCH_HIST_BUCKETS  ((64u - BENCH_HIST_SUB_BITS + 1u) << BENCH_HIST_SUB_BITS)

struct bench_hist {
	uint64_t count[BENCH_HIST_BUCKETS];
};

/** Returns the bucket of a value in nanoseconds. */
static inline unsigned bench_hist_bucket(uint64_t ns)
{
	unsigned shift;

	if (ns < 1u << BENCH_HIST_SUB_BITS)
		return (unsigned)ns;
	shift = 63u - (unsigned)__builtin_clzll(ns) - BENCH_HIST_SUB_BITS;
	return (unsigned)((shift + 1) << BENCH_HIST_SUB_BITS) + (unsigned)(ns >> shift) -
	       (1u << BENCH_HIST_SUB_BITS);
}

static inline void bench_hist_add(struct bench_hist *hist, uint64_t ns)
{
	hist->count[bench_hist_bucket(ns)]++;
}

/** Returns the largest value of a bucket in nanoseconds. */
uint64_t bench_hist_top(unsigned bucket);

/** Adds all counts of `from` to `to`. */
void bench_hist_merge(struct bench_hist *to, const struct bench_hist *from);

/** Returns the number of values. */
uint64_t bench_hist_total(const struct bench_hist *hist);

/**
 * Returns the value in nanoseconds that `fraction` (0 to 1) of all values do not exceed, rounded up
 * to the top of its bucket; 0 without values.
 */
uint64_t bench_hist_quantile(const struct bench_hist *hist, double fraction);

#endif
