/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Arrivals: truncation, unexpected messages and their budget, multi-receive buffers. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/core_pair.h"
#include "support/pool_used.h"
#include "wire/wire_op.h"

static struct node nodes[2];
static struct core_cqe e;
static struct fi_cq_err_entry err;
static uint8_t out[20000], in[20000];

static void setup(void)
{
	nodes_open_plain(nodes, 2);
	memset(in, 0, sizeof(in));
}

static void teardown(void)
{
	nodes_close(nodes, 2);
}

TestSuite(core_rx, .init = setup, .fini = teardown);

static const size_t lens[] = { 1, 100, 1000, 1001, 9999, 10000, 20000 };
#define LENS (sizeof(lens) / sizeof(lens[0]))

Test(core_rx, a_message_longer_than_its_buffer_is_truncated)
{
	bool first;
	size_t i, len;

	for (i = 0; i < 2 * LENS; i++) {
		first = i & 1; /* receive posted first, or message unexpected */
		len = lens[i / 2];
		node_fill(out, len, (uint32_t)i);
		memset(in, 0xEE, sizeof(in));
		if (first)
			node_recv(&nodes[1], 0, in, len - 1, true, 7, 0, FI_COMPLETION, &in);
		node_send(&nodes[0], 1, out, len, true, 7, FI_COMPLETION | FI_REMOTE_CQ_DATA, &out);
		nodes_settle(nodes, 2);
		if (!first)
			node_recv(&nodes[1], 0, in, len - 1, true, 7, 0, FI_COMPLETION, &in);
		nodes_settle(nodes, 2);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), -FI_EAVAIL, "length %zu", len);
		cr_assert_eq(err.err, FI_ETRUNC);
		cr_assert_eq(err.len, len - 1);
		cr_assert_eq(err.olen, 1);
		cr_assert_eq(err.op_context, &in);
		cr_assert_eq(err.tag, 7);
		cr_assert_eq(err.data, 21);
		cr_assert(node_check(in, len - 1, (uint32_t)i));
		cr_assert_eq(in[len - 1], 0xEE, "a byte after the buffer was written");
		cr_assert_eq(node_poll(&nodes[0], &e, &err), 1, "the send succeeds");
		cr_assert_eq(node_poll(&nodes[0], &e, &err), 0);
	}
	cr_assert_eq(nodes[1].rx_cntr.errors, 2 * LENS);
	cr_assert_eq(nodes[1].rx_cntr.value, 0);
	cr_assert_eq(nodes[0].tx_cntr.value, 2 * LENS);
}

Test(core_rx, over_budget_bytes_stay_in_the_ring_and_arrive_in_order)
{
	unsigned i;

	nodes[1].dom.limits.unexpected_mem = 1500;
	for (i = 0; i < 10; i++) {
		node_fill(out, 700, i);
		cr_assert_eq(node_send(&nodes[0], 1, out, 700, true, i, 0, NULL), 0);
		nodes_settle(nodes, 2);
	}
	cr_assert_eq(nodes[1].dom.unexpected_used, 1400);
	cr_assert_eq(fake_engine_retained(), 8);
	for (i = 10; i--;) {
		node_recv(&nodes[1], 0, in, 1000, true, i, 0, FI_COMPLETION, NULL);
		cr_assert(node_check(in, 700, i));
	}
	cr_assert_eq(fake_engine_retained(), 0);
	cr_assert_eq(nodes[1].dom.unexpected_used, 0);
}

Test(core_rx, a_multi_receive_buffer_takes_messages_until_it_is_full)
{
	size_t at = 0;
	unsigned i;

	nodes[1].ep.min_multi_recv = 100;
	node_recv(&nodes[1], FI_ADDR_UNSPEC, in, 1000, false, 0, 0, FI_COMPLETION | FI_MULTI_RECV,
		  &in);
	for (i = 0; i < 4; i++) {
		node_fill(out, 230, i);
		node_send(&nodes[0], 1, out, 230, false, 0, 0, NULL);
		nodes_settle(nodes, 2);
	}
	for (i = 0; i < 4; i++) {
		while (node_poll(&nodes[0], &e, &err))
			;
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_assert_eq(e.e.op_context, &in);
		cr_assert_eq(e.e.buf, in + at);
		cr_assert_eq(e.e.len, 230);
		cr_assert(node_check(e.e.buf, 230, i));
		/* The fourth leaves 80 bytes, less than the minimum. */
		cr_assert_eq(!!(e.e.flags & FI_MULTI_RECV), i == 3);
		at += 230;
	}
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 0);
	cr_assert_eq(pool_used(&nodes[1].ep.rx_reqs), 0);
}

