/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The regions of Timely one by one, and flows that share a bottleneck: they fill it, keep its queue
 * short, and get equal shares.
 */
#include "erpc/pace/erpc_timely.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define US        1000ull
#define LINK      (25e9 / 8) /* bytes per second */
#define FLOWS_MAX 16

static struct erpc_timely_cfg cfg;
static struct erpc_timely t;

static void setup(void)
{
	erpc_timely_cfg_init(&cfg, LINK, 0);
	erpc_timely_init(&t, &cfg, 0);
}

/** Adds `cnt` samples, 10 us apart, from `rtt_us` in steps of `step_us`. */
static void samples(int cnt, double rtt_us, double step_us)
{
	uint64_t now = t.updated_ns;

	for (; cnt; cnt--, rtt_us += step_us)
		erpc_timely_update(&t, now += 10 * US, (uint64_t)(rtt_us * 1000));
}

Test(erpc_timely, begins_open_and_stays_open_on_an_idle_path, .init = setup)
{
	cr_expect(erpc_timely_is_open(&t));
	cr_expect(erpc_timely_may_skip(t.cfg, false, 50 * US));
	cr_expect_not(erpc_timely_may_skip(t.cfg, false, 51 * US));
	cr_expect_not(erpc_timely_may_skip(t.cfg, true, 50 * US));
	samples(1000, 10, 0);
	cr_expect(erpc_timely_is_open(&t));
	cr_expect_eq(erpc_timely_gap_ns(&t, 3125), 1000);
}

Test(erpc_timely, short_round_trips_add_a_step_each_and_five_after_five_falls, .init = setup)
{
	t.rate = 1e9;
	samples(4, 49, 0);
	cr_expect_float_eq(t.rate, 1e9 + 4 * cfg.add_rate, 1);
	samples(2, 49, 0);
	cr_expect_float_eq(t.rate, 1e9 + (4 + 2 * 5) * cfg.add_rate, 1);
}

Test(erpc_timely, samples_at_the_same_time_count_once, .init = setup)
{
	int i;

	t.rate = 1e9;
	for (i = 0; i < 1000; i++)
		erpc_timely_update(&t, 10 * US, 10 * US);
	cr_expect_float_eq(t.rate, 1e9 + cfg.add_rate, 1);
}

Test(erpc_timely, long_round_trips_decrease_by_the_distance, .init = setup)
{
	samples(1, 1250, 0);
	cr_expect_float_eq(t.rate, LINK * (1 - 0.8 * (1 - 1000.0 / 1250)), 1);
	setup();
	samples(1, 100000, 0);
	cr_expect_float_eq(t.rate, LINK / 2, 1, "at most half at once");
}

Test(erpc_timely, between_the_thresholds_the_trend_decides, .init = setup)
{
	samples(1, 500, 0);
	t.rate = 1e9;
	samples(20, 490, -10);
	cr_expect_float_eq(t.rate, 1e9 + 20 * cfg.add_rate, 1, "falling, never faster");
	setup();
	samples(50, 100, 5);
	cr_expect_lt(t.rate, 0.7 * LINK, "rising");
}

/* No trend, 100 us: half a step up; half of beta times one t_low above t_low down. */
Test(erpc_timely, has_one_fixed_point, .init = setup)
{
	const double still = cfg.add_rate / cfg.beta;
	int i;

	for (i = 0; i < 2; i++) {
		setup();
		t.rate = i ? 0.5 * still : 2 * still;
		samples(1, 100, 0);
		for (t.falls = 0; t.updated_ns < 100000 * US; t.falls = 0)
			samples(1, 100, 0);
		cr_expect_float_eq(t.rate, still, still / 100);
	}
}

/* At a tenth of the rate a step is a tenth, and a packet takes ten times as long. */
Test(erpc_timely, constants_scale_with_the_link)
{
	struct erpc_timely_cfg slow;

	erpc_timely_cfg_init(&cfg, LINK, 0);
	cr_expect_eq(cfg.t_low_ns, 50 * US);
	cr_expect_eq(cfg.t_high_ns, 1000 * US);
	erpc_timely_cfg_init(&slow, LINK / 100, 0);
	cr_expect_float_eq(slow.add_rate, cfg.add_rate / 100, 1);
	cr_expect_lt(slow.min_rate, slow.max_rate / 200);
	cr_expect_gt(slow.t_low_ns, 300 * US);
	cr_expect_eq(slow.t_high_ns / slow.t_low_ns, 20);
	cr_expect_eq(slow.t_low_ns / slow.min_rtt_ns, 25);
}

Test(erpc_timely, host_time_raises_the_thresholds)
{
	struct erpc_timely_cfg woken;

	erpc_timely_cfg_init(&cfg, LINK, 0);
	erpc_timely_cfg_init(&woken, LINK, 300 * US);
	cr_expect_eq(woken.t_low_ns, cfg.t_low_ns + 300 * US);
	cr_expect_eq(woken.t_high_ns, cfg.t_high_ns + 300 * US);
	cr_expect_eq(woken.min_rtt_ns, cfg.min_rtt_ns);
}

