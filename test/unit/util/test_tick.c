/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Time from the counter: agreement with the clock, calibration, and pauses. */
#include <criterion/criterion.h>
#include <time.h>

#include "util/tick.h"

#define GHZ    3u /* rate of the counters below */
#define BEGIN  123456789u
#define OFF_NS 200000u /* allowed deviation from the clock */

/** Returns a counter that was calibrated twice, `ns` apart. */
static struct util_tick set_twice(uint64_t ns)
{
	struct util_tick t = { .ns = 0 };

	util_tick_set(&t, BEGIN, UTIL_NS_PER_S);
	cr_assert_eq(t.most, 0, "one read gives no rate");
	cr_assert_eq(t.at, BEGIN);
	util_tick_set(&t, BEGIN + GHZ * ns, UTIL_NS_PER_S + ns);
	return t;
}

Test(tick, two_clock_reads_give_the_rate)
{
	struct util_tick t = set_twice(UTIL_TICK_LEAST_NS);
	uint64_t at = t.at + t.most - 1, ns = util_tick_at(&t, at);

	cr_assert_eq(t.at, BEGIN + GHZ * UTIL_TICK_LEAST_NS);
	cr_expect_geq(t.most, GHZ * UTIL_TICK_EVERY_NS);
	cr_expect_lt(t.most, GHZ * (UTIL_TICK_EVERY_NS + 10));
	cr_expect_leq(ns, t.ns + UTIL_TICK_EVERY_NS);
	cr_expect_geq(ns, t.ns + UTIL_TICK_EVERY_NS - 1000);
	cr_expect_eq(util_tick_at(&t, t.at), t.ns);
}

Test(tick, too_short_an_interval_gives_no_rate_and_continues)
{
	struct util_tick t = set_twice(UTIL_TICK_LEAST_NS - 1);

	cr_assert_eq(t.most, 0);
	cr_assert_eq(t.at, BEGIN, "the interval continues from its start");
	util_tick_set(&t, BEGIN + GHZ * UTIL_TICK_LEAST_NS, UTIL_NS_PER_S + UTIL_TICK_LEAST_NS);
	cr_assert_neq(t.most, 0);
}

/* A machine that was suspended: its clock stopped while the counter ran on, or the reverse. */
Test(tick, a_pause_restarts_the_calibration)
{
	const uint64_t ticks[] = { 1000000 * UTIL_NS_PER_S, 5, 0, -UTIL_NS_PER_S };
	struct util_tick t;

	for (unsigned i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
		t = set_twice(UTIL_TICK_EVERY_NS);
		cr_assert_neq(t.most, 0);
		util_tick_set(&t, t.at + ticks[i], t.ns + UTIL_TICK_EVERY_NS);
		cr_expect_eq(t.most, 0, "%u", i);
	}
	t = set_twice(UTIL_TICK_EVERY_NS);
	util_tick_set(&t, t.at + GHZ * UTIL_TICK_MOST_NS, t.ns + UTIL_TICK_MOST_NS);
	cr_assert_eq(t.most, 0, "an interval with a pause gives no rate");
	util_tick_set(&t, t.at + GHZ * UTIL_TICK_LEAST_NS, t.ns + UTIL_TICK_LEAST_NS);
	cr_assert_neq(t.most, 0);
}

/*
 * Each time lies between clock reads before and after it, also on machines without a usable
 * counter.
 */
Test(tick, the_counter_after_loads_is_none_before_them)
{
	uint64_t before = util_tick_count();

	cr_expect_geq(util_tick_after_loads(), before);
}

Test(tick, counter_time_agrees_with_the_clock)
{
	uint64_t end = util_clock_ns() + 3 * UTIL_TICK_EVERY_NS, before, now, after = 0;
	struct util_tick t;
	unsigned wrong = 0;

	util_tick_init(&t);
	while (after < end) {
		before = util_clock_ns();
		now = util_tick_ns(&t);
		after = util_clock_ns();
		wrong += now + OFF_NS < before || now > after + OFF_NS;
	}
	cr_assert_eq(wrong, 0);
}
