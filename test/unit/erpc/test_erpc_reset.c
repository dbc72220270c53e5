/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Very many sessions of one endpoint; two of three peers close at the same moment.
 *
 * Each session is active: messages both ways, a call without reply, a get, retained bytes. One of
 * three peers continues, one is gone, one restarts; some restarts happen before the old session's
 * end is detected, some after. Requests to closed peers end once, packets in flight have no effect,
 * all other sessions receive everything in order, and nothing remains of the closed ones.
 *
 *   COPYRPC_RESET  sessions, at most 20000
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/erpc_pair.h"
#include "support/pool_used.h"

#define PEERS     4u /* endpoints that all peers share */
#define RX_CNT    2048u
#define TX_CNT    64u
#define MTU       1024u
#define GET_LEN   2500u /* three packets */
#define RESP_MAX  64u
#define STEP_NS   5000u
#define TURNS_MAX 400000u

struct reset_side {
	struct erpc_session *s;
	struct reset_side *peer;
	uint64_t sent, received;
	bool acked, get_open, call_pending;
	unsigned calls_sent, replies;
	unsigned gets_done;
	int get_status;
	struct core_call_ref ref;
	core_retain_t retain;
	struct core_get get;
	struct iovec iov;
	struct core_exposure exposure; /* for a get of the peer */
};

/** Session, and the fate of its peer. */
struct reset_link {
	struct reset_side here, there;
	enum { STAYS, VANISHES, RESTARTS } fate;
	bool over;
};

static struct {
	struct fake_net net;
	struct erpc_ep *ep, *peers[PEERS];
	struct reset_link *links; /* 2 * cnt: a restarted peer has a new session */
	uint32_t cnt, link_cnt;
	uint8_t memory[GET_LEN], sink[GET_LEN];
} r;

/* ---- up-calls ---- */

static struct reset_side *side_of(struct core_chan *chan)
{
	return erpc_session_of(chan)->user;
}

static enum core_rx_verdict on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				   uint32_t len, core_retain_t retain)
{
	struct reset_side *e = side_of(chan);
	uint64_t number;

	cr_assert_eq(len, sizeof(number));
	memcpy(&number, data, sizeof(number));
	cr_assert_eq(number, e->received);
	e->received++;
	if (e->retain)
		return CORE_RX_DONE;
	e->retain = retain;
	return CORE_RX_RETAIN;
}

static enum core_rx_verdict on_call(struct core_chan *chan, struct core_call_ref ref,
				    const uint8_t *data, uint32_t len, core_retain_t retain)
{
	struct reset_side *e = side_of(chan);

	cr_assert(!e->call_pending);
	e->call_pending = true;
	e->ref = ref;
	return CORE_RX_DONE;
}

static void on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		     uint32_t len)
{
	struct reset_side *e = side_of(chan);

	cr_assert_eq(context, e);
	cr_assert_eq(status, 0);
	e->replies++;
}

static void on_acked(struct core_chan *chan, uint64_t pos)
{
	side_of(chan)->acked = pos == *chan->posted;
}

static void unexpose(struct reset_side *e)
{
	if (e->exposure.chan)
		e->exposure.chan->ops->unexpose(e->exposure.chan, &e->exposure);
	e->exposure.chan = NULL;
}

static void on_get_done(struct core_chan *chan, struct core_get *get)
{
	struct reset_side *e = side_of(chan);

	cr_assert(e->get_open);
	e->get_open = false;
	e->gets_done++;
	e->get_status = get->status;
	if (!get->status) /* else the exposing end detects the failure by itself */
		unexpose(e->peer);
}

static const struct core_upcalls ups = {
	.on_msg = on_msg,
	.on_call = on_call,
	.on_reply = on_reply,
	.on_acked = on_acked,
	.on_get_done = on_get_done,
};

static void failed(struct erpc_session *s)
{
	cr_assert_eq(s->err, -FI_ECONNRESET);
	erpc_session_end(s);
}

/* ---- open and close ---- */

static struct erpc_ep *ep_open(uint64_t seed)
{
	struct dev_dgram_attr dg_attr = { .rx_cnt = RX_CNT, .tx_cnt = TX_CNT };
	struct erpc_ep_attr attr = { .tx_cnt = TX_CNT, .up = &ups, .seed = seed, .failed = failed };
	struct erpc_ep *ep;

	cr_assert_eq(fake_net_ops.open(fake_net_dev(&r.net), &dg_attr, &attr.dg), 0);
	cr_assert_eq(erpc_ep_open(&attr, &ep), 0);
	return ep;
}