Test(erpc_timely, a_loss_halves_the_rate_once_in_a_round_trip, .init = setup)
{
	samples(1, 500, 0);
	t.rate = 1e9;
	erpc_timely_lost(&t, 1000 * US);
	cr_expect_float_eq(t.rate, 0.5e9, 1);
	erpc_timely_lost(&t, 1499 * US);
	cr_expect_float_eq(t.rate, 0.5e9, 1);
	erpc_timely_lost(&t, 1500 * US);
	cr_expect_float_eq(t.rate, 0.25e9, 1);
}

Test(erpc_timely, losses_do_not_starve, .init = setup)
{
	int i;

	for (i = 1; i <= 100; i++)
		erpc_timely_lost(&t, (uint64_t)i * 1000 * US);
	cr_expect_float_eq(t.rate, LINK / 32, 1, "no sample yet");
	t.rate = cfg.min_rate;
	erpc_timely_lost(&t, 200000 * US);
	cr_expect_float_eq(t.rate, cfg.min_rate, 1, "no increase");
}

Test(erpc_timely, a_loss_after_a_short_round_trip_changes_nothing, .init = setup)
{
	samples(1, 50, 0);
	erpc_timely_lost(&t, t.updated_ns + 1000 * US);
	cr_expect(erpc_timely_is_open(&t));
}

Test(erpc_timely, a_late_packet_makes_up_for_its_delay, .init = setup)
{
	const uint64_t due = 1000 * US, gap = 10 * US;

	t.rate = 1e8; /* 1000 bytes in 10 us */
	cr_expect_eq(erpc_timely_next_ns(&t, due, due - 5 * US, 1000), due + gap, "early");
	cr_expect_eq(erpc_timely_next_ns(&t, due, due + 5 * US, 1000), due + gap, "late");
	cr_expect_eq(erpc_timely_next_ns(&t, due, due + 1000 * US, 1000),
		     due + 1000 * US - cfg.catch_ns + gap, "too late to be pacing");
}

Test(erpc_timely, keeps_within_its_bounds, .init = setup)
{
	samples(1000, 100000, 0);
	cr_expect_float_eq(t.rate, cfg.min_rate, 1);
	samples(100000, 10, 0);
	cr_expect_float_eq(t.rate, cfg.max_rate, 1);
}

/** Result of a run over one bottleneck, after its first half. */
struct shared {
	double used;     /* of the bottleneck */
	double queue_us; /* mean of the queue */
	double fairness; /* Jain's index of the bytes sent by each flow */
};

/**
 * Simulates flows that send at the rate of Timely, for `ms` milliseconds, into a queue that a link
 * of LINK empties. The base round trip is 20 us; each flow samples after each 16 KiB.
 */
static struct shared share_bottleneck(int cnt, int ms)
{
	static struct erpc_timely flows[FLOWS_MAX];
	double sent[FLOWS_MAX] = { 0 }, next[FLOWS_MAX], queue = 0, queue_sum = 0, out = 0;
	double sum = 0, squares = 0, bytes;
	struct shared s;
	uint64_t us;
	int i;

	for (i = 0; i < cnt; i++) {
		erpc_timely_init(&flows[i], &cfg, 0);
		next[i] = 16384.0 * (i + 1) / cnt;
	}
	for (us = 0; us < ms * 1000ull; us++) {
		for (i = 0; i < cnt; i++) {
			bytes = flows[i].rate / 1e6;
			queue += bytes;
			next[i] -= bytes;
			if (us >= ms * 500ull)
				sent[i] += bytes;
			if (next[i] > 0)
				continue;
			next[i] += 16384;
			erpc_timely_update(&flows[i], us * US,
					   20 * US + (uint64_t)(queue / LINK * 1e9));
		}
		if (us >= ms * 500ull) {
			out += queue < LINK / 1e6 ? queue : LINK / 1e6;
			queue_sum += queue;
		}
		queue = queue > LINK / 1e6 ? queue - LINK / 1e6 : 0;
	}
	for (i = 0; i < cnt; i++) {
		sum += sent[i];
		squares += sent[i] * sent[i];
	}
	s.used = out / (LINK * ms / 2000.0);
	s.queue_us = queue_sum / (ms * 500.0) / LINK * 1e6;
	s.fairness = sum * sum / (cnt * squares);
	return s;
}

static void expect_shared(int cnt)
{
	struct shared s = share_bottleneck(cnt, 400);

	printf("%d flows: %.3f of the link used, %.0f us of queue, fairness %.3f\n", cnt, s.used,
	       s.queue_us, s.fairness);
	cr_expect_gt(s.used, 0.9);
	cr_expect_lt(s.queue_us, 1000);
	cr_expect_gt(s.fairness, 0.9);
}

Test(erpc_timely, two_flows_share_a_bottleneck, .init = setup)
{
	expect_shared(2);
}

Test(erpc_timely, sixteen_flows_share_a_bottleneck, .init = setup)
{
	expect_shared(16);
}
