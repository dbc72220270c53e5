/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Percentiles of rounds that are timed one by one: see bench.h. */
#include "bench.h"

#include <string.h>

#include "bench_hist.h"

const double bench_tail_fractions[BENCH_TAIL_CNT] = { 0.5, 0.99, 0.999, 1 };
const char *const bench_tail_names[BENCH_TAIL_CNT] = { "p50", "p99", "p99.9", "max" };

void bench_tail(void (*round)(void *arg), void *arg, long rounds, double us[BENCH_TAIL_CNT])
{
	static struct bench_hist hist;
	uint64_t before = bench_now_ns();

	memset(&hist, 0, sizeof(hist));
	for (long i = 0; i < rounds; i++) {
		round(arg);

		uint64_t now = bench_now_ns();

		bench_hist_add(&hist, now - before);
		before = now;
	}
	for (int i = 0; i < BENCH_TAIL_CNT; i++)
		us[i] = (double)bench_hist_quantile(&hist, bench_tail_fractions[i]) / 1000;
}
