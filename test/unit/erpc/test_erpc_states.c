/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each kind of packet in each state of a session, from a sender with the token, without it, and at
 * another address (docs/datagram-protocol.md, section 7): it is counted for one reason, has no
 * reply and is not delivered; another session continues.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "support/erpc_divert.h"
#include "unit/erpc/rx/forged.h"

#define NOT_COUNTED (-1) /* waits until the session is attached */

enum state {
	OPENED,    /* the peer's parameters are unknown */
	CONNECTED, /* not attached */
	UP,
	FAILING, /* core has not been notified */
	STOPPED, /* only retained bytes remain */
	CLOSED,
	FOLLOWED, /* closed, and another session has its number */
	STATES,
};

static const char *const state_names[] = { "opened",  "connected", "up",      "failing",
					   "stopped", "closed",    "followed" };

enum sender {
	PEER,       /* repeats the packet before the last one */
	WRONG_TAG,  /* the peer's next packet with a wrong tag */
	WRONG_ADDR, /* the peer's next packet from another address */
	SENDERS,
};

static const char *const sender_names[] = { "the peer, late", "a wrong token", "a wrong address" };

/** Kind of packet. */
static const struct kind {
	const char *name;
	enum wire_erpc_kind kind;
	uint32_t slot;
	uint8_t type; /* of responses */
} kinds[] = {
	{ "a batch", WIRE_ERPC_REQ, 0, 0 },
	{ "a get", WIRE_ERPC_REQ, ERPC_GET_SLOT, 0 },
	{ "replies", WIRE_ERPC_REQ, ERPC_REPLY_SLOT, 0 },
	{ "an RFR", WIRE_ERPC_RFR, ERPC_GET_SLOT, 0 },
	{ "a credit return", WIRE_ERPC_CR, 1, 0 },
	{ "a gap", WIRE_ERPC_CR, 1, WIRE_ERPC_GAP },
	{ "a kept report", WIRE_ERPC_CR, 1, WIRE_ERPC_KEPT },
	{ "a response", WIRE_ERPC_RESP, 0, 0 },
	{ "a late response", WIRE_ERPC_RESP, 0, WIRE_ERPC_LATE },
	{ "a response of an absent peer", WIRE_ERPC_RESP, 0, WIRE_ERPC_AWAY },
	{ "a refusal", WIRE_ERPC_RESP, ERPC_GET_SLOT, WIRE_ERPC_REFUSED },
	{ "memory", WIRE_ERPC_RESP, ERPC_GET_SLOT, 0 },
};

/** Returns the reason that is counted. */
static int expected(enum state state, enum sender sender)
{
	switch (state) {
	case OPENED:
	case STOPPED:
	case CLOSED: return NO_SESSION;
	case FOLLOWED: return BAD_TOKEN;
	default: break;
	}
	if (sender == WRONG_TAG)
		return BAD_TOKEN;
	if (sender == WRONG_ADDR)
		return BAD_SOURCE;
	return state == UP ? STALE : state == FAILING ? BAD_STATE : NOT_COUNTED;
}

/** Session between the two endpoints, and the parameters of packets to its first end. */
static struct {
	struct erpc_session *s, *peer, *next;
	struct wire_erpc_params params, peer_half;
	uint32_t received;
} v;

static enum core_rx_verdict on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				   uint32_t len, core_retain_t retain)
{
	v.received++;
	return CORE_RX_DONE;
}

static enum core_rx_verdict on_call(struct core_chan *chan, struct core_call_ref ref,
				    const uint8_t *data, uint32_t len, core_retain_t retain)
{
	return on_msg(chan, 0, data, len, retain);
}

static const struct core_upcalls ups = { .on_msg = on_msg, .on_call = on_call };

static void connect_one(struct erpc_session *s, const struct wire_erpc_params *params, unsigned to)
{
	struct dev_dgram *dg = forged_pair.end[to].ep->dg, *own = s->ep->dg;
	struct dev_dgram_ah *ah;
	struct dev_desc desc;

	cr_assert_eq(dg->ops->describe(dg, &desc), 0);
	cr_assert_eq(own->ops->resolve(own, &desc, &ah), 0);
	cr_assert_eq(erpc_session_connect(s, params, ah), 0);
}

static void begin(enum state state)
{
	struct erpc_ep *ep = forged_pair.end[0].ep;

	memset(&v, 0, sizeof(v));
	cr_assert_eq(erpc_session_open(ep, &v.params, &v.s), 0);
	cr_assert_eq(erpc_session_open(forged_pair.end[1].ep, &v.peer_half, &v.peer), 0);
	erpc_divert(v.s, &ups);
	if (state == OPENED)
		return;
	connect_one(v.s, &v.peer_half, 1);
	if (state == CONNECTED)
		return;
	erpc_session_attach(v.s);
	if (state == FAILING)
		v.s->err = -FI_EIO;
	if (state >= STOPPED)
		erpc_session_stop(v.s);
	if (state < CLOSED)
		return;
	erpc_session_close(v.s);
	v.s = NULL;
	if (state == CLOSED)
		return;
	ep->next_num = v.params.session;
	cr_assert_eq(erpc_session_open(ep, &(struct wire_erpc_params){ 0 }, &v.next), 0);
	cr_assert_eq(v.next->num, v.params.session);
	connect_one(v.next, &v.peer_half, 1);
	erpc_session_attach(v.next);
}

