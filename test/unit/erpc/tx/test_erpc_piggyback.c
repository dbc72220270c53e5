/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Piggybacked acks: used with traffic both ways, replaced by empty responses otherwise, and
 * correct.
 */
#include "erpc/tx/erpc_piggyback.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/erpc_pair.h"

#define ROUNDS  320u
#define SOON_NS 11000u /* a round trip and a little */

static struct erpc_pair p;
static uint32_t resps; /* empty RESP packets */
static uint32_t reqs;
static uint32_t lose; /* REQ packets to drop from now on */

static void look(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	struct wire_erpc_hdr h = erpc_pair_hdr(pkt);

	resps += h.kind == WIRE_ERPC_RESP && pkt->len == WIRE_ERPC_HDR_LEN;
	reqs += h.kind == WIRE_ERPC_REQ;
	if (h.kind == WIRE_ERPC_REQ && lose) {
		lose--;
		pkt->copies = 0;
	}
}

static void begin(uint64_t seed)
{
	resps = reqs = lose = 0;
	erpc_pair_init(&p, seed);
	p.net.hook = look;
	erpc_pair_open(&p);
	p.end[0].len_exact = p.end[1].len_exact = 8;
}

/** Runs until `e` has received everything. */
static void receive(struct pair_end *e)
{
	uint32_t steps = 0;

	while (e->received != e->peer->sent) {
		erpc_pair_run(&p, 5100);
		cr_assert_lt(++steps, 100000);
	}
}

static void ping_pong(uint32_t rounds)
{
	uint32_t i;

	for (i = 0; i < rounds; i++) {
		cr_assert_eq(pair_send(&p.end[0], 0), 0);
		receive(&p.end[1]);
		cr_assert_eq(pair_send(&p.end[1], 0), 0);
		receive(&p.end[0]);
	}
}

static uint64_t sum_losses(void)
{
	return p.end[0].ep->unread.losses + p.end[1].ep->unread.losses;
}

static void end(void)
{
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	cr_assert_eq(p.end[0].ep->stats->rx_bad + p.end[1].ep->stats->rx_bad, 0);
	cr_assert(util_list_is_empty(&p.end[0].ep->piggybacking));
	cr_assert(util_list_is_empty(&p.end[1].ep->piggybacking));
	erpc_pair_fini(&p);
}

Test(erpc_piggyback, a_ping_pong_has_two_packets_a_round)
{
	begin(1);
	ping_pong(ROUNDS);
	cr_expect_eq(reqs, 2 * ROUNDS);
	/* Samples of round trips, the first ones, and the last one to come. */
	cr_expect_leq(resps, 2 * (ROUNDS / ERPC_PIGGYBACK_SAMPLE + ERPC_PIGGYBACK_TRUST + 1), "%u",
		      resps);
	cr_expect_geq(resps, 2 * ROUNDS / ERPC_PIGGYBACK_SAMPLE - 2, "%u", resps);
	cr_expect_gt(p.end[0].s->flow.rto.srtt_ns, 0, "round trips are measured");
	cr_expect_eq(sum_losses(), 0);
	end();
}

Test(erpc_piggyback, a_receiver_without_replies_responds_at_once)
{
	uint32_t i;

	begin(2);
	for (i = 0; i < ROUNDS; i++) {
		cr_assert_eq(pair_send(&p.end[0], 0), 0);
		erpc_pair_run(&p, SOON_NS);
		cr_assert_eq(p.end[0].acked, p.end[0].s->flow.posted);
	}
	cr_expect_eq(resps, ROUNDS);
	end();
}

Test(erpc_piggyback, an_ack_without_a_batch_leaves_after_the_delay)
{
	struct pair_end *a = &p.end[0], *b = &p.end[1];

	begin(3);
	ping_pong(8);
	resps = 0;
	cr_assert_eq(pair_send(a, 0), 0);
	receive(b);
	cr_assert_neq(b->s->ack.wait_mask, 0);
	cr_assert(erpc_session_is_busy(b->s), "an ack is due");
	cr_assert_leq(erpc_ep_due_ns(b->ep), ERPC_PIGGYBACK_NS, "a timer is set");
	erpc_pair_run(&p, ERPC_PIGGYBACK_NS);
	erpc_pair_run(&p, SOON_NS);
	cr_assert_eq(b->s->ack.wait_mask | b->s->ack.empty_mask, 0);
	cr_assert_eq(resps, 1);
	cr_assert_eq(a->acked, a->s->flow.posted);
	cr_expect_eq(sum_losses(), 0);
	end();
}

