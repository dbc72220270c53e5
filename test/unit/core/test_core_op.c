/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations: start in order, stream, get their response, and end exactly once, also if the peer
 * fails.
 */
#include "core/core_op.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/core_pair.h"
#include "support/rng.h"
#include "wire/wire_op.h"

#define OPS 64

/**
 * Operation that fails to start and to stream a few times, then sends one message or makes one
 * call.
 */
struct probe {
	struct core_op op;
	unsigned refusals;
	int refusal; /* 0: -FI_EAGAIN */
	unsigned parts;
	bool call;
	unsigned started; /* position in the order of starts, from 1 */
	unsigned ended;
	int err;
};

static struct node nodes[2];
static struct probe probes[OPS];
static unsigned start_cnt;
static struct rng rng;

static struct probe *probe_of(struct core_op *op)
{
	return UTIL_CONTAINER_OF(op, struct probe, op);
}

static void probe_end(struct probe *p, int err)
{
	p->ended++;
	p->err = err;
	core_op_end(&p->op);
}

static int probe_call(struct probe *p)
{
	struct core_chan *chan = p->op.peer->chan;
	struct core_frame frame = { .op = WIRE_OP_DLVR | WIRE_F_TAG, .ext_len = 8, .ext = { 7 } };

	return chan->ops->call(chan, &frame, sizeof(struct wire_status), &p->op, 0);
}

static int probe_start(struct core_op *op)
{
	struct probe *p = probe_of(op);
	int ret;

	cr_assert_eq(op->peer->state, CORE_PEER_UP);
	if (p->refusals) {
		p->refusals--;
		return p->refusal ? p->refusal : -FI_EAGAIN;
	}
	if (p->call) {
		ret = probe_call(p);
		if (ret)
			return ret;
		p->started = ++start_cnt;
		return 0;
	}
	p->started = ++start_cnt;
	if (p->parts)
		core_op_stream(op);
	else
		probe_end(p, 0);
	return 0;
}

static int probe_stream(struct core_op *op)
{
	struct probe *p = probe_of(op);

	if (--p->parts)
		return -FI_EAGAIN;
	probe_end(p, 0);
	return 0;
}

static void probe_on_reply(struct core_op *op, int status, const uint8_t *data, uint32_t len)
{
	cr_expect_eq(len, sizeof(struct wire_status));
	probe_end(probe_of(op), status);
}

static void probe_fail(struct core_op *op, int err)
{
	probe_end(probe_of(op), err);
}

static const struct core_op_ops probe_ops = {
	.start = probe_start,
	.stream = probe_stream,
	.on_reply = probe_on_reply,
	.fail = probe_fail,
};

static void setup(void)
{
	fake_engine_reset();
	start_cnt = 0;
	rng.state = 42;
	memset(probes, 0, sizeof(probes));
}

static struct core_peer *peer_of(unsigned from, unsigned to)
{
	return core_peer_get(&nodes[from].ep, to);
}

static unsigned submit_random(unsigned cnt, bool calls)
{
	struct probe *p;
	unsigned i;

	for (i = 0; i < cnt; i++) {
		p = &probes[i];
		p->refusals = (unsigned)rng_below(&rng, 4);
		p->parts = (unsigned)rng_below(&rng, 3);
		p->call = calls && rng_chance(&rng, 1, 2);
		cr_assert_eq(core_op_submit(&p->op, &probe_ops, peer_of(0, 1)), 0);
		if (rng_chance(&rng, 1, 8))
			core_dom_progress(&nodes[0].dom);
	}
	return cnt;
}

/** Receives the messages that the calls carry, so that the calls get their responses. */
static void receive_all(void)
{
	static uint8_t buf[8];
	unsigned i;

	for (i = 0; i < OPS; i++)
		cr_assert_eq(
			node_recv(&nodes[1], FI_ADDR_UNSPEC, buf, sizeof(buf), true, 7, 0, 0, NULL),
			0);
}

static void settle(void)
{
	unsigned i;

	for (i = 0; i < 1000; i++)
		nodes_settle(nodes, 2);
}

static void expect_in_order(unsigned cnt)
{
	unsigned i;

	for (i = 0; i < cnt; i++) {
		cr_expect_eq(probes[i].started, i + 1, "operation %u was number %u", i,
			     probes[i].started);
		cr_expect_eq(probes[i].ended, 1, "operation %u ended %u times", i, probes[i].ended);
		cr_expect_eq(probes[i].err, 0);
	}
	cr_expect_eq(nodes[0].ep.tx_open, 0);
	cr_expect_eq(nodes[0].ep.tx_queued, 0);
	cr_expect(util_list_is_empty(&nodes[0].dom.work), "progress still has work");
}

Test(core_op, start_in_order_and_end_once, .init = setup)
{
	fake_engine_cfg.credit = 2;
	nodes_open(nodes, 2);
	receive_all();
	submit_random(OPS, true);
	settle();
	expect_in_order(OPS);
	nodes_close(nodes, 2);
}

Test(core_op, wait_for_the_connection, .init = setup)
{
	fake_engine_cfg.lazy_up = 20;
	nodes_open(nodes, 2);
	receive_all();
	submit_random(OPS, true);
	cr_expect_eq(start_cnt, 0, "started without a channel");
	settle();
	expect_in_order(OPS);
	nodes_close(nodes, 2);
}

Test(core_op, to_the_endpoint_itself_end_within_the_call, .init = setup)
{
	nodes_open(nodes, 2);
	cr_assert_eq(node_recv(&nodes[0], FI_ADDR_UNSPEC, NULL, 0, true, 7, 0, 0, NULL), 0);
	probes[0].call = true;
	cr_assert_eq(core_op_submit(&probes[0].op, &probe_ops, peer_of(0, 0)), 0);
	expect_in_order(1);
	nodes_close(nodes, 2);
}

