/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Percentiles of single rounds: none is below the time that the rounds took, and each is at least
 * the one before.
 */
#include <criterion/criterion.h>

#include "benchmarks/bench.h"

struct spin {
	long rounds; /* called so far */
	long slow;   /* Rounds whose number this divides take slow_ns, others fast_ns. */
	uint64_t fast_ns, slow_ns;
};

static void spin_round(void *arg)
{
	struct spin *spin = arg;
	uint64_t ns = ++spin->rounds % spin->slow ? spin->fast_ns : spin->slow_ns;

	for (uint64_t start = bench_now_ns(); bench_now_ns() - start < ns;)
		;
}

Test(bench_tail, rare_slow_rounds_are_in_the_tail_and_not_in_the_median)
{
	struct spin spin = { .slow = 50, .fast_ns = 1000, .slow_ns = 1000000 };
	double us[BENCH_TAIL_CNT];

	bench_tail(spin_round, &spin, 500, us);
	cr_assert_eq(spin.rounds, 500);
	cr_assert_geq(us[0], 1);
	cr_assert_geq(us[1], 1000, "2 of 100 rounds are slow, so p99 is");
	for (int i = 1; i < BENCH_TAIL_CNT; i++) {
		cr_assert_geq(us[i], us[i - 1]);
		cr_assert_gt(bench_tail_fractions[i], bench_tail_fractions[i - 1]);
	}
}

Test(bench_tail, one_round_is_every_percentile)
{
	struct spin spin = { .slow = 1, .slow_ns = 5000 };
	double us[BENCH_TAIL_CNT];

	bench_tail(spin_round, &spin, 1, us);
	for (int i = 0; i < BENCH_TAIL_CNT; i++)
		cr_assert_eq(us[i], us[0]);
	cr_assert_geq(us[0], 5);
}
