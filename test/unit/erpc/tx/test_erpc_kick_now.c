/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * First transmission of a request of one packet: equal to that of erpc_kick, and only when
 * permitted.
 */
#include "erpc/tx/erpc_kick.h"

#include <criterion/criterion.h>
#include <string.h>

#include "support/erpc_pair.h"

#define SLOT 2u
#define LEN  40u

static struct erpc_pair pairs[2];

static void setup(void)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		erpc_pair_start(&pairs[i], 7, PAIR_MTU);
		pairs[i].end[0].ep->now_ns += 12345;
	}
}

static void teardown(void)
{
	unsigned i;

	for (i = 0; i < 2; i++)
		erpc_pair_fini(&pairs[i]);
}

static struct erpc_buf *request(struct erpc_ep *ep)
{
	struct erpc_buf *buf = erpc_buf_alloc(&ep->bufs, LEN);

	cr_assert(buf);
	buf->len = LEN;
	memset(buf->data, 0x5A, LEN);
	return buf;
}

/** Compares the state of two slots, except for the address of the buffer. */
static void compare_slot(const struct erpc_tx *a, const struct erpc_tx *b)
{
	cr_expect(!memcmp(&a->c, &b->c, sizeof(a->c)));
	cr_expect_eq(a->out.unsent, b->out.unsent);
	cr_expect_eq(a->get_op, b->get_op);
	cr_expect_eq(a->sent_ns, b->sent_ns);
	cr_expect_eq(a->rtt_start_ns, b->rtt_start_ns);
	cr_expect_eq(a->rtt_pkt, b->rtt_pkt);
	cr_expect_eq(a->c.window, b->c.window);
	cr_expect_eq(a->pkt_seq, b->pkt_seq);
	cr_expect_eq(a->tries, b->tries);
	cr_expect_eq(a->type, b->type);
	cr_expect_eq(a->is.rtt_pending, b->is.rtt_pending);
	cr_expect_eq(a->is.prompt, b->is.prompt);
	cr_expect_eq(a->is.went_back || a->is.overtaken || a->is.kept || a->is.early,
		     b->is.went_back || b->is.overtaken || b->is.kept || b->is.early);
}

static void compare(const struct erpc_session *a, const struct erpc_session *b)
{
	const struct erpc_out *oa = &a->ep->out, *ob = &b->ep->out;

	compare_slot(&a->tx[SLOT], &b->tx[SLOT]);
	cr_expect_eq(a->flow.credits, b->flow.credits);
	cr_expect_eq(a->send.free_mask, b->send.free_mask);
	cr_expect_eq(a->send.pending_mask, b->send.pending_mask);
	cr_expect_eq(a->flow.pkts_sent, b->flow.pkts_sent);
	cr_expect_eq(a->flow.watch_ns, b->flow.watch_ns);
	cr_expect_eq(a->flow.fresh, b->flow.fresh);
	cr_assert_eq(oa->cnt, 1);
	cr_assert_eq(ob->cnt, 1);
	cr_assert_eq(oa->pkt[0].len[0], WIRE_ERPC_HDR_LEN + LEN);
	cr_expect_eq(ob->pkt[0].len[0], oa->pkt[0].len[0]);
	cr_expect(!memcmp(oa->pkt[0].base[0], ob->pkt[0].base[0], oa->pkt[0].len[0]),
		  "the packet is the same");
}

/** Drops the request. */
static void undo(struct erpc_session *s)
{
	erpc_buf_free(&s->ep->bufs, erpc_kick_end(s, SLOT));
	cr_expect_eq(s->ep->out.cnt, 0);
}

static void both_ways(bool running)
{
	struct erpc_session *s = pairs[0].end[0].s, *t = pairs[1].end[0].s;

	s->ep->running = running;
	t->ep->running = running;
	cr_assert(erpc_kick_may_now(s, LEN));
	erpc_kick_now(s, SLOT, WIRE_ERPC_BATCH, request(s->ep), s->payload);
	cr_assert(erpc_kick_begin(t, SLOT, WIRE_ERPC_BATCH, request(t->ep), t->payload));
	erpc_kick(t);
	compare(s, t);
	undo(s);
	undo(t);
	s->ep->running = false;
	t->ep->running = false;
}

TestSuite(erpc_kick_now, .init = setup, .fini = teardown);

Test(erpc_kick_now, leaves_like_any_request)
{
	both_ways(false);
	both_ways(true);
}

Test(erpc_kick_now, requests_that_must_wait_do_not_leave)
{
	struct erpc_session *s = pairs[0].end[0].s;
	uint32_t credits = s->flow.credits;

	cr_expect(erpc_kick_may_now(s, s->payload));
	cr_expect_not(erpc_kick_may_now(s, s->payload + 1), "two packets");
	s->flow.credits = 0;
	cr_expect_not(erpc_kick_may_now(s, LEN), "no credit");
	s->flow.credits = credits;
	s->send.pending_mask = 1;
	cr_expect_not(erpc_kick_may_now(s, LEN), "others come first");
	s->send.pending_mask = 0;
	s->ep->out.cnt = ERPC_BURST;
	cr_expect_not(erpc_kick_may_now(s, LEN), "the burst is full");
	s->ep->out.cnt = 0;
	s->time.timely.rate = s->time.timely.cfg->max_rate / 2;
	erpc_session_note_rate(s, true);
	cr_expect_not(erpc_kick_may_now(s, LEN), "paced");
	erpc_session_note_rate(s, false);
	cr_expect(erpc_kick_may_now(s, LEN), "the endpoint does not pace");
	s->time.timely.rate = s->time.timely.cfg->max_rate;
	erpc_session_note_rate(s, true);
	cr_expect(erpc_kick_may_now(s, LEN));
}
