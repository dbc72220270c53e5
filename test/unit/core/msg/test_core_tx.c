/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of all sizes and kinds between endpoints, over a transport with as little room, credit
 * and progress as core_chan.h allows. Each message arrives once, whole, in matching order, with
 * exactly one completion at each end. The seed is printed and can be set in COPYRPC_TEST_SEED.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/msg/core_post.h"
#include "support/core_pair.h"
#include "support/pool_used.h"

#define NODES    3
#define TAGS     4
#define LEN_MAX  30000
#define MSGS_MAX 4000
#define OPS_MAX  (2 * MSGS_MAX) /* includes the receives posted at the end */

static unsigned seed;

static unsigned rnd(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % n;
}

struct op {
	bool done, recv;
	uint32_t id; /* send: pattern of the bytes */
	size_t len;
	uint8_t *buf;
	unsigned from, to;
	uint64_t tag;
	bool tagged;
};

static struct node nodes[NODES];
static struct op ops[OPS_MAX];
static unsigned op_cnt;
/* Messages sent and receives posted per (from, to, tagged, tag) stream. */
static uint32_t sent_ids[NODES][NODES][TAGS + 1][MSGS_MAX];
static size_t sent_lens[NODES][NODES][TAGS + 1][MSGS_MAX];
static unsigned sent_cnt[NODES][NODES][TAGS + 1];
static unsigned posted_cnt[NODES][NODES][TAGS + 1];

static void setup(void)
{
	const char *s = getenv("COPYRPC_TEST_SEED");

	seed = s ? (unsigned)atoi(s) : 42;
	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = 1000,
					    .single_copy_min = 10000,
					    .unexpected_mem = 1 << 20 };
	memset(ops, 0, sizeof(ops));
	memset(sent_cnt, 0, sizeof(sent_cnt));
	memset(posted_cnt, 0, sizeof(posted_cnt));
	op_cnt = 0;
}

TestSuite(core_tx, .init = setup);

static size_t random_len(void)
{
	static const size_t edges[] = {
		0, 1, 8, 64, 65, 999, 1000, 1001, 8192, 9999, 10000, 10001
	};

	return rnd(2) ? edges[rnd(sizeof(edges) / sizeof(edges[0]))] : rnd(LEN_MAX);
}

static void step_send(void)
{
	struct op *op = &ops[op_cnt];
	unsigned from = rnd(NODES), to = rnd(NODES), t = rnd(TAGS + 1);
	uint64_t flags = FI_COMPLETION | FI_REMOTE_CQ_DATA | (rnd(6) ? 0 : FI_DELIVERY_COMPLETE) |
			 (rnd(6) ? 0 : FI_MATCH_COMPLETE);
	int ret;

	*op = (struct op){ .id = op_cnt, .len = random_len() };
	op->buf = malloc(op->len + 1);
	node_fill(op->buf, op->len, op->id);
	ret = node_send(&nodes[from], to, op->buf, op->len, t < TAGS, t, flags, op);
	cr_assert_eq(ret, 0, "send: %d", ret);
	sent_ids[from][to][t][sent_cnt[from][to][t]] = op->id;
	sent_lens[from][to][t][sent_cnt[from][to][t]++] = op->len;
	op_cnt++;
}

static void post_recv(unsigned from, unsigned to, unsigned t)
{
	struct op *op = &ops[op_cnt++];
	int ret;

	*op = (struct op){ .recv = true, .len = LEN_MAX, .from = from, .to = to, .tag = t };
	op->id = posted_cnt[from][to][t]++;
	op->buf = malloc(LEN_MAX);
	ret = node_recv(&nodes[to], from, op->buf, LEN_MAX, t < TAGS, t, 0, FI_COMPLETION, op);
	cr_assert_eq(ret, 0, "recv: %d", ret);
}

static void check_recv(struct op *op, const struct core_cqe *e)
{
	uint32_t id = sent_ids[op->from][op->to][op->tag][op->id];
	size_t len = sent_lens[op->from][op->to][op->tag][op->id];

	cr_assert_eq(e->e.len, len, "length %zu, sent %zu", e->e.len, len);
	cr_assert(node_check(op->buf, len, id), "contents of message %u", id);
	cr_assert_eq(e->src, op->from);
	cr_assert_eq(e->e.data, op->tag * 3);
	cr_assert(e->e.flags & FI_REMOTE_CQ_DATA);
	cr_assert(e->e.flags & (op->tag < TAGS ? FI_TAGGED : FI_MSG));
	if (op->tag < TAGS)
		cr_assert_eq(e->e.tag, op->tag);
}

