/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Is the counter's time the clock's, and nobody's where it cannot be known? */
#include <criterion/criterion.h>
#include <time.h>

#include "util/tick.h"

#define GHZ    3u /* of the counters below */
#define BEGIN  123456789u
#define OFF_NS 200000u /* more than it is ever wrong, less than anybody would miss */

/** One that was set twice, `ns` apart. */
static struct util_tick set_twice(uint64_t ns)
{
	struct util_tick t = { .ns = 0 };

	util_tick_set(&t, BEGIN, UTIL_NS_PER_S);
	cr_assert_eq(t.most, 0, "nothing is known after one look");
	cr_assert_eq(t.at, BEGIN);
	util_tick_set(&t, BEGIN + GHZ * ns, UTIL_NS_PER_S + ns);
	return t;
}

Test(tick, what_passed_between_two_looks_says_how_fast_it_runs)
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

Test(tick, too_short_a_stretch_says_nothing_and_goes_on)
{
	struct util_tick t = set_twice(UTIL_TICK_LEAST_NS - 1);

	cr_assert_eq(t.most, 0);
	cr_assert_eq(t.at, BEGIN, "it goes on from where it began");
	util_tick_set(&t, BEGIN + GHZ * UTIL_TICK_LEAST_NS, UTIL_NS_PER_S + UTIL_TICK_LEAST_NS);
	cr_assert_neq(t.most, 0);
}

/* A machine that slept: its clock stood while the counter ran on, or the other way round. */
Test(tick, after_a_pause_it_begins_anew)
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
	cr_assert_eq(t.most, 0, "nobody knows what was between");
	util_tick_set(&t, t.at + GHZ * UTIL_TICK_LEAST_NS, t.ns + UTIL_TICK_LEAST_NS);
	cr_assert_neq(t.most, 0);
}

/* Each time lies between the clock's before and after it; also where the clock is all there is. */
Test(tick, it_is_as_late_as_the_clock_says)
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
