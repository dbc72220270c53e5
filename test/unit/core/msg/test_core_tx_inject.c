/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Injected messages to a peer without room, as of core_tx.h: refused at first, then copied. Copies
 * arrive whole and in order, take a bounded amount of memory, and give it back however they end.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/msg/core_post.h"
#include "support/core_pair.h"

#define LEN 900

static struct node nodes[2];
static uint8_t bytes[LEN];

static void setup(void)
{
	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = 1000,
					    .single_copy_min = 10000,
					    .unexpected_mem = 1 << 20 };
	fake_engine_cfg.room = 1;
	nodes_open(nodes, 2);
	cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 1, 0, NULL), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 1, 0, NULL), 0);
}

static void teardown(void)
{
	nodes_close(nodes, 2);
}

TestSuite(core_tx_inject, .init = setup, .fini = teardown);

static struct core_peer *peer_of(struct node *n)
{
	return core_peer_lookup(&n->ep, 1);
}

/* Injects `len` bytes of the pattern `id`, and overwrites them. */
static int inject(size_t len, uint32_t id, enum core_post_end end)
{
	int ret;

	node_fill(bytes, len, id);
	ret = (int)core_tx_send_buf(&nodes[0].ep, bytes, len, 1, 0, 0, NULL, 0, true, end);
	memset(bytes, 0xEE, sizeof(bytes));
	return ret;
}

/* Injects until a copy is made. Returns the number of refusals before it. */
static unsigned refusals_before_copy(size_t len, uint32_t id)
{
	unsigned cnt = 0;
	int ret;

	while ((ret = inject(len, id, CORE_POST_LEAVES)) == -FI_EAGAIN && cnt < 1000)
		cnt++;
	cr_assert_eq(ret, 0);
	return cnt;
}

/* Receives the next message with tag 0 and checks its bytes. */
static void receive(size_t len, uint32_t id)
{
	static uint8_t in[LEN];
	struct fi_cq_err_entry err;
	struct core_cqe e;

	cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, 0, 0, FI_COMPLETION, in), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(e.e.len, len);
	cr_expect(node_check(in, len, id));
}

Test(core_tx_inject, is_refused_at_first_and_then_copied)
{
	cr_expect_eq(refusals_before_copy(LEN, 0), CORE_TX_INJECT_TRIES);
	for (uint32_t id = 1; id < 20; id++)
		cr_expect_eq(inject(id % 2 ? LEN : id, id, CORE_POST_LEAVES), 0, "the peer rests");
	cr_expect_eq(inject(0, 20, CORE_POST_LEAVES), 0, "bytes or none");
	cr_expect_geq(nodes[0].ep.tx_copied, 11 * LEN);
	for (uint32_t id = 0; id < 20; id++)
		receive(!id || id % 2 ? LEN : id, id);
	receive(0, 20);
	cr_expect_eq(nodes[0].ep.tx_copied, 0);
	cr_expect_eq(nodes[0].ep.tx_open, 0);
}

Test(core_tx_inject, is_refused_again_when_the_peer_had_room)
{
	cr_expect_eq(refusals_before_copy(8, 0), CORE_TX_INJECT_TRIES);
	receive(8, 0);
	cr_expect_eq(inject(8, 1, CORE_POST_LEAVES), 0, "the only frame for which there is room");
	cr_expect_eq(refusals_before_copy(8, 2), CORE_TX_INJECT_TRIES);
	receive(8, 1);
	receive(8, 2);
}

/* fi_tsendmsg with FI_INJECT and FI_COMPLETION: one completion, when the message has left. */
Test(core_tx_inject, has_its_completion)
{
	struct fi_cq_err_entry err;
	struct core_cqe e;
	unsigned cnt = 0;
	int ret;

	refusals_before_copy(8, 0);
	nodes_settle(nodes, 2);
	while (node_poll(&nodes[0], &e, &err) == 1)
		continue;
	cr_assert_eq(inject(8, 1, CORE_POST_LEAVES), 0);
	do {
		node_fill(bytes, LEN, 2);
		ret = node_send(&nodes[0], 1, bytes, LEN, true, 0, FI_INJECT | FI_COMPLETION, &cnt);
		memset(bytes, 0xEE, sizeof(bytes));
	} while (ret == -FI_EAGAIN && cnt++ < CORE_TX_INJECT_TRIES);
	cr_assert_eq(ret, 0);
	cr_expect_neq(node_poll(&nodes[0], &e, &err), 1, "it waits");
	receive(8, 0);
	receive(8, 1);
	receive(LEN, 2);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_expect_eq(e.e.op_context, &cnt);
	cr_expect_neq(node_poll(&nodes[0], &e, &err), 1, "once");
}

