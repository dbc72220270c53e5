/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoints, session and time of a pair: see erpc_pair.h. */
#include "support/erpc_pair.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/erpc_pair_user.h"
#include "support/pool_used.h"

#define PAIR_RX_CNT  256u
#define PAIR_TX_CNT  64u
#define PAIR_POLL_NS 500u

static void pair_failed(struct erpc_session *s)
{
	erpc_session_end(s);
	if (s->user)
		s->conn.up->on_down(&s->conn.chan, s->err);
}

/* ---- open and close ---- */

void erpc_pair_init(struct erpc_pair *p, uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	fake_net_init(&p->net, seed);
	p->net.now_ns = 1000000;
	p->rng.state = seed * 7919;
}

void erpc_pair_join(struct erpc_ep *a, struct erpc_ep *b, struct erpc_session **sa,
		    struct erpc_session **sb)
{
	struct wire_erpc_params ha, hb;
	struct dev_dgram_ah *ah;
	struct dev_desc desc;

	cr_assert_eq(erpc_session_open(a, &ha, sa), 0);
	cr_assert_eq(erpc_session_open(b, &hb, sb), 0);
	cr_assert_eq(b->dg->ops->describe(b->dg, &desc), 0);
	cr_assert_eq(a->dg->ops->resolve(a->dg, &desc, &ah), 0);
	cr_assert_eq(erpc_session_connect(*sa, &hb, ah), 0);
	cr_assert_eq(a->dg->ops->describe(a->dg, &desc), 0);
	cr_assert_eq(b->dg->ops->resolve(b->dg, &desc, &ah), 0);
	cr_assert_eq(erpc_session_connect(*sb, &ha, ah), 0);
	erpc_session_attach(*sa);
	erpc_session_attach(*sb);
}

static void pair_end_open(struct erpc_pair *p, struct pair_end *e)
{
	struct dev_dgram_attr dg_attr = { .rx_cnt = PAIR_RX_CNT, .tx_cnt = PAIR_TX_CNT };
	struct erpc_ep_attr attr = {
		.tx_cnt = PAIR_TX_CNT,
		.up = &pair_upcalls,
		.link_rate = p->pace_rate,
		.seed = rng_next(&p->rng) | 1,
		.failed = pair_failed,
	};
	uint32_t i;

	cr_assert_eq(fake_net_ops.open(fake_net_dev(&p->net), &dg_attr, &attr.dg), 0);
	cr_assert_eq(erpc_ep_open(&attr, &e->ep), 0);
	e->rng = &p->rng;
	e->len_max = 200;
	e->get_max = PAIR_GET_LEN;
	e->memory = malloc(PAIR_GET_LEN);
	for (i = 0; i < PAIR_GET_LEN; i++)
		e->memory[i] = (uint8_t)rng_next(&p->rng);
	for (i = 0; i < PAIR_GET_MAX; i++)
		e->gets[i].buf = malloc(PAIR_GET_LEN);
}

void erpc_pair_open(struct erpc_pair *p)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		pair_end_open(p, &p->end[i]);
		p->end[i].peer = &p->end[!i];
	}
	erpc_pair_join(p->end[0].ep, p->end[1].ep, &p->end[0].s, &p->end[1].s);
	for (i = 0; i < 2; i++)
		p->end[i].s->user = &p->end[i];
}

static void pair_end_close(struct pair_end *e)
{
	uint32_t i;

	for (i = 0; i < PAIR_GET_MAX; i++)
		if (e->gets[i].exposure.chan)
			e->gets[i].exposure.chan->ops->unexpose(e->gets[i].exposure.chan,
								&e->gets[i].exposure);
	if (e->s) {
		if (!e->s->err)
			e->s->err = -FI_ESHUTDOWN;
		erpc_session_end(e->s);
	}
}

/** Asserts that buffers are free or wait for the device. */
static void pair_check_bufs(const struct erpc_bufs *bufs)
{
	const struct util_list *it;
	size_t waiting = 0;

	for (it = bufs->waiting.next; it != &bufs->waiting; it = it->next)
		waiting++;
	cr_assert_eq(bufs->used_cnt, waiting);
}

