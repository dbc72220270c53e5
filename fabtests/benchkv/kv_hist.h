/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Histogram of latencies: buckets whose width is at most 1/32 of their value, so a percentile is
 * reported at most 3.2 % too high (the method of HdrHistogram). Written by one client, merged at
 * the end. Tested by test/unit/benchkv/test_kv_hist.c.
 */
#ifndef KV_HIST_H
#define KV_HIST_H

#include <stdint.h>

#define KV_HIST_SUB_BITS 5u /* 32 buckets for each power of two */
#define KV_HIST_BUCKETS  ((64u - KV_HIST_SUB_BITS + 1u) << KV_HIST_SUB_BITS)

struct kv_hist {
	uint64_t count[KV_HIST_BUCKETS];
};

/** Returns the bucket of a value in nanoseconds. */
static inline unsigned kv_hist_bucket(uint64_t ns)
{
	unsigned shift;

	if (ns < 1u << KV_HIST_SUB_BITS)
		return (unsigned)ns;
	shift = 63u - (unsigned)__builtin_clzll(ns) - KV_HIST_SUB_BITS;
	return (unsigned)((shift + 1) << KV_HIST_SUB_BITS) + (unsigned)(ns >> shift) -
	       (1u << KV_HIST_SUB_BITS);
}

static inline void kv_hist_add(struct kv_hist *hist, uint64_t ns)
{
	hist->count[kv_hist_bucket(ns)]++;
}

/** Returns the largest value of a bucket in nanoseconds. */
uint64_t kv_hist_top(unsigned bucket);

/** Adds all counts of `from` to `to`. */
void kv_hist_merge(struct kv_hist *to, const struct kv_hist *from);

/** Returns the number of values. */
uint64_t kv_hist_total(const struct kv_hist *hist);

/**
 * Returns the value in nanoseconds that `fraction` (0 to 1) of all values do not exceed, rounded up
 * to the top of its bucket; 0 without values.
 */
uint64_t kv_hist_quantile(const struct kv_hist *hist, double fraction);

#endif