static void step_poll(unsigned n)
{
	struct fi_cq_err_entry err;
	struct core_cqe e;
	int ret;

	while ((ret = node_poll(&nodes[n], &e, &err))) {
		struct op *op = e.e.op_context;

		cr_assert_eq(ret, 1, "unexpected error completion %d", err.err);
		cr_assert(!op->done, "completed twice");
		op->done = true;
		if (op->recv)
			check_recv(op, &e);
	}
}

static void random_run(unsigned steps)
{
	unsigned i, n, from, to, t;

	printf("seed %u\n", seed);
	nodes_open(nodes, NODES);
	for (i = 0; i < steps; i++) {
		if (rnd(3) == 0 && op_cnt < MSGS_MAX)
			step_send();
		else if (rnd(2) && op_cnt < MSGS_MAX)
			post_recv(rnd(NODES), rnd(NODES), rnd(TAGS + 1));
		n = rnd(NODES);
		core_dom_progress(&nodes[n].dom);
		step_poll(n);
	}
	/* Every stream gets as many receives as it has messages, then all operations must end. */
	for (from = 0; from < NODES; from++)
		for (to = 0; to < NODES; to++)
			for (t = 0; t <= TAGS; t++)
				while (posted_cnt[from][to][t] < sent_cnt[from][to][t])
					post_recv(from, to, t);
	for (i = 0; i < 50; i++) {
		nodes_settle(nodes, NODES);
		for (n = 0; n < NODES; n++)
			step_poll(n);
	}
	for (i = 0; i < op_cnt; i++) {
		struct op *op = &ops[i];
		bool due = !op->recv || op->id < sent_cnt[op->from][op->to][op->tag];

		cr_assert_eq(op->done, due, "operation %u (%s)", i, op->recv ? "recv" : "send");
		free(op->buf);
	}
	for (n = 0; n < NODES; n++) {
		cr_assert_eq(nodes[n].ep.tx_open, 0);
		cr_assert_eq(pool_used(&nodes[n].ep.unexps), 0);
		cr_assert_eq(nodes[n].dom.unexpected_used, 0);
	}
	cr_assert_eq(fake_engine_retained(), 0);
	nodes_close(nodes, NODES);
}

Test(core_tx, every_message_arrives_once_and_whole)
{
	random_run(8000);
}

Test(core_tx, little_room_and_credit_lose_nothing)
{
	fake_engine_cfg.room = 2;
	fake_engine_cfg.credit = 1;
	random_run(8000);
}

Test(core_tx, without_get_messages_are_pulled)
{
	fake_engine_cfg.caps = 0;
	fake_engine_cfg.room = 3;
	random_run(8000);
}

Test(core_tx, small_frames_carry_large_messages)
{
	fake_engine_cfg.eager_max = 160;
	fake_engine_cfg.room = 5;
	random_run(4000);
}

Test(core_tx, over_budget_messages_stay_with_the_sender)
{
	node_limits.unexpected_mem = 2000;
	fake_engine_cfg.room = 8;
	random_run(8000);
}

Test(core_tx, connections_that_take_time_lose_nothing)
{
	fake_engine_cfg.lazy_up = 500;
	random_run(4000);
}

/* Value of tx_queued when a progress call reaches the engine. */
static struct core_progress_ops spy;
static uint32_t queued_then;

static void spy_progress(struct core_progress *base)
{
	queued_then = nodes[0].ep.tx_queued;
	fake_progress_ops.progress(base);
}

/** Opens two nodes, connects them, and has `progress` in place of the engine's at node 0. */
static void open_with_spy(void (*progress)(struct core_progress *base))
{
	static uint8_t bytes[8];

	nodes_open(nodes, 2);
	cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 0, 0, NULL), 0);
	nodes_settle(nodes, 2);
	spy = fake_progress_ops;
	spy.progress = progress;
	nodes[0].dom.progress_ops = &spy;
}

static void close_with_spy(void)
{
	nodes[0].dom.progress_ops = &fake_progress_ops;
	nodes_close(nodes, 2);
}

/* Queued frames leave the process in the same call, which may be the application's last one. */
Test(core_tx, queued_sends_leave_before_the_engines_progress)
{
	static uint8_t bytes[8];

	fake_engine_cfg.room = 1;
	open_with_spy(spy_progress);
	cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 0, 0, NULL), 0);
	cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 0, 0, NULL), 0);
	cr_assert_eq(nodes[0].ep.tx_queued, 1);
	core_dom_progress(&nodes[0].dom);
	cr_expect_eq(queued_then, 1, "no room yet");
	core_dom_progress(&nodes[1].dom);
	core_dom_progress(&nodes[0].dom);
	cr_expect_eq(queued_then, 0, "the engine went first");
	close_with_spy();
}