void erpc_pair_fini(struct erpc_pair *p)
{
	unsigned i, k;

	for (i = 0; i < 2; i++)
		pair_end_close(&p->end[i]);
	for (i = 0; i < 2; i++) {
		if (p->end[i].s)
			erpc_pair_close(p->end[i].s);
		cr_assert_eq(p->end[i].ep->dg->rx_retained, 0, "every receive buffer was returned");
		cr_assert_eq(p->end[i].ep->session_cnt, 0);
		cr_assert_eq(p->end[i].ep->promised, 0);
	}
	/* Buffers that the device still reads return with its reports. */
	for (i = 0; i < 2; i++) {
		fake_net_run(&p->net, p->net.now_ns + 1000000);
		erpc_ep_progress(p->end[i].ep, p->net.now_ns);
		pair_check_bufs(&p->end[i].ep->bufs);
		erpc_ep_close(p->end[i].ep);
		free(p->end[i].memory);
		for (k = 0; k < PAIR_GET_MAX; k++)
			free(p->end[i].gets[k].buf);
	}
	fake_net_fini(&p->net);
}

void erpc_pair_start(struct erpc_pair *p, uint64_t seed, uint32_t mtu)
{
	erpc_pair_init(p, seed);
	p->net.mtu = mtu;
	erpc_pair_open(p);
}

void erpc_pair_warm(struct erpc_pair *p)
{
	unsigned i;

	p->end[0].len_exact = 100;
	for (i = 0; i < 20; i++) {
		cr_assert_eq(pair_send(&p->end[0], 0), 0);
		erpc_pair_settle(p);
	}
	cr_assert_gt(p->end[0].s->flow.rto.srtt_ns, 0);
	cr_assert_eq(p->end[0].ep->unread.losses, 0);
}

void erpc_pair_end(struct erpc_pair *p)
{
	erpc_pair_settle(p);
	erpc_pair_check(p);
	erpc_pair_fini(p);
}

struct wire_erpc_hdr erpc_pair_hdr(const struct fake_pkt *pkt)
{
	struct wire_erpc_hdr h = { 0 };

	cr_assert(wire_erpc_get(&h, pkt->data, pkt->len));
	return h;
}

/* ---- time ---- */

/** Returns the earliest timer of both ends, or `until`. */
static uint64_t pair_next_ns(const struct erpc_pair *p, uint64_t until)
{
	uint64_t a = erpc_ep_due_ns(p->end[0].ep), b = erpc_ep_due_ns(p->end[1].ep);
	uint64_t due = a < b ? a : b;

	if (due < PAIR_POLL_NS)
		due = PAIR_POLL_NS;
	return due < until - p->net.now_ns ? p->net.now_ns + due : until;
}

void erpc_pair_run(struct erpc_pair *p, uint64_t ns)
{
	uint64_t until = p->net.now_ns + ns;

	do {
		/* Both ends sleep until a packet arrives: neither is away. */
		p->end[0].ep->armed = p->end[1].ep->armed = true;
		erpc_ep_progress(p->end[0].ep, p->net.now_ns);
		erpc_ep_progress(p->end[1].ep, p->net.now_ns);
	} while (fake_net_step(&p->net, pair_next_ns(p, until)) || p->net.now_ns < until);
}

void erpc_pair_settle(struct erpc_pair *p)
{
	unsigned rounds, i;

	for (rounds = 0; rounds < 200000; rounds++) {
		for (i = 0; i < 2; i++) {
			pair_reply_one(&p->end[i]);
			pair_release(&p->end[i]);
		}
		if (pair_is_done(&p->end[0]) && pair_is_done(&p->end[1]))
			return;
		erpc_pair_run(p, 200000);
	}
	cr_assert_fail("no end: sent %u %u, received %u %u, calls %u %u, replies %u %u",
		       p->end[0].sent, p->end[1].sent, p->end[0].received, p->end[1].received,
		       p->end[0].calls_sent, p->end[1].calls_sent, p->end[0].replies,
		       p->end[1].replies);
}

void erpc_pair_check(struct erpc_pair *p)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct pair_end *e = &p->end[i];

		cr_assert_eq(e->down, 0);
		cr_assert_eq(e->received, e->peer->sent);
		cr_assert_eq(e->replies, e->calls_sent);
		cr_assert_eq(e->acked, e->s->flow.posted);
		cr_assert_eq(e->s->flow.credits, e->s->credit_max, "credits are conserved");
		cr_assert_eq(e->s->calls.grant_left, ERPC_GRANT);
		cr_assert_eq(e->s->resp.calls_pending, 0);
		cr_assert_eq(e->s->reply_reserved, 0);
		cr_assert_eq(e->s->resp.retained_len, 0);
		cr_assert_eq(e->s->calls.open.used_cnt, 0);
		cr_assert_eq(pool_used(&e->ep->bodies), 0);
	}
}