static void end(void)
{
	if (v.s)
		erpc_session_close(v.s);
	if (v.next)
		erpc_session_close(v.next);
	erpc_session_close(v.peer);
}

/** Returns a packet with the number of the next request, or of the one before. */
static struct packet packet_of(const struct kind *k, enum sender sender)
{
	bool is_response = k->kind == WIRE_ERPC_RESP || k->kind == WIRE_ERPC_CR;
	struct packet pkt =
		is_response ? forged_response(k->slot, k->kind) : forged_request(k->slot);
	uint64_t first = is_response ? v.peer_half.token : v.params.token;

	pkt.h.kind = k->kind;
	pkt.h.session = v.params.session;
	pkt.h.tag = (uint16_t)v.params.token;
	pkt.h.req_num = (first >> 20 & 0xFFFFFFFFF8) + k->slot;
	if (is_response)
		pkt.h.req_type = k->type;
	if (k->kind == WIRE_ERPC_RFR) {
		pkt.h.msg_size = pkt.len = 0;
		pkt.h.pkt_num = 1;
	}
	memset(pkt.data, 0, sizeof(struct wire_erpc_batch));
	if (sender == PEER)
		pkt.h.req_num = (pkt.h.req_num - 2 * ERPC_SLOTS) % WIRE_ERPC_REQ_MAX;
	if (sender == WRONG_TAG)
		pkt.h.tag ^= 0x8000;
	if (sender == WRONG_ADDR)
		pkt.from = STRANGER;
	return pkt;
}

/** Asserts that the packet is saved and counted only after attach. */
static void waits(const struct packet *pkt, const char *what)
{
	struct erpc_ep *ep = forged_pair.end[0].ep;
	struct copyrpc_stats_packets before = *ep->stats;

	forged_deliver(pkt);
	cr_expect(!memcmp(&before, ep->stats, sizeof(before)), "%s", what);
	cr_expect_eq(ep->saved_cnt, 1, "%s", what);
	erpc_session_attach(v.s);
	erpc_ep_progress(ep, forged_pair.net.now_ns);
	cr_expect_eq(ep->saved_cnt, 0, "%s", what);
	cr_expect_eq(ep->dg->rx_retained, 0, "%s", what);
	cr_expect_eq(ep->stats->rx_stale, before.rx_stale + 1, "%s", what);
}

static void send_kind(const struct kind *k, enum state state, enum sender sender)
{
	struct packet pkt;
	int reason = expected(state, sender);
	char what[128];

	snprintf(what, sizeof(what), "%s, %s, from %s", k->name, state_names[state],
		 sender_names[sender]);
	begin(state);
	pkt = packet_of(k, sender);
	if (reason == NOT_COUNTED)
		waits(&pkt, what);
	else
		forged_refused(&pkt, (enum reason)reason, what);
	cr_expect_eq(v.received, 0, "%s", what);
	cr_expect(!v.s || state >= FAILING || !v.s->err, "%s", what);
	end();
}

TestSuite(erpc_states, .init = forged_setup, .fini = forged_teardown);

Test(erpc_states, each_kind_in_each_state_is_refused_for_one_reason)
{
	unsigned k, state, sender;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (state = 0; state < STATES; state++)
			for (sender = 0; sender < SENDERS; sender++)
				send_kind(&kinds[k], state, sender);
	forged_check_traffic();
}

/** Before attach a peer may send a burst. Further packets are dropped. */
Test(erpc_states, packets_before_attach_are_bounded)
{
	struct erpc_ep *ep = forged_pair.end[0].ep;
	struct packet pkt;
	unsigned i, most = 3 * ERPC_POLL_BURST;

	begin(CONNECTED);
	pkt = packet_of(&kinds[0], PEER);
	for (i = 0; i < most; i++)
		forged_deliver(&pkt);
	cr_expect_eq(ep->saved_cnt, ERPC_POLL_BURST);
	cr_expect_eq(ep->stats->rx_no_memory, most - ERPC_POLL_BURST);
	erpc_session_close(v.s);
	v.s = NULL;
	erpc_ep_progress(ep, forged_pair.net.now_ns);
	cr_expect_eq(ep->saved_cnt, 0);
	cr_expect_eq(ep->dg->rx_retained, 0);
	cr_expect_eq(ep->stats->rx_no_session, ERPC_POLL_BURST);
	end();
	forged_check_traffic();
}