static void join(uint32_t nth)
{
	struct reset_link *link = &r.links[r.link_cnt++];

	erpc_pair_join(r.ep, r.peers[nth % PEERS], &link->here.s, &link->there.s);
	link->here.s->user = &link->here;
	link->there.s->user = &link->there;
	link->here.peer = &link->there;
	link->there.peer = &link->here;
	link->fate = STAYS;
}

static void begin(uint32_t cnt, uint32_t inline_max)
{
	uint32_t i;

	memset(&r, 0, sizeof(r));
	fake_net_init(&r.net, 7);
	r.net.now_ns = 1000000;
	r.net.mtu = MTU;
	r.net.inline_max = inline_max;
	r.cnt = cnt;
	r.links = calloc(2 * (size_t)cnt, sizeof(*r.links));
	r.ep = ep_open(1);
	for (i = 0; i < PEERS; i++)
		r.peers[i] = ep_open(2 + i);
	for (i = 0; i < cnt; i++) {
		join(i);
		r.links[i].fate = i % 3;
	}
}

static void progress_all(void)
{
	unsigned i;

	r.ep->armed = true;
	erpc_ep_progress(r.ep, r.net.now_ns);
	for (i = 0; i < PEERS; i++) {
		r.peers[i]->armed = true;
		erpc_ep_progress(r.peers[i], r.net.now_ns);
	}
	fake_net_run(&r.net, r.net.now_ns + STEP_NS);
}

static void close_side(struct reset_side *e)
{
	unexpose(e);
	erpc_pair_close(e->s);
	e->s = NULL;
}

/**
 * Asserts that everything was freed except for the last packets, which the device may still read.
 */
static void check_ep(const struct erpc_ep *ep)
{
	if (ep->dg->tx_done == ep->dg->tx_posted) {
		cr_expect_eq(ep->bufs.used_cnt, 0);
		cr_expect_eq(pool_used(&ep->exposure_pool), 0);
		cr_expect(util_list_is_empty(&ep->zombies));
	}
	cr_expect_eq(pool_used(&ep->bodies), 0);
	cr_expect_eq(ep->dg->rx_retained, 0);
	cr_expect_eq(ep->timers.cnt, 0);
	cr_expect_eq(ep->session_cnt, 0);
	cr_expect_eq(ep->promised, 0);
}

static void end(void)
{
	uint32_t i;

	for (i = 0; i < r.link_cnt; i++) {
		if (r.links[i].over)
			continue;
		close_side(&r.links[i].here);
		close_side(&r.links[i].there);
	}
	for (i = 0; i < 10; i++) /* for reports of the device */
		progress_all();
	check_ep(r.ep);
	erpc_ep_close(r.ep);
	for (i = 0; i < PEERS; i++) {
		check_ep(r.peers[i]);
		erpc_ep_close(r.peers[i]);
	}
	free(r.links);
	fake_net_fini(&r.net);
}

/* ---- send ---- */

static void send_one(struct reset_side *e)
{
	struct core_chan *chan = &e->s->conn.chan;

	if (chan->ops->send_buf(chan, core_packed(WIRE_OP_MSG | WIRE_F_TAG, 0), e->sent, 0,
				r.memory, 0) < 0)
		return;
	e->sent++;
	chan->awaited = *chan->posted;
	e->acked = false;
}

static void get(struct reset_side *e)
{
	struct core_chan *exposer = &e->peer->s->conn.chan;

	cr_assert_eq(exposer->ops->expose(exposer, r.memory, GET_LEN, &e->peer->exposure), 0);
	e->peer->exposure.chan = exposer;
	e->iov = (struct iovec){ .iov_base = r.sink, .iov_len = GET_LEN };
	e->get = (struct core_get){ .remote_addr = (uintptr_t)r.memory,
				    .remote_key = e->peer->exposure.key,
				    .iov = &e->iov,
				    .iov_cnt = 1,
				    .len = GET_LEN };
	e->get_open = true;
	cr_assert_eq(e->s->conn.chan.ops->get(&e->s->conn.chan, &e->get), 0);
}

static void send_all_kinds(struct reset_side *e)
{
	struct core_chan *chan = &e->s->conn.chan;

	send_one(e);
	if (!e->calls_sent && !chan->ops->call_buf(chan, 0x800, "what?", 5, RESP_MAX, e, 0))
		e->calls_sent++;
	if (!e->get_open)
		get(e);
	send_one(e);
}