Test(erpc_piggyback, few_acks_wait_when_one_side_stops_sending)
{
	uint32_t i;

	begin(4);
	ping_pong(8);
	for (i = 0; i < 3 * ERPC_PIGGYBACK_MAX; i++) {
		cr_assert_eq(pair_send(&p.end[0], 0), 0);
		receive(&p.end[1]);
		cr_assert_leq(__builtin_popcount(p.end[1].s->ack.wait_mask), ERPC_PIGGYBACK_MAX);
	}
	cr_assert_lt(p.end[1].s->trust.quick_replies, 0);
	resps = 0;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	erpc_pair_run(&p, SOON_NS);
	cr_assert_eq(resps, 1, "not again");
	end();
}

/** Lets one end compute after each `rounds` round trips. Returns how often of 100 an ack waited. */
static uint32_t count_waits(uint32_t rounds)
{
	uint32_t i, waited = 0;

	begin(30);
	ping_pong(8);
	for (i = 0; i < 100; i++) {
		ping_pong(rounds);
		erpc_ep_progress(p.end[1].ep, p.net.now_ns);
		fake_net_run(&p.net, p.net.now_ns + 6000);
		erpc_ep_progress(p.end[1].ep, p.net.now_ns);
		waited += p.end[1].acked != p.end[1].s->flow.posted;
		fake_net_run(&p.net, p.net.now_ns + 1000000);
	}
	end();
	return waited;
}

Test(erpc_piggyback, an_absent_end_delays_few_acks)
{
	cr_expect_leq(count_waits(1), 2);
	cr_expect_leq(count_waits(10), 100 * 10 / ERPC_PIGGYBACK_AWAY + 2);
	cr_expect_gt(count_waits(10), 0, "acks are tried");
}

Test(erpc_piggyback, a_flush_sends_waiting_acks)
{
	struct pair_end *b = &p.end[1];

	begin(5);
	ping_pong(8);
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	receive(b);
	cr_assert_neq(b->s->ack.wait_mask, 0);
	resps = 0;
	b->s->conn.chan.ops->flush(&b->s->conn.chan);
	cr_assert_eq(resps, 1);
	cr_assert_eq(b->s->ack.wait_mask | b->s->ack.empty_mask, 0);
	end();
}

Test(erpc_piggyback, losing_a_piggybacked_ack_costs_only_a_time_out)
{
	uint32_t round;

	for (round = 0; round < 30; round++) {
		begin(10 + round);
		ping_pong(7 + round);
		cr_assert_eq(pair_send(&p.end[0], 0), 0);
		receive(&p.end[1]);
		lose = 1 + round % 3;
		cr_assert_eq(pair_send(&p.end[1], 0), 0);
		receive(&p.end[0]);
		cr_assert_gt(sum_losses(), 0);
		ping_pong(20);
		end();
	}
}

Test(erpc_piggyback, numbers_wrap)
{
	unsigned i;

	begin(6);
	for (i = 0; i < 2; i++) {
		struct erpc_session *s = p.end[i].s;

		s->send.seq = s->send.seq_done = s->ack.seq = s->order.next = UINT32_MAX - 39;
	}
	ping_pong(80);
	cr_assert_gt(p.end[0].ep->stats->piggybacks, 60);
	end();
}

/** Forges an empty batch from end 1 with this `ack`. */
static void forge_ack(uint32_t ack)
{
	struct erpc_session *to = p.end[0].s, *from = p.end[1].s;
	struct wire_erpc_batch head = { .seq = from->send.seq, .ack = ack };
	uint8_t bytes[WIRE_ERPC_HDR_LEN + sizeof(head)];
	struct wire_erpc_hdr h = {
		.req_type = WIRE_ERPC_BATCH,
		.msg_size = sizeof(head),
		.session = to->num,
		.kind = WIRE_ERPC_REQ,
		.req_num = from->tx[0].c.req_num,
		.tag = to->tag,
	};

	wire_erpc_put(bytes, &h);
	memcpy(bytes + WIRE_ERPC_HDR_LEN, &head, sizeof(head));
	fake_net_forge(&p.net, 1, 0, bytes, sizeof(bytes), 1);
	erpc_pair_run(&p, 10);
}

Test(erpc_piggyback, an_old_ack_changes_nothing)
{
	begin(7);
	ping_pong(20);
	erpc_pair_settle(&p);
	forge_ack(p.end[0].s->send.seq_done - 5);
	cr_assert_eq(p.end[0].down, 0);
	cr_assert_eq(p.end[0].ep->stats->rx_bad, 0);
	erpc_pair_fini(&p);
}