Test(core_rx, a_multi_receive_buffer_takes_unexpected_messages)
{
	unsigned i, released = 0, received = 0;

	nodes[1].ep.min_multi_recv = 1;
	for (i = 0; i < 3; i++) {
		node_fill(out, 400, i);
		node_send(&nodes[0], 1, out, 400, false, 0, 0, NULL);
		nodes_settle(nodes, 2);
	}
	/* Room for two messages; the third one goes to the next buffer. */
	for (i = 0; i < 2; i++)
		node_recv(&nodes[1], FI_ADDR_UNSPEC, in + 1000 * i, 900, false, 0, 0,
			  FI_COMPLETION | FI_MULTI_RECV, in + 1000 * i);
	while (node_poll(&nodes[1], &e, &err) == 1) {
		released += !!(e.e.flags & FI_MULTI_RECV);
		if (e.e.flags & FI_RECV) {
			cr_assert(node_check(e.e.buf, 400, received));
			cr_assert_eq(e.e.op_context, received < 2 ? in : in + 1000);
			received++;
		}
	}
	cr_assert_eq(received, 3);
	cr_assert_eq(released, 1);
}

Test(core_rx, selective_completion_requires_the_flag)
{
	nodes[0].ep.tx.selective = true;
	nodes[1].ep.rx.selective = true;
	node_recv(&nodes[1], 0, in, 8, true, 1, 0, 0, NULL);
	node_recv(&nodes[1], 0, in, 8, true, 1, 0, FI_COMPLETION, &in);
	node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL);
	node_send(&nodes[0], 1, out, 8, true, 1, FI_COMPLETION, &out);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_assert_eq(e.e.op_context, &out);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_assert_eq(e.e.op_context, &in);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 0);
	cr_assert_eq(nodes[0].tx_cntr.value, 2, "counters count every send");
	cr_assert_eq(nodes[1].rx_cntr.value, 2);
}

/* The end of the buffer is always reported. */
Test(core_rx, selective_completion_leaves_out_messages_in_a_multi_receive_buffer)
{
	nodes[1].ep.rx.selective = true;
	nodes[1].ep.min_multi_recv = 100;
	node_recv(&nodes[1], FI_ADDR_UNSPEC, in, 500, false, 0, 0, FI_MULTI_RECV, &in);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 0, "message %u", i);
		node_send(&nodes[0], 1, out, 230, false, 0, 0, NULL);
		nodes_settle(nodes, 2);
	}
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(e.e.op_context, &in);
	cr_expect_eq(e.e.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
	cr_expect_eq(e.e.buf, in + 230);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 0);
	cr_expect_eq(nodes[1].rx_cntr.value, 2);
}

Test(core_rx, a_malformed_message_fails_the_channel)
{
	static const struct {
		uint32_t op, len;
	} bad[] = {
		{ 0, 8 },           /* no operation */
		{ 0x11, 7 },        /* truncated tag */
		{ 0x61, 16 },       /* both kinds of data */
		{ 0x80, 16 },       /* unknown flag */
		{ 0x06, 16 },       /* unknown operation */
		{ 0x7FFFFFFF, 64 }, /* all bits but one */
		{ 0x02, 16 },       /* PART without bytes */
		{ 0x03, 16 },       /* CONT without bytes */
		{ 0x03, 32 },       /* CONT of no message */
		{ 0x04, 24 },       /* RNDV that is not a call */
	};
	static const uint8_t zeros[64];
	struct core_chan *chan;
	size_t i;

	node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 2);
	chan = nodes[1].ep.peers[0]->chan;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(core_rx_on_msg(chan, bad[i].op, zeros, bad[i].len, 0), CORE_RX_BAD,
			     "case %zu", i);
}
