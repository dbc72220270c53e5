/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All sessions of an endpoint burst at once: more packets than it has receive buffers.
 *
 * A packet without a buffer is counted by the network and retransmitted. Nothing is lost,
 * duplicated or reordered, and afterwards no more memory is in use than before. The sessions have
 * as many peer endpoints.
 *
 *   COPYRPC_BURST  sessions, at most 20000 (many more than the default exceed the timeout)
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/erpc_pair.h"
#include "support/pool_used.h"

#define SERVER_RX 256u
#define CLIENT_RX 64u
#define TX_CNT    64u
#define MTU       1024u
#define STEP_NS   5000u
#define TURNS_MAX 400000u /* two seconds of simulated time */

struct burst_end {
	struct erpc_session *s;
	uint64_t sent, received;
	bool acked;
};

/** Session between the common endpoint and one of its own. */
struct burst_peer {
	struct erpc_ep *ep;
	struct burst_end here, there;
};

static struct {
	struct fake_net net;
	struct erpc_ep *ep;
	struct burst_peer *peers;
	uint32_t cnt;
	uint64_t bodies_max, rx_retained_max;
} b;

/* ---- up-calls ---- */

static enum core_rx_verdict on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				   uint32_t len, core_retain_t retain)
{
	struct burst_end *e = erpc_session_of(chan)->user;
	uint64_t number;
	uint32_t i;

	memcpy(&number, data, sizeof(number));
	cr_assert_eq(number, e->received, "number %lu after %lu", number, e->received);
	for (i = sizeof(number); i < len; i++)
		cr_assert_eq(data[i], (uint8_t)number);
	e->received++;
	return CORE_RX_DONE;
}

static void on_acked(struct core_chan *chan, uint64_t pos)
{
	struct burst_end *e = erpc_session_of(chan)->user;

	e->acked = pos == *chan->posted;
}

static const struct core_upcalls ups = { .on_msg = on_msg, .on_acked = on_acked };

static void failed(struct erpc_session *s)
{
	cr_assert_fail("a session fails: %d", s->err);
}

/* ---- open and close ---- */

static struct erpc_ep *ep_open(uint32_t rx_cnt, uint64_t seed)
{
	struct dev_dgram_attr dg_attr = { .rx_cnt = rx_cnt, .tx_cnt = TX_CNT };
	struct erpc_ep_attr attr = { .tx_cnt = TX_CNT, .up = &ups, .seed = seed, .failed = failed };
	struct erpc_ep *ep;

	cr_assert_eq(fake_net_ops.open(fake_net_dev(&b.net), &dg_attr, &attr.dg), 0);
	cr_assert_eq(erpc_ep_open(&attr, &ep), 0);
	return ep;
}

static void begin(uint32_t cnt, uint32_t inline_max)
{
	uint32_t i;

	memset(&b, 0, sizeof(b));
	fake_net_init(&b.net, 5);
	b.net.now_ns = 1000000;
	b.net.mtu = MTU;
	b.net.inline_max = inline_max;
	b.cnt = cnt;
	b.peers = calloc(cnt, sizeof(*b.peers));
	b.ep = ep_open(SERVER_RX, 1);
	for (i = 0; i < cnt; i++) {
		struct burst_peer *peer = &b.peers[i];

		peer->ep = ep_open(CLIENT_RX, 2 + i);
		erpc_pair_join(b.ep, peer->ep, &peer->here.s, &peer->there.s);
		peer->here.s->user = &peer->here;
		peer->there.s->user = &peer->there;
	}
}

static void end(void)
{
	uint32_t i;

	for (i = 0; i < b.cnt; i++) {
		erpc_pair_close(b.peers[i].here.s);
		erpc_pair_close(b.peers[i].there.s);
		erpc_ep_close(b.peers[i].ep);
	}
	cr_expect_eq(b.ep->promised, 0);
	erpc_ep_close(b.ep);
	free(b.peers);
	fake_net_fini(&b.net);
}

/* ---- send ---- */

/** Sends until the session refuses: each slot has a batch, and one waits. */
static void burst(struct burst_end *e, uint32_t len)
{
	struct core_chan *chan = &e->s->conn.chan;
	static uint8_t buf[ERPC_BUF_LARGE];

	memset(buf, (uint8_t)e->sent, len);
	while (chan->ops->send_buf(chan, core_packed(WIRE_OP_MSG | WIRE_F_TAG, 0), e->sent, 0, buf,
				   len) >= 0) {
		memset(buf, (uint8_t)++e->sent, len);
		chan->awaited = *chan->posted;
		e->acked = false;
	}
}