Test(erpc_piggyback, an_ack_of_an_unsent_batch_fails_the_session)
{
	begin(8);
	ping_pong(8);
	erpc_pair_settle(&p);
	forge_ack(p.end[0].s->send.seq + 1);
	cr_assert_eq(p.end[0].ep->stats->rx_bad, 1);
	cr_assert_neq(p.end[0].s->err, 0);
	erpc_pair_fini(&p);

	/* The batch has begun, and lacks credits. */
	begin(9);
	ping_pong(8);
	erpc_pair_settle(&p);
	p.end[0].s->flow.credits = 0;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	forge_ack(p.end[0].s->send.seq);
	cr_assert_eq(p.end[0].ep->stats->rx_bad, 1);
	cr_assert_neq(p.end[0].s->err, 0);
	erpc_pair_fini(&p);
}

/** Takes all credits but `left`. Returns their number. */
static uint32_t leave_credits(struct erpc_session *s, uint32_t left)
{
	uint32_t taken = s->flow.credits - left;

	s->flow.credits = left;
	return taken;
}

/** An ack must not wait for a batch that cannot leave. */
Test(erpc_piggyback, without_credits_acks_do_not_wait)
{
	struct erpc_session *s;
	uint32_t taken;

	begin(40);
	ping_pong(8);
	erpc_pair_settle(&p);
	s = p.end[1].s;
	s->trust.quick_replies = ERPC_PIGGYBACK_TRUST;
	taken = leave_credits(s, s->credit_max / 2);
	resps = 0;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	receive(&p.end[1]);
	cr_expect_eq(s->ack.wait_mask, 0);
	erpc_pair_run(&p, SOON_NS);
	cr_expect_eq(resps, 1);
	cr_expect_eq(p.end[0].acked, p.end[0].s->flow.posted);

	/* With one more credit it waits. */
	s->trust.quick_replies = ERPC_PIGGYBACK_TRUST;
	s->flow.credits++;
	taken--;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	receive(&p.end[1]);
	cr_expect_neq(s->ack.wait_mask, 0);

	/* Without credits a batch that begins takes no ack along: it may not leave. */
	taken += leave_credits(s, 0);
	resps = 0;
	cr_assert_eq(pair_send(&p.end[1], 0), 0);
	cr_expect_neq(s->ack.wait_mask, 0);
	erpc_pair_run(&p, ERPC_PIGGYBACK_NS + SOON_NS);
	cr_expect_eq(resps, 1);
	s->flow.credits += taken;
	erpc_session_mark(s);
	end();
}

/**
 * Batches of calls have responses with bytes: their arrival is known when the slot begins another
 * request, or by a batch that is 8 further, and not before.
 */
Test(erpc_piggyback, replies_are_acknowledged_by_a_batch_8_further)
{
	struct pair_end *a = &p.end[0], *b = &p.end[1];
	uint32_t first, i;

	begin(41);
	for (i = 0; i < 22; i++) { /* replies get longer with the number of the call */
		cr_assert_eq(pair_send(a, 0), 0);
		erpc_pair_settle(&p);
	}
	a->len_exact = 900; /* each fills a batch, and its reply a response */
	first = a->s->send.seq;
	for (i = 0; i < ERPC_BATCH_SLOTS; i++) {
		cr_assert_eq(pair_call(a, 0), 0);
		erpc_ep_progress(a->ep, p.net.now_ns);
	}
	erpc_pair_settle(&p);
	cr_assert_eq(a->replies, ERPC_BATCH_SLOTS);
	cr_assert_eq(a->s->send.seq, first + ERPC_BATCH_SLOTS);
	cr_expect_eq(b->s->ack.seq, first, "the first response is not acknowledged yet");
	/* Only the first slot is used from now on. */
	for (i = first + ERPC_BATCH_SLOTS; i < first + 3 * ERPC_SLOTS; i++) {
		uint32_t passed = i - ERPC_SLOTS + 1;

		cr_assert_eq(pair_send(a, 0), 0);
		erpc_pair_settle(&p);
		cr_assert_eq(a->s->send.seq, i + 1);
		if ((int32_t)(passed - first) <= 1)
			cr_expect_eq(b->s->ack.seq, first + 1, "batch %u", i - first);
		else if (passed - first < ERPC_BATCH_SLOTS)
			cr_expect_eq(b->s->ack.seq, passed, "batch %u", i - first);
		else
			cr_expect_eq(b->s->ack.seq, i + 1, "batch %u", i - first);
	}
	end();
}
