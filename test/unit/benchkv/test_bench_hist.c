/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Histograms: buckets cover all values in order, and percentiles keep the error that is stated. */
#include <criterion/criterion.h>

#include "benchmarks/bench_hist.h"

Test(bench_hist, buckets_are_contiguous_and_no_wider_than_a_32nd)
{
	uint64_t first = 0;

	for (unsigned b = 0; b < BENCH_HIST_BUCKETS; b++) {
		uint64_t top = bench_hist_top(b);

		cr_assert_geq(top, first);
		cr_assert_eq(bench_hist_bucket(first), b);
		cr_assert_eq(bench_hist_bucket(top), b);
		cr_assert_leq(top - first, first / 32, "bucket %u", b);
		first = top + 1;
	}
	cr_assert_eq(first, 0, "the last bucket ends with the largest value");
}

Test(bench_hist, quantiles_are_at_most_a_32nd_too_high)
{
	static struct bench_hist hist;

	for (uint64_t ns = 1; ns <= 100000; ns++)
		bench_hist_add(&hist, ns * 7);
	for (unsigned percent = 1; percent <= 100; percent++) {
		uint64_t exact = (uint64_t)percent * 1000 * 7;
		uint64_t got = bench_hist_quantile(&hist, percent / 100.0);

		cr_expect(got >= exact && got <= exact + exact / 32 + 1, "%u: %lu for %lu", percent,
			  got, exact);
	}
}

Test(bench_hist, merging_adds_all_counts)
{
	static struct bench_hist a, b;

	bench_hist_add(&a, 10);
	bench_hist_add(&b, 10);
	bench_hist_add(&b, UINT64_MAX);
	bench_hist_merge(&a, &b);
	cr_expect_eq(bench_hist_total(&a), 3);
	cr_expect_eq(bench_hist_quantile(&a, 0.5), 10);
	cr_expect_eq(bench_hist_quantile(&a, 1), UINT64_MAX);
}

Test(bench_hist, an_empty_histogram_has_no_quantiles)
{
	static struct bench_hist hist;

	cr_expect_eq(bench_hist_quantile(&hist, 0.99), 0);
}
