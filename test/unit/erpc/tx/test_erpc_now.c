/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages that must leave at once leave, until the process has earned trust. */
#include "erpc/tx/erpc_now.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "erpc/tx/erpc_batch.h"
#include "support/erpc_pair.h"

#define US 1000u

static struct erpc_pair p;

static void begin(void)
{
	erpc_pair_start(&p, 3, PAIR_MTU);
	p.end[0].len_exact = 16;
}

static void end(void)
{
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}

static struct erpc_ep *sender(void)
{
	return p.end[0].ep;
}

/** Sends up to `max` messages without a progress call. Returns how many were accepted. */
static unsigned burst(unsigned max)
{
	unsigned n = 0;

	while (n < max && !pair_send(&p.end[0], CORE_SEND_NOW))
		n++;
	return n;
}

/** Sends two messages and polls within `gap_ns`. */
static void round_of(uint64_t gap_ns)
{
	cr_assert_eq(burst(2), 2);
	erpc_pair_run(&p, gap_ns);
	erpc_pair_settle(&p);
}

static void earn_trust(void)
{
	unsigned rounds;

	for (rounds = 0; !erpc_now_is_trusted(sender()); rounds++) {
		cr_assert_lt(rounds, 4 * ERPC_NOW_MOST);
		round_of(10 * US);
	}
}

/** Comes back late: the next poll is `ns` after the last one. */
static void compute(uint64_t ns)
{
	p.net.now_ns += ns;
	erpc_ep_progress(sender(), p.net.now_ns);
}

/* The peer gets them while this end never polls. */
Test(erpc_now, each_leaves_while_there_is_a_slot)
{
	unsigned n;

	begin();
	n = burst(ERPC_BATCH_SLOTS);
	cr_expect_null(p.end[0].s->batch.buf, "nothing waits here");
	cr_expect_eq(sender()->out.cnt, 0);
	cr_expect_not(erpc_now_stays(p.end[0].s, CORE_SEND_NOW));
	fake_net_run(&p.net, p.net.now_ns + p.net.latency_ns);
	erpc_ep_progress(p.end[1].ep, p.net.now_ns);
	cr_expect_eq(p.end[1].received, n);
	end();
}

/* Responses are there: progress, which the caller makes, lets it leave. */
Test(erpc_now, one_without_a_slot_leaves_with_progress)
{
	struct erpc_session *s;

	begin();
	s = p.end[0].s;
	burst(ERPC_BATCH_SLOTS);
	fake_net_run(&p.net, p.net.now_ns + p.net.latency_ns);
	erpc_ep_progress(p.end[1].ep, p.net.now_ns);
	fake_net_run(&p.net, p.net.now_ns + p.net.latency_ns);
	cr_assert_eq(burst(1), 1);
	cr_expect_not_null(s->batch.buf);
	cr_expect(erpc_now_stays(s, CORE_SEND_NOW));
	s->conn.chan.stays = true; /* core does so */
	erpc_ep_progress(sender(), p.net.now_ns);
	cr_expect_null(s->batch.buf);
	cr_expect_not(s->conn.chan.stays);
	end();
}

static bool long_one_leaves(unsigned flags)
{
	p.end[0].len_exact = 3 * PAIR_MTU;
	cr_assert_eq(pair_send_buf(&p.end[0], flags), 0);
	return !p.end[0].s->batch.buf;
}

/* Such a message may be complete for its sender. */
Test(erpc_now, a_message_of_several_packets_leaves_while_there_is_a_slot)
{
	begin();
	for (unsigned i = 0; i < ERPC_BATCH_SLOTS; i++)
		cr_expect(long_one_leaves(0), "%u", i);
	cr_expect_not(long_one_leaves(0));
	cr_expect(sender()->now.stays);
	end();
	begin();
	cr_expect_not(long_one_leaves(CORE_SEND_MORE));
	end();
}

/* The packets of a long one wait for credits. */
Test(erpc_now, one_without_credits_stays)
{
	struct erpc_session *s;
	uint32_t avail;

	begin();
	s = p.end[0].s;
	avail = s->flow.credits;
	p.end[0].len_exact = 3 * s->payload;
	s->flow.credits = 3;
	cr_expect_eq(pair_send(&p.end[0], CORE_SEND_NOW), 0);
	cr_expect(sender()->now.stays);
	cr_expect(erpc_now_stays(s, CORE_SEND_NOW));
	s->flow.credits = avail - 3;
	end();
}

/* Progress is not made for other packets of the session, nor for messages of other sessions. */
Test(erpc_now, what_has_left_does_not_stay)
{
	struct erpc_session *s;

	begin();
	s = p.end[0].s;
	sender()->now.stays = true; /* a message of another session */
	cr_assert_eq(burst(1), 1);
	cr_expect_not(erpc_now_stays(s, CORE_SEND_NOW));
	sender()->now.stays = false;
	s->send.pending_mask |= 1u << ERPC_GET_SLOT; /* a GET whose window is full */
	cr_assert_eq(burst(1), 1);
	cr_expect_not(sender()->now.stays);
	cr_expect_not(erpc_now_stays(s, CORE_SEND_NOW));
	end();
}

Test(erpc_now, after_many_quick_returns_they_gather)
{
	begin();
	earn_trust();
	cr_expect_eq(burst(20), 20);
	cr_expect_not_null(p.end[0].s->batch.buf);
	cr_expect_eq(__builtin_popcount(erpc_batch_busy(p.end[0].s)), ERPC_NOW_FEW,
		     "behind few batches");
	end();
}

/* Four times as many are needed then. */
Test(erpc_now, a_late_return_with_messages_that_waited_ends_trust_for_longer)
{
	uint32_t trust;

	begin();
	earn_trust();
	trust = sender()->now.trust;
	cr_assert_gt(burst(20), ERPC_NOW_FEW);
	compute(2 * ERPC_NOW_SOON_NS);
	cr_expect_not(erpc_now_is_trusted(sender()));
	cr_expect_eq(sender()->now.trust, 4 * trust);
	erpc_pair_settle(&p);
	burst(ERPC_BATCH_SLOTS);
	cr_expect_null(p.end[0].s->batch.buf);
	end();
}

Test(erpc_now, a_late_return_without_such_messages_changes_nothing)
{
	begin();
	earn_trust();
	compute(10 * ERPC_NOW_SOON_NS);
	cr_expect(erpc_now_is_trusted(sender()));
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	compute(10 * ERPC_NOW_SOON_NS);
	cr_expect(erpc_now_is_trusted(sender()));
	cr_assert_eq(burst(1), 1);
	compute(10 * ERPC_NOW_SOON_NS);
	cr_expect_not(erpc_now_is_trusted(sender()));
	cr_expect_eq(sender()->now.trust, ERPC_NOW_TRUST, "none had waited");
	end();
}

Test(erpc_now, trust_has_a_limit)
{
	struct erpc_ep ep = { .now = { .trust = ERPC_NOW_TRUST } };
	unsigned i;

	for (i = 0; i < 100; i++) {
		ep.now.posted = ep.now.stays = true;
		erpc_now_polled(&ep, ep.now_ns + ERPC_NOW_SOON_NS + 1);
	}
	cr_expect_eq(ep.now.trust, ERPC_NOW_MOST);
	for (i = 0; i < ERPC_NOW_MOST; i++) {
		cr_assert_not(erpc_now_is_trusted(&ep));
		ep.now.posted = ep.now.stays = true;
		erpc_now_polled(&ep, ep.now_ns + ERPC_NOW_SOON_NS);
	}
	cr_expect(erpc_now_is_trusted(&ep));
}
