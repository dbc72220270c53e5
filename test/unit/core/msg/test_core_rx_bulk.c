/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive side of messages of several frames or with a reply: order, integrity, bad frames. */
#include "core/msg/core_rx_bulk.h"
#include "core/core_handler.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
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

TestSuite(core_rx_bulk, .init = setup, .fini = teardown);

Test(core_rx_bulk, parts_after_retained_ones_stay_in_order)
{
	fake_engine_cfg.room = 1;
	fake_engine_cfg.eager_max = 1000;
	nodes[1].dom.limits.unexpected_mem = 1000;
	node_fill(out, 5000, 7);
	node_send(&nodes[0], 1, out, 5000, true, 7, 0, NULL);
	for (int i = 0; i < 100 && !fake_engine_retained(); i++) {
		core_dom_progress(&nodes[0].dom);
		core_dom_progress(&nodes[1].dom);
	}
	cr_assert_eq(fake_engine_retained(), 1);
	nodes[1].dom.limits.unexpected_mem = 1 << 20; /* enough for the rest */
	nodes_settle(nodes, 2);
	cr_assert_gt(fake_engine_retained(), 1);
	node_recv(&nodes[1], 0, in, sizeof(in), true, 7, 0, FI_COMPLETION, &in);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_assert(node_check(in, 5000, 7));
	cr_assert_eq(fake_engine_retained(), 0);
}

/** Connects the nodes and returns the channel of node 1 to node 0. */
static struct core_chan *connected_chan(void)
{
	node_send(&nodes[0], 1, out, 0, false, 0, 0, NULL);
	nodes_settle(nodes, 2);
	node_recv(&nodes[1], 0, in, 0, false, 0, 0, FI_COMPLETION, NULL);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	return nodes[1].ep.peers[0]->chan;
}

/** Delivers PART (offset 0) or CONT of message `id`, with `len` bytes of 0x55, to node 1. */
static enum core_rx_verdict receive_part(struct core_chan *chan, uint32_t id, uint64_t total,
					 uint64_t offset, uint32_t len)
{
	struct wire_part part = { .total_len = total, .send_id = id };
	struct wire_cont cont = { .offset = offset, .id = id, .kind = WIRE_CONT_SENT };
	uint8_t bytes[16 + 200];

	memcpy(bytes, offset ? (void *)&cont : (void *)&part, 16);
	memset(bytes + 16, 0x55, len);
	return core_rx_on_msg(chan, offset ? WIRE_OP_CONT : WIRE_OP_PART, bytes, 16 + len, 0);
}

Test(core_rx_bulk, a_part_that_is_too_long_is_refused)
{
	static const uint64_t totals[] = { 50, 150 }; /* stored in the record, and on the heap */
	struct core_chan *chan = connected_chan();
	uint32_t id = 1;

	memset(in, 0xEE, sizeof(in));
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned posted = 0; posted < 2; posted++, id++) {
			if (posted)
				node_recv(&nodes[1], 0, in, sizeof(in), false, 0, 0, FI_COMPLETION,
					  NULL);
			cr_assert_eq(receive_part(chan, id, totals[i], 0, 40), CORE_RX_DONE);
			cr_assert_eq(
				receive_part(chan, id, totals[i], 40, (uint32_t)totals[i] - 39),
				CORE_RX_BAD, "%u bytes, posted %u", (unsigned)totals[i], posted);
			cr_assert_eq(in[40], 0xEE);
		}
	}
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 0);
}

Test(core_rx_bulk, a_cancelled_multi_receive_buffer_is_released_by_its_last_message)
{
	struct core_chan *chan = connected_chan();

	for (unsigned parts = 0; parts < 2; parts++) {
		node_recv(&nodes[1], FI_ADDR_UNSPEC, in, 1000, false, 0, 0,
			  FI_COMPLETION | FI_MULTI_RECV, in);
		if (parts)
			cr_assert_eq(receive_part(chan, 1, 200, 0, 100), CORE_RX_DONE);
		cr_assert_eq(core_rx_cancel(&nodes[1].ep, in), 0);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), -FI_EAVAIL);
		cr_expect_eq(err.err, FI_ECANCELED);
		cr_expect_eq(!!(err.flags & FI_MULTI_RECV), !parts);
	}
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 0);
	cr_assert_eq(receive_part(chan, 1, 200, 100, 100), CORE_RX_DONE);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(e.e.len, 200);
	cr_expect(e.e.flags & FI_MULTI_RECV);
	cr_expect_eq(pool_used(&nodes[1].ep.rx_reqs), 0);
}

