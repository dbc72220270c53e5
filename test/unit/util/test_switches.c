/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A thread that yields to another on its processor notices that; one that sleeps does not. */
#include "util/switches.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define PATIENCE_S 60u

static bool stop; /* atomic */

static void pin(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void *yield(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		sched_yield();
	return NULL;
}

/** Counts events up to the next reading. Returns what it says. */
static bool read_next(struct util_switches *s, void (*between)(void))
{
	uint32_t cnt = UTIL_SWITCHES_EVENTS;
	bool shared = false;

	while (cnt--) {
		between();
		shared = util_switches_event(s);
	}
	return shared;
}

static void give_way(void)
{
	sched_yield();
}

static void snooze(void)
{
	usleep(100);
}

/* The scheduler may favour one of the two for a while, so that a yield returns at once. */
Test(switches, a_thread_that_yields_to_another_notices_it, .timeout = PATIENCE_S)
{
	struct util_switches s = { .events = 0 };
	pthread_t thread;

	pin();
	cr_assert_eq(pthread_create(&thread, NULL, yield, NULL), 0);
	while (!read_next(&s, give_way))
		;
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* Other processes of the machine may run here: one quiet reading in many is enough. */
Test(switches, a_thread_that_sleeps_shares_nothing, .timeout = PATIENCE_S)
{
	struct util_switches s = { .events = 0 };

	read_next(&s, snooze);
	while (read_next(&s, snooze))
		;
}

/* Switches before the first event do not count. */
Test(switches, the_first_reading_says_nothing)
{
	struct util_switches s = { .events = 0, .seen = -1000000 };

	cr_expect_not(util_switches_event(&s));
	s.seen = -1000000;
	cr_expect(read_next(&s, snooze));
}

/** The kernel is asked once in UTIL_SWITCHES_EVENTS. */
Test(switches, events_between_two_readings_repeat_the_last)
{
	struct util_switches s = { .events = 1, .shared = true };

	for (uint32_t i = 1; i < UTIL_SWITCHES_EVENTS; i++) {
		cr_expect(util_switches_event(&s));
		cr_expect_eq(s.seen, 0);
	}
}
