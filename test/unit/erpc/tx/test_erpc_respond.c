/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What an answer waits for: replies, but not for long; and bytes that are held, as long as it takes. */
#include "erpc/tx/erpc_respond.h"

#include <criterion/criterion.h>

#include "erpc/tx/erpc_piggyback.h"
#include "support/erpc_pair.h"

#define US  1000u
#define LEN 3900u /* a message fills a batch */

static struct erpc_pair p;

static void setup(void)
{
	erpc_pair_start(&p, 1, 5000);
	p.end[0].len_exact = 8;
	p.end[1].len_exact = 8;
}

/** End 0 says all that it may, until no more is heard. */
static void flood(void)
{
	uint32_t heard = UINT32_MAX;

	while (heard != p.end[1].heard && p.end[1].hold_cnt < PAIR_OWED_MAX) {
		heard = p.end[1].heard;
		while (!pair_send(&p.end[0], 0))
			;
		erpc_pair_run(&p, 100 * US);
	}
}

/** Each says something when it has heard the other. */
static void talk(void)
{
	pair_send(&p.end[0], 0);
	erpc_pair_run(&p, 10 * US);
	pair_send(&p.end[1], 0);
	erpc_pair_run(&p, 10 * US);
}

/** Who keeps bytes keeps no more than so many, because their sender waits: and goes on as they are released. */
static void held_is_bounded(unsigned talks)
{
	const struct erpc_session *s = p.end[1].s;
	const uint64_t most = ERPC_RETAINED_MAX + ERPC_BATCH_SLOTS * ERPC_BATCH_LONG;
	uint32_t heard;

	p.end[0].len_exact = LEN;
	p.end[1].hold_chance = 100;
	while (talks--)
		talk();
	cr_expect_leq(s->retained_len, most);
	flood();
	cr_expect_gt(s->retained_len, ERPC_RETAINED_MAX);
	cr_expect_leq(s->retained_len, most);
	heard = p.end[1].heard;
	while (s->retained_len > ERPC_RETAINED_MAX)
		cr_assert(pair_release(&p.end[1]));
	erpc_pair_run(&p, 100 * US);
	cr_expect_gt(p.end[1].heard, heard, "its sender is told, and goes on");
	p.end[1].hold_chance = 0;
	erpc_pair_end(&p);
}

Test(erpc_respond, what_is_held_is_bounded_and_its_release_is_told, .init = setup)
{
	held_is_bounded(0);
}

/** Where answers are used to ride along, they do not when too much is held. */
Test(erpc_respond, among_quick_replies_it_is_bounded_too, .init = setup)
{
	unsigned i;

	for (i = 0; p.end[1].s->quick_replies < ERPC_PIGGYBACK_TRUST; i++) {
		cr_assert_lt(i, 100);
		talk();
	}
	held_is_bounded(4 * ERPC_RETAINED_MAX / LEN);
}

/** A call that nobody answers keeps no batch: what is in it is known to have come, and nothing is repeated. */
Test(erpc_respond, a_reply_that_does_not_come_is_waited_for_no_longer_than_it_may, .init = setup)
{
	p.end[1].late_chance = 100;
	cr_assert_eq(pair_call(&p.end[0], 0), 0);
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	erpc_pair_run(&p, 2 * ERPC_REPLY_WAIT_NS);
	cr_expect_eq(p.end[1].owed_cnt, 1, "it is not answered");
	cr_expect_eq(p.end[0].arrived, p.end[0].s->posted_pos);
	cr_expect_eq(p.end[0].s->credits, p.end[0].s->credits_max);
	cr_expect_eq(p.end[0].ep->stats.timeouts, 0);
	erpc_pair_end(&p);
}