Test(core_rx_bulk, a_pulled_message_releases_its_id)
{
	fake_engine_cfg.room = 1;
	fake_engine_cfg.caps &= ~(uint32_t)CORE_CHAN_GET;
	node_recv(&nodes[1], 0, in, sizeof(in), true, 7, 0, FI_COMPLETION, NULL);
	node_fill(out, sizeof(out), 7);
	node_send(&nodes[0], 1, out, sizeof(out), true, 7, FI_DELIVERY_COMPLETE, NULL);
	for (int i = 0; i < 100 && !nodes[1].ep.rx_ids.used_cnt; i++) {
		core_dom_progress(&nodes[0].dom);
		core_dom_progress(&nodes[1].dom);
	}
	cr_assert_eq(nodes[1].ep.rx_ids.used_cnt, 1);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_assert(node_check(in, sizeof(in), 7));
	cr_assert_eq(nodes[1].ep.rx_ids.used_cnt, 0);
}

Test(core_rx_bulk, a_kept_message_counts_as_delivered)
{
	static const size_t kept[] = { 0, 1, 999, 1000 }; /* eager lengths */
	size_t i;

	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		node_fill(out, kept[i], (uint32_t)i);
		node_send(&nodes[0], 1, out, kept[i], true, 7, FI_COMPLETION | FI_DELIVERY_COMPLETE,
			  &out);
		nodes_settle(nodes, 2);
		cr_assert_eq(node_poll(&nodes[0], &e, &err), 1, "%zu: nothing", kept[i]);
		node_recv(&nodes[1], 0, in, sizeof(in), true, 7, 0, FI_COMPLETION, &in);
		nodes_settle(nodes, 2);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_assert(node_check(in, kept[i], (uint32_t)i));
		cr_assert_eq(node_poll(&nodes[0], &e, &err), 0, "%zu: twice", kept[i]);
	}
}

/** Sends a message that completes when it has matched, and expects that it waits. */
static void send_unmatched(size_t len)
{
	node_fill(out, len, 1);
	node_send(&nodes[0], 1, out, len, true, 7, FI_COMPLETION | FI_MATCH_COMPLETE, &out);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0, "%zu: no receive", len);
}

static int probe(uint64_t flags)
{
	struct core_recv r = {
		.src = 0, .tag = 7, .context = &nodes, .flags = flags, .tagged = true
	};

	r.iov = &(struct iovec){ in, sizeof(in) };
	r.iov_cnt = 1;
	return (int)(flags & FI_PEEK ? core_rx_peek(&nodes[1].ep, &r)
				     : core_rx_claim(&nodes[1].ep, &r));
}

/** Claims the message, which must leave its sender waiting. */
static void claim(void)
{
	cr_assert_eq(probe(FI_PEEK | FI_CLAIM), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0, "a claimed message has no receive");
}

Test(core_rx_bulk, a_claimed_message_matches_when_it_is_received)
{
	send_unmatched(100);
	claim();
	cr_assert_eq(probe(FI_CLAIM), 0);
	nodes_settle(nodes, 2);
	cr_expect_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_expect(node_check(in, 100, 1));
}

Test(core_rx_bulk, a_discarded_message_has_matched)
{
	for (unsigned claimed = 0; claimed < 2; claimed++) {
		send_unmatched(1000);
		if (claimed)
			claim();
		cr_assert_eq(probe((claimed ? FI_CLAIM : FI_PEEK) | FI_DISCARD), 0);
		nodes_settle(nodes, 2);
		cr_expect_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_expect_eq(node_poll(&nodes[0], &e, &err), 1, "claimed: %u", claimed);
	}
	cr_expect_eq(pool_used(&nodes[1].ep.unexps), 0);
}

Test(core_rx_bulk, a_message_that_is_cut_has_matched)
{
	for (unsigned posted = 0; posted < 2; posted++) {
		if (!posted)
			send_unmatched(100);
		node_recv(&nodes[1], 0, in, 40, true, 7, 0, FI_COMPLETION, &in);
		if (posted)
			node_send(&nodes[0], 1, out, 100, true, 7,
				  FI_COMPLETION | FI_MATCH_COMPLETE, &out);
		nodes_settle(nodes, 2);
		cr_expect_eq(node_poll(&nodes[1], &e, &err), -FI_EAVAIL);
		cr_expect_eq(err.err, FI_ETRUNC);
		cr_expect_eq(node_poll(&nodes[0], &e, &err), 1, "posted: %u", posted);
	}
}

Test(core_rx_bulk, a_receive_that_was_cancelled_matches_nothing)
{
	node_recv(&nodes[1], 0, in, sizeof(in), true, 7, 0, FI_COMPLETION, &in);
	cr_assert_eq(core_rx_cancel(&nodes[1].ep, &in), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), -FI_EAVAIL);
	send_unmatched(100);
	node_recv(&nodes[1], 0, in, sizeof(in), true, 7, 0, FI_COMPLETION, &in);
	nodes_settle(nodes, 2);
	cr_expect_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_expect_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect(node_check(in, 100, 1));
}