static unsigned progress_calls, stays_for;

/* A message leaves with the progress call `stays_for`. */
static void count_progress(struct core_progress *progress)
{
	if (++progress_calls == stays_for)
		core_peer_lookup(&nodes[0].ep, 1)->chan->stays = false;
	fake_progress_ops.progress(progress);
}

static int stay(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
		const void *buf, size_t len)
{
	return CORE_SEND_STAYS;
}

/** Returns the progress calls of a send that leaves with the one of that number. */
static unsigned progress_of(unsigned leaves_with, uint64_t flags, enum core_post_end end)
{
	static uint8_t bytes[8];

	progress_calls = 0;
	stays_for = leaves_with;
	cr_assert_eq(core_tx_send_buf(&nodes[0].ep, bytes, 8, 1, 0, 0, NULL, flags, true, end), 0);
	return progress_calls;
}

/* The sender may never call progress, and the peer may never respond. */
Test(core_tx, progress_follows_a_message_that_must_leave_and_stays)
{
	const struct core_chan_ops *own;
	struct core_chan_ops staying;
	struct core_chan *chan;

	fake_engine_cfg.caps |= CORE_CHAN_ASYNC;
	open_with_spy(count_progress);
	chan = core_peer_lookup(&nodes[0].ep, 1)->chan;
	own = chan->ops;
	staying = *own;
	staying.send_buf = stay;
	chan->ops = &staying;
	cr_expect_eq(progress_of(1, 0, CORE_POST_LEAVES), 1);
	cr_expect_eq(progress_of(7, 0, CORE_POST_LEAVES), 7);
	cr_expect_eq(progress_of(0, 0, CORE_POST_DEFERS), 0, "it may leave later");
	cr_expect_eq(progress_of(0, 0, CORE_POST_COMPLETES), 0, "its sender waits");
	cr_expect_eq(progress_of(3, FI_INJECT_COMPLETE, CORE_POST_COMPLETES), 3);
	cr_expect_eq(progress_of(0, 0, CORE_POST_LEAVES), CORE_TX_STAYS_POLLS, "not for ever");
	cr_expect_eq(progress_of(0, 0, CORE_POST_LEAVES), 0, "once");
	cr_expect_eq(progress_of(0, FI_INJECT_COMPLETE, CORE_POST_COMPLETES), 0, "once");
	chan->stays = false;
	cr_expect_eq(progress_of(2, 0, CORE_POST_LEAVES), 2);
	chan->ops = own;
	close_with_spy();
}

static void lose_peer(struct core_progress *progress)
{
	struct core_peer *peer = core_peer_lookup(&nodes[0].ep, 1);

	if (peer->chan)
		core_peer_fail(peer, -FI_ECONNRESET, CORE_PEER_DEAD);
	fake_progress_ops.progress(progress);
}

Test(core_tx, a_peer_may_be_lost_while_a_message_stays)
{
	struct core_chan_ops staying;
	struct core_chan *chan;

	fake_engine_cfg.caps |= CORE_CHAN_ASYNC;
	open_with_spy(lose_peer);
	chan = core_peer_lookup(&nodes[0].ep, 1)->chan;
	staying = *chan->ops;
	staying.send_buf = stay;
	chan->ops = &staying;
	progress_of(0, FI_INJECT_COMPLETE, CORE_POST_COMPLETES);
	cr_expect_null(core_peer_lookup(&nodes[0].ep, 1)->chan);
	close_with_spy();
}

/* The frames of a small ring carry less than the inject size. */
Test(core_tx, an_injected_message_that_one_frame_cannot_carry_is_copied_and_sent)
{
	static const size_t lens[] = { 200, 999, 1000 };
	static uint8_t out[1000], in[1000], scrap[8];
	struct fi_cq_err_entry err;
	struct core_cqe e;

	fake_engine_cfg.eager_max = 128;
	nodes_open(nodes, 2);
	cr_assert_eq(node_send(&nodes[0], 1, scrap, 8, true, 0, FI_COMPLETION, scrap), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	for (unsigned i = 0; i < 3; i++) {
		node_fill(out, lens[i], i);
		cr_assert_eq(node_send(&nodes[0], 1, out, lens[i], true, 1,
				       FI_INJECT | FI_COMPLETION | FI_REMOTE_CQ_DATA, out),
			     0);
		memset(out, 0xEE, sizeof(out));
		cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, 1, 0, FI_COMPLETION, in),
			     0);
		nodes_settle(nodes, 2);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_expect_eq(e.e.len, lens[i]);
		cr_expect(node_check(in, lens[i], i));
		cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
		cr_expect_eq(e.e.op_context, out);
	}
	nodes_close(nodes, 2);
}