Test(core_op, the_death_of_the_peer_ends_all, .init = setup)
{
	unsigned i, good = 0, bad = 0;

	nodes_open(nodes, 2);
	fake_engine_cfg.no_delivery = true; /* no responses */
	submit_random(OPS, true);
	nodes_settle(nodes, 2);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	settle();
	for (i = 0; i < OPS; i++) {
		cr_expect_eq(probes[i].ended, 1);
		good += !probes[i].err;
		bad += probes[i].err == -FI_ECONNRESET;
	}
	cr_expect_eq(good + bad, OPS);
	cr_expect_gt(bad, 0);
	cr_expect_eq(nodes[0].ep.tx_open, 0);
	cr_expect_eq(nodes[0].ep.tx_queued, 0);
	nodes_close(nodes, 2);
}

Test(core_op, a_failed_connect_ends_queued_operations, .init = setup)
{
	fake_engine_cfg.connect_err = -FI_EMFILE;
	nodes_open(nodes, 2);
	cr_assert_eq(core_op_submit(&probes[0].op, &probe_ops, peer_of(0, 1)), 0);
	cr_expect_eq(probes[0].ended, 0, "queued");
	settle();
	cr_expect_eq(probes[0].ended, 1);
	cr_expect_eq(probes[0].started, 0);
	cr_expect_eq(probes[0].err, -FI_EMFILE);
	cr_expect_eq(nodes[0].ep.tx_open, 0);
	nodes_close(nodes, 2);
}

Test(core_op, a_full_queue_refuses_more, .init = setup)
{
	fake_engine_cfg.lazy_up = 1000;
	nodes_open(nodes, 2);
	nodes[0].ep.tx_queued = CORE_OP_QUEUE_MAX;
	cr_expect_eq(core_op_submit(&probes[0].op, &probe_ops, peer_of(0, 1)), -FI_EAGAIN);
	nodes[0].ep.tx_queued = 0;
	cr_expect_eq(nodes[0].ep.tx_open, 0);
	nodes_close(nodes, 2);
}

/* --- sleep ---------------------------------------------------------------------------------- */

static int arm(void)
{
	return core_dom_arm(&nodes[0].dom);
}

/** Opens and connects two nodes over a channel with or without CORE_CHAN_WAKES. */
static void open_connected(bool wakes)
{
	fake_engine_cfg.caps |= wakes ? CORE_CHAN_WAKES : 0;
	nodes_open(nodes, 2);
	submit_random(1, false);
	settle();
	cr_assert_eq(probes[0].ended, 1);
	cr_expect_eq(arm(), 0);
}

static void submit(struct probe *p, unsigned refusals)
{
	p->refusals = refusals;
	cr_assert_eq(core_op_submit(&p->op, &probe_ops, peer_of(0, 1)), 0);
}

Test(core_op, waiting_for_room_allows_sleep_if_the_channel_signals_it, .init = setup)
{
	open_connected(true);
	submit(&probes[1], 1000);
	for (int i = 0; i < 10; i++) {
		cr_expect_eq(arm(), 0);
		core_dom_progress(&nodes[0].dom);
	}
	cr_expect_not(probes[1].started);
	nodes_close(nodes, 2);
}

Test(core_op, waiting_for_room_prevents_sleep_if_the_channel_does_not_signal_it, .init = setup)
{
	open_connected(false);
	submit(&probes[1], 1000);
	for (int i = 0; i < 10; i++)
		cr_expect_eq(arm(), -FI_EAGAIN);
	cr_expect_eq(probes[1].refusals, 999, "only progress retries");
	nodes_close(nodes, 2);
}

/** The response that made room arrived after the last try, so it signals nothing any more. */
Test(core_op, room_made_after_the_last_try_prevents_sleep, .init = setup)
{
	open_connected(true);
	submit(&probes[1], 3); /* at once, with the next submit, and in the first arm */
	probes[2].parts = 2;
	submit(&probes[2], 0);
	cr_expect_eq(arm(), 0, "no room yet");
	cr_expect_eq(arm(), -FI_EAGAIN, "an operation has ended");
	cr_expect_eq(probes[1].ended, 1);
	cr_expect_eq(probes[2].started, 3);
	cr_expect_eq(arm(), -FI_EAGAIN, "the last part has left");
	cr_expect_eq(probes[2].ended, 1);
	cr_expect_eq(arm(), 0);
	expect_in_order(3);
	nodes_close(nodes, 2);
}

/** Lack of memory, for example: no event follows when there is some again. */
Test(core_op, waiting_for_anything_else_prevents_sleep, .init = setup)
{
	open_connected(true);
	probes[1].refusal = -FI_ENOMEM;
	submit(&probes[1], 1000);
	for (int i = 0; i < 10; i++)
		cr_expect_eq(arm(), -FI_EAGAIN);
	cr_expect_eq(probes[1].ended, 0);
	nodes_close(nodes, 2);
}

Test(core_op, a_new_connection_is_tried_before_sleep, .init = setup)
{
	fake_engine_cfg.caps |= CORE_CHAN_WAKES;
	fake_engine_cfg.lazy_up = 1;
	nodes_open(nodes, 2);
	submit(&probes[0], 0);
	while (peer_of(0, 1)->state != CORE_PEER_UP)
		nodes[0].dom.progress_ops->progress(nodes[0].dom.progress);
	cr_expect_eq(probes[0].ended, 0);
	cr_expect_eq(arm(), -FI_EAGAIN);
	cr_expect_eq(probes[0].ended, 1);
	nodes_close(nodes, 2);
}