static bool is_done(const struct burst_end *from, const struct burst_end *to)
{
	return from->acked && to->received == from->sent &&
	       from->s->flow.credits == from->s->credit_max;
}

static uint32_t progress(bool back)
{
	uint32_t i, open = 0;

	b.ep->armed = true;
	erpc_ep_progress(b.ep, b.net.now_ns);
	if (pool_used(&b.ep->bodies) > b.bodies_max)
		b.bodies_max = pool_used(&b.ep->bodies);
	if (b.ep->dg->rx_retained > b.rx_retained_max)
		b.rx_retained_max = b.ep->dg->rx_retained;
	for (i = 0; i < b.cnt; i++) {
		struct burst_peer *peer = &b.peers[i];

		peer->ep->armed = true;
		erpc_ep_progress(peer->ep, b.net.now_ns);
		open += !is_done(&peer->there, &peer->here) ||
			(back && !is_done(&peer->here, &peer->there));
	}
	return open;
}

/** Lets all sessions send and advances time until everything has arrived. */
static void run(uint32_t len, bool back)
{
	uint32_t i, turns;

	for (i = 0; i < b.cnt; i++) {
		burst(&b.peers[i].there, len);
		if (back)
			burst(&b.peers[i].here, len);
	}
	for (turns = 0; progress(back); turns++) {
		cr_assert_lt(turns, TURNS_MAX);
		fake_net_run(&b.net, b.net.now_ns + STEP_NS);
	}
}

/** Asserts that packets were refused only for lack of a buffer, and that nothing is left. */
static void check(void)
{
	const struct copyrpc_stats_packets *s = b.ep->stats;

	cr_expect_eq(s->rx_bad + s->rx_malformed + s->rx_no_session + s->rx_bad_token +
			     s->rx_bad_source + s->rx_bad_state + s->rx_no_memory,
		     0);
	cr_expect_eq(pool_used(&b.ep->bodies), 0);
	cr_expect_leq(b.rx_retained_max, SERVER_RX);
	cr_expect_eq(b.net.cnt.sent, b.net.cnt.delivered + b.net.cnt.no_buffer,
		     "packets without a buffer were counted, all others arrived");
}

static uint32_t sessions(uint32_t usual)
{
	uint64_t cnt = rng_env("COPYRPC_BURST", usual);

	return (uint32_t)(cnt < 20000 ? cnt : 20000);
}

/** Few sessions reserve all the buffers they can use, and no packet finds none. */
Test(erpc_burst, sessions_with_reserved_buffers_find_them)
{
	begin(3, 0);
	cr_assert_leq(b.ep->promised, SERVER_RX);
	run(900, true);
	run(60000, true);
	cr_expect_eq(b.net.cnt.no_buffer, 0);
	check();
	end();
}

Test(erpc_burst, no_small_message_is_lost, .timeout = 300)
{
	begin(sessions(400), 0);
	run(900, false);
	cr_expect_gt(b.net.cnt.no_buffer, 0, "there were too few buffers");
	check();
	end();
}

Test(erpc_burst, no_message_is_lost_in_both_directions, .timeout = 300)
{
	begin(sessions(200), 60);
	run(900, true);
	cr_expect_gt(b.net.cnt.no_buffer, 0);
	check();
	end();
}

/** Requests of several packets are assembled in memory, bounded by the slots of all sessions. */
Test(erpc_burst, no_long_message_is_lost_and_memory_is_bounded, .timeout = 300)
{
	begin(sessions(100), 0);
	run(60000, false);
	cr_expect_gt(b.net.cnt.no_buffer, 0);
	cr_expect_leq(b.bodies_max, ERPC_BATCH_SLOTS * b.cnt);
	check();
	end();
}

/** Repeated simultaneous bursts do not degrade. */
Test(erpc_burst, repeated_bursts_all_arrive, .timeout = 300)
{
	unsigned i;

	begin(sessions(200), 0);
	for (i = 0; i < 5; i++)
		run(900, false);
	check();
	end();
}
