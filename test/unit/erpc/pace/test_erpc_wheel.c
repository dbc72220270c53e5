/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The timing wheel: no item expires early, none more than a slot late, none is lost. */
#include "erpc/pace/erpc_wheel.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "support/rng.h"

#define SLOT  (1ull << ERPC_PACE_SHIFT)
#define LAP   (SLOT * ERPC_PACE_SLOTS)
#define ITEMS 400u

static struct erpc_wheel w;
static struct erpc_wheel_item items[ITEMS];
static uint64_t wanted[ITEMS]; /* 0: not in the wheel */
static uint64_t inserted[ITEMS];
static struct rng rng;

static void insert(uint32_t i, uint64_t now, uint64_t due)
{
	erpc_wheel_insert(&w, &items[i], due, now);
	wanted[i] = due;
	inserted[i] = now;
}

static uint32_t advance(uint64_t now)
{
	struct util_list ready, *it;
	uint32_t i, cnt = 0;

	util_list_init(&ready);
	erpc_wheel_advance(&w, now, &ready);
	cr_assert(!erpc_wheel_is_due(&w, now));
	while ((it = util_list_pop(&ready))) {
		i = (uint32_t)(UTIL_CONTAINER_OF(it, struct erpc_wheel_item, link) - items);
		cr_assert(wanted[i] && wanted[i] <= now, "item %u expires early", i);
		wanted[i] = 0;
		cnt++;
	}
	for (i = 0; i < ITEMS; i++)
		cr_assert(!wanted[i] || wanted[i] + SLOT > now || inserted[i] + SLOT > now,
			  "item %u is still there", i);
	return cnt;
}

/** Asserts that a sleep until erpc_wheel_next_ns misses no item by more than a slot. */
static void expect_next(uint64_t now)
{
	uint64_t first = UINT64_MAX, next;
	uint32_t i;

	for (i = 0; i < ITEMS; i++)
		if (wanted[i] && wanted[i] < first)
			first = wanted[i];
	if (!w.cnt)
		return;
	next = erpc_wheel_next_ns(&w);
	cr_assert_leq(next, first + SLOT);
	cr_assert_gt(next, now);
}

/** Makes random inserts, removals and clock steps, some over several laps. */
static void random_run(uint64_t now, uint32_t steps)
{
	uint32_t i, step;
	uint64_t due;

	cr_assert_eq(erpc_wheel_init(&w, now, ERPC_PACE_SHIFT, ERPC_PACE_SLOTS), 0);
	for (i = 0; i < ITEMS; i++)
		erpc_wheel_item_init(&items[i]);
	for (step = 0; step < steps; step++) {
		i = (uint32_t)rng_below(&rng, ITEMS);
		if (wanted[i]) {
			erpc_wheel_remove(&w, &items[i]);
			wanted[i] = 0;
		} else {
			due = rng_chance(&rng, 1, 8) ? rng_below(&rng, 5 * LAP)
						     : rng_below(&rng, 300 * SLOT);
			insert(i, now, now + due);
		}
		now += rng_chance(&rng, 1, 200) ? rng_below(&rng, 3 * LAP)
						: rng_below(&rng, 4 * SLOT);
		advance(now);
		expect_next(now);
	}
	advance(now + 6 * LAP);
	cr_expect_eq(w.cnt, 0);
	for (i = 0; i < ITEMS; i++)
		cr_expect_not(wanted[i]);
	erpc_wheel_fini(&w);
}

Test(erpc_wheel, items_expire_on_time)
{
	rng.state = 11;
	random_run(0, 20000);
	random_run(LAP - 3 * SLOT, 20000);
	random_run(123456789012345, 20000);
}

Test(erpc_wheel, slots_leave_in_order)
{
	struct util_list ready;
	uint32_t i, last = ITEMS;

	cr_assert_eq(erpc_wheel_init(&w, 0, ERPC_PACE_SHIFT, ERPC_PACE_SLOTS), 0);
	for (i = 0; i < ITEMS; i++)
		erpc_wheel_insert(&w, &items[i], (ITEMS - i) * SLOT, 0);
	util_list_init(&ready);
	erpc_wheel_advance(&w, ITEMS * SLOT, &ready);
	while (!util_list_is_empty(&ready)) {
		i = (uint32_t)(UTIL_CONTAINER_OF(util_list_pop(&ready), struct erpc_wheel_item,
						 link) -
			       items);
		cr_assert_eq(i, last - 1);
		last = i;
	}
	cr_expect_eq(last, 0);
	erpc_wheel_fini(&w);
}

Test(erpc_wheel, an_empty_stretch_costs_nothing)
{
	uint32_t i;

	cr_assert_eq(erpc_wheel_init(&w, 0, ERPC_PACE_SHIFT, ERPC_PACE_SLOTS), 0);
	erpc_wheel_item_init(&items[0]);
	for (i = 0; i < 1000; i++) {
		insert(0, i * 100 * LAP, i * 100 * LAP + LAP - SLOT);
		cr_assert_eq(advance(i * 100 * LAP + LAP), 1);
	}
	erpc_wheel_fini(&w);
}

/* Step by step, the missed laps would take hours. */
Test(erpc_wheel, an_empty_wheel_skips_missed_laps)
{
	const uint64_t now = 1ull << 62;

	cr_assert_eq(erpc_wheel_init(&w, 0, ERPC_PACE_SHIFT, ERPC_PACE_SLOTS), 0);
	erpc_wheel_item_init(&items[0]);
	insert(0, now, now + 10 * SLOT);
	cr_expect_eq(erpc_wheel_next_ns(&w), now + 10 * SLOT);
	cr_expect_eq(advance(now + 9 * SLOT), 0);
	cr_expect_eq(advance(now + 10 * SLOT), 1);
	erpc_wheel_fini(&w);
}

Test(erpc_wheel, the_first_item_is_found_after_removals)
{
	cr_assert_eq(erpc_wheel_init(&w, 0, ERPC_PACE_SHIFT, ERPC_PACE_SLOTS), 0);
	cr_expect_null(erpc_wheel_first(&w));
	for (uint32_t i = 0; i < 3; i++) {
		erpc_wheel_item_init(&items[i]);
		insert(i, 0, (100 - 40 * i) * SLOT);
	}
	cr_expect_eq(erpc_wheel_first(&w), &items[2]);
	erpc_wheel_remove(&w, &items[2]);
	cr_expect_eq(erpc_wheel_first(&w), &items[1]);
	cr_expect_eq(erpc_wheel_next_ns(&w), 60 * SLOT, "bits of removed items are cleared");
	erpc_wheel_remove(&w, &items[1]);
	erpc_wheel_remove(&w, &items[0]);
	cr_expect_null(erpc_wheel_first(&w));
	cr_expect_eq(erpc_wheel_end_ns(&w, 3 * SLOT + 1), 4 * SLOT);
	cr_expect_eq(erpc_wheel_end_ns(&w, 4 * SLOT), 4 * SLOT);
	erpc_wheel_fini(&w);
}