/** Keeps the bytes in the ring while memory is used up: there, too, the reply waits for a match. */
Test(core_rx_bulk, a_retained_message_is_confirmed_once)
{
	nodes[1].dom.limits.unexpected_mem = 100;
	send_unmatched(900);
	cr_assert_eq(fake_engine_retained(), 1);
	node_recv(&nodes[1], 0, in, sizeof(in), true, 7, 0, FI_COMPLETION, &in);
	nodes_settle(nodes, 2);
	cr_expect_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect(node_check(in, 900, 1));
	cr_expect_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_expect_eq(node_poll(&nodes[0], &e, &err), 0);
	cr_expect_eq(fake_engine_retained(), 0);
}

/** Malformed calls, and calls without room for the reply, are refused and leave no record. */
Test(core_rx_bulk, malformed_calls_are_refused)
{
	static const struct {
		uint32_t op, len, resp_max;
	} bad[] = {
		{ WIRE_OP_RNDV, 31, 16 },              /* one byte too short */
		{ WIRE_OP_RNDV, 33, 16 },              /* one byte too long */
		{ WIRE_OP_RNDV, 32, 15 },              /* no room for the reply */
		{ WIRE_OP_DLVR, 8, 15 },               /* no room for the reply */
		{ WIRE_OP_DLVR | WIRE_F_TAG, 7, 16 },  /* truncated tag */
		{ WIRE_OP_SYNC, 8, 15 },               /* no room for the reply */
		{ WIRE_OP_SYNC, 3, 16 },               /* truncated id */
		{ WIRE_OP_SYNC | WIRE_F_TAG, 7, 16 },  /* truncated tag */
		{ WIRE_OP_DONE, 16, 16 },              /* not a call */
		{ WIRE_OP_CONT, 32, 16 },              /* no such message */
		{ WIRE_OP_CONT | WIRE_F_TAG, 40, 16 }, /* tag not allowed */
		{ WIRE_OP_MSG, 8, 16 },                /* not a call */
		{ WIRE_OP_PART, 32, 16 },              /* not a call */
	};
	struct core_chan *chan = connected_chan();
	uint8_t bytes[64] = { 0 };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct core_call_ref ref = { .call_id = 1, .resp_max = bad[i].resp_max };

		memcpy(bytes, &bad[i].op, 4);
		cr_expect_eq(core_upcall_table.on_call(chan, ref, bytes, 4 + bad[i].len, 0),
			     CORE_RX_BAD, "case %zu", i);
	}
	cr_expect_eq(pool_used(&nodes[1].ep.unexps), 0);
}

Test(core_rx_bulk, reserved_bytes_of_an_announcement_are_refused)
{
	struct wire_rndv rndv = { .total_len = 5000, .addr = 1, .send_id = 7, .zero = 1 };
	struct core_chan *chan = connected_chan();
	struct core_call_ref ref = { .call_id = 1, .resp_max = sizeof(struct wire_status) };
	uint8_t bytes[4 + sizeof(rndv)] = { WIRE_OP_RNDV };

	memcpy(bytes + 4, &rndv, sizeof(rndv));
	cr_expect_eq(core_upcall_table.on_call(chan, ref, bytes, sizeof(bytes), 0), CORE_RX_BAD);
	cr_expect_eq(pool_used(&nodes[1].ep.unexps), 0);
}

/** Refuses a CONT after a gap, a repeated one, and one of another message. */
Test(core_rx_bulk, parts_out_of_order_are_refused)
{
	struct core_chan *chan = connected_chan();

	cr_assert_eq(receive_part(chan, 1, 150, 0, 40), CORE_RX_DONE);
	cr_expect_eq(receive_part(chan, 1, 150, 41, 10), CORE_RX_BAD, "after a gap");
	cr_expect_eq(receive_part(chan, 1, 150, 39, 10), CORE_RX_BAD, "repeated");
	cr_expect_eq(receive_part(chan, 2, 150, 40, 10), CORE_RX_BAD, "another message");
	cr_assert_eq(receive_part(chan, 1, 150, 40, 110), CORE_RX_DONE);
	cr_expect_eq(receive_part(chan, 1, 150, 150, 1), CORE_RX_BAD, "after the end");
	node_recv(&nodes[1], 0, in, sizeof(in), false, 0, 0, FI_COMPLETION, NULL);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(e.e.len, 150);
	cr_expect_eq(in[149], 0x55);
}
