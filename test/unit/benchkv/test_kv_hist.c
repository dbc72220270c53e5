/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Histograms: buckets cover all values in order, and percentiles keep the error that is stated. */
#include <criterion/criterion.h>

#include "benchkv/kv_hist.h"

Test(kv_hist, buckets_are_contiguous_and_no_wider_than_a_32nd)
{
	uint64_t first = 0;

	for (unsigned b = 0; b < KV_HIST_BUCKETS; b++) {
		uint64_t top = kv_hist_top(b);

		cr_assert_geq(top, first);
		cr_assert_eq(kv_hist_bucket(first), b);
		cr_assert_eq(kv_hist_bucket(top), b);
		cr_assert_leq(top - first, first / 32, "bucket %u", b);
		first = top + 1;
	}
	cr_assert_eq(first, 0, "the last bucket ends with the largest value");
}

Test(kv_hist, quantiles_are_at_most_a_32nd_too_high)
{
	static struct kv_hist hist;

	for (uint64_t ns = 1; ns <= 100000; ns++)
		kv_hist_add(&hist, ns * 7);
	for (unsigned percent = 1; percent <= 100; percent++) {
		uint64_t exact = (uint64_t)percent * 1000 * 7;
		uint64_t got = kv_hist_quantile(&hist, percent / 100.0);

		cr_expect(got >= exact && got <= exact + exact / 32 + 1, "%u: %lu for %lu", percent,
			  got, exact);
	}
}

Test(kv_hist, merging_adds_all_counts)
{
	static struct kv_hist a, b;

	kv_hist_add(&a, 10);
	kv_hist_add(&b, 10);
	kv_hist_add(&b, UINT64_MAX);
	kv_hist_merge(&a, &b);
	cr_expect_eq(kv_hist_total(&a), 3);
	cr_expect_eq(kv_hist_quantile(&a, 0.5), 10);
	cr_expect_eq(kv_hist_quantile(&a, 1), UINT64_MAX);
}

Test(kv_hist, an_empty_histogram_has_no_quantiles)
{
	static struct kv_hist hist;

	cr_expect_eq(kv_hist_quantile(&hist, 0.99), 0);
}