/** Lets all open links send, with progress every 64 links, so that their states differ. */
static void all_send(uint32_t from)
{
	uint32_t i;

	for (i = from; i < r.link_cnt; i++) {
		if (r.links[i].over)
			continue;
		send_all_kinds(&r.links[i].here);
		send_all_kinds(&r.links[i].there);
		if (!(i % 64))
			progress_all();
	}
}

/** Releases bytes and replies to the call. */
static void settle(struct reset_side *e)
{
	struct core_chan *chan = &e->s->conn.chan;

	if (e->retain)
		chan->ops->release(chan, e->retain);
	e->retain = 0;
	if (e->call_pending)
		cr_assert_eq(core_chan_reply(chan, e->ref, "that", 4), 0);
	e->call_pending = false;
}

static bool is_done(const struct reset_side *e)
{
	return e->acked && e->peer->received == e->sent && e->calls_sent == e->replies &&
	       !e->get_open && !e->get_status && e->s->flow.credits == e->s->credit_max;
}

/** Returns true if both ends of a link have replied and received everything. */
static bool is_over(struct reset_link *link)
{
	settle(&link->here);
	settle(&link->there);
	return is_done(&link->here) && is_done(&link->there);
}

static void until_all_received(void)
{
	uint32_t at, turns = 0;

	for (at = 0; at < r.link_cnt; at++)
		while (!r.links[at].over && !is_over(&r.links[at])) {
			progress_all();
			cr_assert_lt(turns++, TURNS_MAX, "link %u does not finish", at);
		}
}

/* ---- close of many peers ---- */

/** Closes the peers' ends. This end does not detect it yet. */
static void peers_close(void)
{
	uint32_t i;

	for (i = 0; i < r.cnt; i++) {
		struct reset_side *there = &r.links[i].there;

		if (r.links[i].fate == STAYS)
			continue;
		there->s->err = -FI_ESHUTDOWN;
		erpc_session_end(there->s);
		close_side(there);
	}
}

static void restart(bool before)
{
	uint32_t i;

	for (i = 0; i < r.cnt; i++)
		if (r.links[i].fate == RESTARTS && (i % 2 == 0) == before)
			join(i);
}

/** Fails the sessions of closed peers, as the control thread does. */
static void report_closed(void)
{
	uint32_t i;

	for (i = 0; i < r.cnt; i++)
		if (r.links[i].fate != STAYS)
			erpc_session_fail(r.links[i].here.s, -FI_ECONNRESET, NULL);
	progress_all();
	for (i = 0; i < r.cnt; i++) {
		struct reset_side *here = &r.links[i].here;

		if (r.links[i].fate == STAYS)
			continue;
		cr_expect_not(here->get_open, "open gets have ended");
		cr_expect_eq(here->gets_done, 1, "once");
		if (here->retain && i % 2) { /* before the close of its session, or with it */
			erpc_session_stop(here->s);
			here->s->conn.chan.ops->release(&here->s->conn.chan, here->retain);
		}
		close_side(here);
		r.links[i].over = true;
	}
}

/** Sends to closed peers, which refuse the packets. */
static void send_to_closed(void)
{
	uint64_t refused = 0;
	uint32_t i, turns;

	for (i = 0; i < r.cnt; i++)
		if (r.links[i].fate != STAYS)
			send_one(&r.links[i].here);
	for (turns = 0; !refused; turns++) {
		progress_all();
		cr_assert_lt(turns, TURNS_MAX);
		for (i = 0; i < PEERS; i++)
			refused += r.peers[i]->stats->rx_no_session;
	}
}

static void reset(uint32_t cnt, uint32_t inline_max)
{
	uint32_t first;

	begin(cnt, inline_max);
	all_send(0);
	peers_close();
	restart(true);
	all_send(r.cnt);
	send_to_closed();
	report_closed();
	first = r.link_cnt;
	restart(false);
	all_send(first);
	until_all_received();
	cr_expect(util_list_is_empty(&r.ep->zombies), "no address waits for the device");
	cr_expect(util_list_is_empty(&r.ep->dereg_list));
	cr_expect_eq(r.ep->stats->rx_bad + r.ep->stats->rx_malformed, 0);
	end();
}

static uint32_t sessions(uint32_t usual)
{
	uint64_t cnt = rng_env("COPYRPC_RESET", usual);

	return (uint32_t)(cnt < 20000 ? cnt : 20000);
}

Test(erpc_reset, open_sessions_get_everything_and_closed_ones_leave_nothing, .timeout = 300)
{
	reset(sessions(600), 0);
}

Test(erpc_reset, likewise_with_a_device_that_reads_late, .timeout = 300)
{
	reset(sessions(600), 60);
}
