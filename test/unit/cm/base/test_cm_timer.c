/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The heap of timers: cm/base/cm_timer.c. */
#include "cm/base/cm_timer.h"

#include <criterion/criterion.h>

#include "support/rng.h"
#include "util/list.h"

#define TIMERS 200

struct item {
	struct cm_timer timer;
	bool is_armed; /* state of the model */
	uint64_t at_ns;
	unsigned fired;
};

static struct item items[TIMERS];
static uint64_t last_fired_at;
static struct cm_timers heap;

static void on_fire(struct cm_timer *timer)
{
	struct item *item = UTIL_CONTAINER_OF(timer, struct item, timer);

	cr_assert(item->is_armed);
	cr_assert(!timer->is_armed);
	cr_assert(item->at_ns >= last_fired_at, "fired out of order");
	last_fired_at = item->at_ns;
	item->is_armed = false;
	item->fired++;
}

static uint64_t earliest(void)
{
	uint64_t at = UINT64_MAX;

	for (int i = 0; i < TIMERS; i++)
		if (items[i].is_armed && items[i].at_ns < at)
			at = items[i].at_ns;
	return at;
}

static void step(struct rng *rng, uint64_t *now)
{
	struct item *item = &items[rng_below(rng, TIMERS)];

	switch (rng_below(rng, 8)) {
	case 0:
		*now += rng_below(rng, 50);
		last_fired_at = 0;
		cm_timers_run(&heap, *now);
		break;
	case 1:
	case 2:
		cm_timer_cancel(&heap, &item->timer);
		item->is_armed = false;
		break;
	default:
		item->at_ns = *now + rng_below(rng, 300);
		item->is_armed = true;
		cm_timer_arm(&heap, &item->timer, item->at_ns);
		break;
	}
}

static void run(uint64_t seed, unsigned steps)
{
	struct rng rng = { seed };
	uint64_t now = 1000;

	heap.root = NULL;
	for (int i = 0; i < TIMERS; i++) {
		items[i] = (struct item){ .is_armed = false };
		cm_timer_init(&items[i].timer, on_fire);
	}
	for (unsigned i = 0; i < steps; i++) {
		step(&rng, &now);
		cr_assert_eq(heap.root ? heap.root->at_ns : UINT64_MAX, earliest(),
			     "seed %llu, step %u", (unsigned long long)seed, i);
	}
	last_fired_at = 0;
	cm_timers_run(&heap, UINT64_MAX);
	cr_assert_null(heap.root);
	cr_assert_eq(earliest(), UINT64_MAX);
}

Test(cm_timer, the_root_is_the_earliest_after_every_step)
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		run(seed, 20000);
}

static unsigned rearm_cnt;

static void on_fire_rearm(struct cm_timer *timer)
{
	if (++rearm_cnt < 10)
		cm_timer_arm(&heap, timer, rearm_cnt);
}

Test(cm_timer, a_timer_can_arm_itself_while_it_fires)
{
	struct cm_timer timer;

	cm_timer_init(&timer, on_fire_rearm);
	cm_timer_arm(&heap, &timer, 0);
	cm_timers_run(&heap, 5);
	cr_assert_eq(rearm_cnt, 6); /* at 0, 1, 2, 3, 4, 5 */
	cm_timers_run(&heap, 100);
	cr_assert_eq(rearm_cnt, 10);
	cr_assert(!timer.is_armed);
}

static void on_fire_kill(struct cm_timer *timer)
{
	cm_timer_cancel(&heap, timer + 1);
	rearm_cnt++;
}

Test(cm_timer, a_timer_can_cancel_another_that_is_due)
{
	struct cm_timer timers[2];

	cm_timer_init(&timers[0], on_fire_kill);
	cm_timer_init(&timers[1], on_fire_kill);
	cm_timer_arm(&heap, &timers[0], 1);
	cm_timer_arm(&heap, &timers[1], 2);
	cm_timers_run(&heap, 3);
	cr_assert_eq(rearm_cnt, 1);
	cr_assert_null(heap.root);
}
