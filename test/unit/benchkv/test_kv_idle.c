/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Threads without work: how often they stay, yield and sleep. */
#include <criterion/criterion.h>

#include "benchkv/kv_idle.h"

#define LONG_NS (60ull * 1000000000)

/* Waits until the stay has ended, if there is one, and returns whether there was. */
static bool stays(struct kv_idle *idle)
{
	bool stayed;

	cr_assert_not(kv_idle_due(idle, false));
	stayed = idle->stays;
	while (idle->stays)
		cr_assert_not(kv_idle_due(idle, false));
	return stayed;
}

Test(kv_idle, a_wait_stays_first_and_for_its_time_at_most_once)
{
	struct kv_idle idle = { .spin_ns = LONG_NS };
	uint64_t begin = kv_now_ns();

	cr_assert(stays(&idle));
	cr_assert_geq(kv_now_ns() - begin, KV_STAY_NS);
	cr_assert_not(kv_idle_due(&idle, false));
	cr_assert_not(idle.stays, "a wait that has yielded stays again");
}

Test(kv_idle, stays_in_vain_become_rare_but_do_not_end)
{
	struct kv_idle idle = { .spin_ns = LONG_NS };
	unsigned waits = 64u << KV_STAY_MISS, cnt = 0;

	for (unsigned i = 0; i < waits; i++) {
		cnt += stays(&idle);
		kv_idle_due(&idle, true);
	}
	cr_assert_geq(cnt, 64u);
	cr_assert_leq(cnt, 64u + KV_STAY_MISS + 1);
}

Test(kv_idle, work_during_a_stay_makes_the_next_wait_stay)
{
	struct kv_idle idle = { .spin_ns = LONG_NS };

	for (unsigned i = 0; i < 100 || idle.skip; i++) {
		stays(&idle);
		kv_idle_due(&idle, true);
		cr_assert_lt(i, 100u + (1u << KV_STAY_MISS));
	}
	cr_assert_not(kv_idle_due(&idle, false));
	kv_idle_due(&idle, true);
	cr_assert_eq(idle.miss, 0, "work came during the stay");
	cr_assert(stays(&idle));
}

Test(kv_idle, a_thread_sleeps_after_its_time_without_work)
{
	struct kv_idle idle = { .spin_ns = 2000000 };
	uint64_t begin = kv_now_ns();

	while (!kv_idle_due(&idle, false))
		;
	cr_assert_geq(kv_now_ns() - begin, 2000000u);
	cr_assert_not(kv_idle_due(&idle, true), "work that is there is left for a sleep");
}