/* The callers of cpr_silent.h wait without a copy. */
Test(core_tx_inject, is_never_copied_where_it_may_be_deferred)
{
	for (unsigned i = 0; i < 10 * CORE_TX_INJECT_TRIES; i++)
		cr_assert_eq(inject(LEN, i, CORE_POST_DEFERS), -FI_EAGAIN);
	cr_expect_eq(nodes[0].ep.tx_copied, 0);
}

Test(core_tx_inject, copies_take_bounded_memory)
{
	size_t len = 0;

	refusals_before_copy(LEN, 0);
	while (inject(LEN, 0, CORE_POST_LEAVES) == 0)
		cr_assert_leq(len += LEN, CORE_TX_COPIED_MAX);
	cr_expect_geq(len, CORE_TX_COPIED_MAX / 2);
	cr_expect_leq(nodes[0].ep.tx_copied, CORE_TX_COPIED_MAX);
	cr_expect_eq(inject(LEN, 0, CORE_POST_LEAVES), -FI_EAGAIN);
	receive(LEN, 0);
	cr_expect_eq(refusals_before_copy(LEN, 0), CORE_TX_INJECT_TRIES, "some have left");
}

static unsigned sent, sent_now;
static const struct core_chan_ops *own;

static int count_now(struct core_chan *chan, const struct core_frame *frame, unsigned flags)
{
	int ret = own->send(chan, frame, flags);

	sent += !ret;
	sent_now += !ret && (flags & CORE_SEND_NOW);
	return ret;
}

/* Messages that waited together travel together: the last one makes all of them leave. */
Test(core_tx_inject, only_the_last_copy_must_leave_at_once)
{
	struct core_chan *chan = peer_of(&nodes[0])->chan;
	struct core_chan_ops counting;

	refusals_before_copy(8, 0);
	for (uint32_t id = 1; id < 10; id++)
		cr_assert_eq(inject(8, id, CORE_POST_LEAVES), 0);
	own = chan->ops;
	counting = *own;
	counting.send = count_now;
	chan->ops = &counting;
	for (uint32_t id = 0; id < 10; id++)
		receive(8, id);
	chan->ops = own;
	cr_expect_eq(sent, 10);
	cr_expect_eq(sent_now, 1);
}

/* Neither its sender nor its peer makes any other call. */
Test(core_tx_inject, that_is_only_tried_again_is_connected)
{
	unsigned cnt = 0;

	teardown();
	fake_engine_cfg.lazy_up = 10;
	nodes_open(nodes, 2);
	while (inject(LEN, 7, CORE_POST_LEAVES) == -FI_EAGAIN)
		cr_assert_lt(cnt++, 100);
	receive(LEN, 7);
}

/* A first message that is accepted has left: its sender may never make progress. */
Test(core_tx_inject, is_never_copied_while_its_peer_connects)
{
	teardown();
	fake_engine_cfg.lazy_up = 1000;
	nodes_open(nodes, 2);
	for (unsigned i = 0; i < 10 * CORE_TX_INJECT_TRIES; i++)
		cr_assert_eq(inject(LEN, 7, CORE_POST_LEAVES), -FI_EAGAIN);
	for (unsigned i = 0; i < 10; i++)
		nodes_settle(nodes, 2);
	cr_expect_eq(inject(LEN, 7, CORE_POST_LEAVES), 0);
	receive(LEN, 7);
}

Test(core_tx_inject, ends_with_its_peer)
{
	struct fi_cq_err_entry err;
	struct core_cqe e;
	unsigned errors = 0;
	int ret;

	refusals_before_copy(LEN, 0);
	cr_assert_eq(inject(LEN, 1, CORE_POST_LEAVES), 0);
	core_peer_fail(peer_of(&nodes[0]), -FI_ECONNRESET, CORE_PEER_DEAD);
	while ((ret = node_poll(&nodes[0], &e, &err)))
		errors += ret < 0;
	cr_expect_eq(errors, 2, "a lost message is an error, though its end would be silent");
	cr_expect_eq(nodes[0].ep.tx_copied, 0);
}
