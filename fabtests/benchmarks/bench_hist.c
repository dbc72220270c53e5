/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Histogram of latencies: see bench_hist.h. */
#include "bench_hist.h"

uint64_t bench_hist_top(unsigned bucket)
{
	unsigned sub = bucket & ((1u << BENCH_HIST_SUB_BITS) - 1);
	unsigned group = bucket >> BENCH_HIST_SUB_BITS;
	uint64_t first;

	if (!group)
		return bucket;
	first = (uint64_t)(sub + (1u << BENCH_HIST_SUB_BITS)) << (group - 1);
	return first + ((uint64_t)1 << (group - 1)) - 1;
}

void bench_hist_merge(struct bench_hist *to, const struct bench_hist *from)
{
	for (unsigned i = 0; i < BENCH_HIST_BUCKETS; i++)
		to->count[i] += from->count[i];
}

uint64_t bench_hist_total(const struct bench_hist *hist)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < BENCH_HIST_BUCKETS; i++)
		total += hist->count[i];
	return total;
}

uint64_t bench_hist_quantile(const struct bench_hist *hist, double fraction)
{
	double wanted = fraction * (double)bench_hist_total(hist);
	uint64_t below = 0;

	for (unsigned i = 0; i < BENCH_HIST_BUCKETS; i++) {
		below += hist->count[i];
		if (below && (double)below >= wanted)
			return bench_hist_top(i);
	}
	return 0;
}
