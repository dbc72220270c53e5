/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The wait of responses: for replies, bounded; for a release of retained bytes, unbounded. */
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

/** Sends from end 0 until nothing more is delivered. */
static void flood(void)
{
	uint32_t received = UINT32_MAX;

	while (received != p.end[1].received && p.end[1].retained_cnt < PAIR_PENDING_MAX) {
		received = p.end[1].received;
		while (!pair_send(&p.end[0], 0))
			;
		erpc_pair_run(&p, 100 * US);
	}
}

/** Sends a message from each end after receiving the other's. */
static void exchange(void)
{
	pair_send(&p.end[0], 0);
	erpc_pair_run(&p, 10 * US);
	pair_send(&p.end[1], 0);
	erpc_pair_run(&p, 10 * US);
}

/**
 * Asserts that retained bytes are bounded as their sender waits, and that it goes on after a
 * release.
 */
static void retained_is_bounded(unsigned exchanges)
{
	const struct erpc_session *s = p.end[1].s;
	const uint64_t most = ERPC_RETAINED_MAX + ERPC_BATCH_SLOTS * ERPC_BATCH_LONG;
	uint32_t received;

	p.end[0].len_exact = LEN;
	p.end[1].retain_chance = 100;
	while (exchanges--)
		exchange();
	cr_expect_leq(s->resp.retained_len, most);
	flood();
	cr_expect_gt(s->resp.retained_len, ERPC_RETAINED_MAX);
	cr_expect_leq(s->resp.retained_len, most);
	received = p.end[1].received;
	while (s->resp.retained_len > ERPC_RETAINED_MAX)
		cr_assert(pair_release(&p.end[1]));
	erpc_pair_run(&p, 100 * US);
	cr_expect_gt(p.end[1].received, received, "the sender goes on");
	p.end[1].retain_chance = 0;
	erpc_pair_end(&p);
}

TestSuite(erpc_respond, .init = setup);

Test(erpc_respond, retained_bytes_are_bounded_and_a_release_resumes_the_sender)
{
	retained_is_bounded(0);
}

/** With piggybacked acks, too many retained bytes end them. */
Test(erpc_respond, retained_bytes_are_bounded_with_piggybacked_acks)
{
	unsigned i;

	for (i = 0; p.end[1].s->trust.quick_replies < ERPC_PIGGYBACK_TRUST; i++) {
		cr_assert_lt(i, 100);
		exchange();
	}
	retained_is_bounded(4 * ERPC_RETAINED_MAX / LEN);
}

/** A call without reply does not block its batch: it is acknowledged, and nothing is repeated. */
Test(erpc_respond, the_wait_for_a_reply_is_bounded)
{
	p.end[1].defer_chance = 100;
	cr_assert_eq(pair_call(&p.end[0], 0), 0);
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	erpc_pair_run(&p, 2 * ERPC_REPLY_WAIT_NS);
	cr_expect_eq(p.end[1].pending_cnt, 1, "the call has no reply");
	cr_expect_eq(p.end[0].acked, p.end[0].s->flow.posted);
	cr_expect_eq(p.end[0].s->flow.credits, p.end[0].s->credit_max);
	cr_expect_eq(p.end[0].ep->unread.timeouts, 0);
	erpc_pair_end(&p);
}
