/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Notices of the end of kept messages: when they are due, their order, and bad ones. */
#include "core/msg/core_done.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_handler.h"
#include "core/core_peer.h"
#include "support/pool_used.h"
#include "unit/core/msg/bulk_fixture.h"
#include "wire/wire_op.h"

TestSuite(core_done, .init = bulk_setup, .fini = bulk_teardown);

/** Sends messages of `len` bytes with the tags 1 to `cnt`, which no receive matches. */
static void send_unmatched_many(unsigned cnt, size_t len)
{
	for (unsigned i = 1; i <= cnt; i++)
		cr_assert_eq(node_send(&bulk_nodes[0], 1, bulk_out, len, true, i,
				       FI_COMPLETION | FI_MATCH_COMPLETE, NULL),
			     0);
	nodes_settle(bulk_nodes, 2);
	cr_expect_not(bulk_has_left(), "%zu bytes: a message without a receive", len);
}

/** Receives them, the last one first: each ends its own send. */
static void receive_many(unsigned cnt, size_t len)
{
	for (unsigned i = cnt; i; i--) {
		bulk_post(i);
		nodes_settle(bulk_nodes, 2);
		cr_assert_eq(node_poll(&bulk_nodes[1], &bulk_cqe, &bulk_err), 1);
		cr_expect(node_check(bulk_in, len, 1), "message %u of %zu bytes", i, len);
		cr_expect(bulk_has_left(), "message %u of %zu bytes", i, len);
		cr_expect_not(bulk_has_left());
	}
}

/** Any number of messages without a receive leaves the credit to those with one. */
Test(core_done, unmatched_messages_hold_no_credit)
{
	static const size_t lens[] = { 0, 1, BULK_EAGER, BULK_RNDV_MIN, BULK_LEN };

	fake_engine_cfg.credit = 1;
	for (unsigned i = 0; i < 10; i++) {
		size_t len = lens[i / 2];

		fake_engine_cfg.expose_err = i % 2 ? -FI_ENOMEM : 0; /* fetched, or in parts */
		node_fill(bulk_out, len, 1);
		send_unmatched_many(50, len);
		bulk_send(BULK_LEN, 0);
		bulk_receive(BULK_LEN);
		cr_expect(bulk_has_left(), "overtakes those of %zu bytes", len);
		node_fill(bulk_out, len, 1);
		receive_many(50, len);
		cr_expect_eq(bulk_nodes[0].ep.tx_ids.used_cnt, 0);
		cr_expect_eq(pool_used(&bulk_nodes[1].ep.dones), 0);
	}
}

/** Announces a message that is kept, and has its receive posted while there is no room. */
static void keep_and_stop(void)
{
	bulk_send(BULK_LEN, 0);
	cr_assert_eq(pool_used(&bulk_nodes[1].ep.dones), 1);
	fake_engine_cfg.room = 0;
	bulk_post(0);
	nodes_settle(bulk_nodes, 2);
	cr_expect_eq(node_poll(&bulk_nodes[1], &bulk_cqe, &bulk_err), 1);
	cr_expect_not(bulk_has_left(), "there was no room");
	cr_expect_eq(bulk_nodes[1].ep.tx_open, 1);
}

Test(core_done, a_notice_waits_for_room)
{
	keep_and_stop();
	fake_engine_cfg.room = 1000;
	nodes_settle(bulk_nodes, 2);
	cr_expect(bulk_has_left());
	cr_expect_eq(bulk_nodes[1].ep.tx_open, 0);
	cr_expect_eq(pool_used(&bulk_nodes[1].ep.dones), 0);
}

Test(core_done, a_notice_ends_with_its_channel)
{
	keep_and_stop();
	fake_engine_kill(&bulk_nodes[0].ep, &bulk_nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(bulk_nodes, 2);
	cr_assert_eq(node_poll(&bulk_nodes[0], &bulk_cqe, &bulk_err), -FI_EAVAIL);
	cr_expect_eq(bulk_err.err, FI_ECONNRESET);
	cr_expect_eq(bulk_nodes[1].ep.tx_open, 0);
	cr_expect_eq(pool_used(&bulk_nodes[1].ep.dones), 0);
}

/** A fenced operation of the receiver may wait for this very notice. */
Test(core_done, a_notice_overtakes_operations_that_wait)
{
	bulk_send(BULK_LEN, 0);
	cr_assert_eq(node_send(&bulk_nodes[1], 0, bulk_out, 1, true, 5, FI_MATCH_COMPLETE, NULL),
		     0);
	cr_assert_eq(node_send(&bulk_nodes[1], 0, bulk_out, 1, true, 6, FI_FENCE, NULL), 0);
	fake_engine_cfg.room = 0;
	bulk_post(0);
	nodes_settle(bulk_nodes, 2);
	fake_engine_cfg.room = 1000;
	nodes_settle(bulk_nodes, 2);
	cr_expect(bulk_has_left());
	cr_assert_eq(node_recv(&bulk_nodes[0], 1, bulk_in, 1, true, 5, 0, 0, NULL), 0);
	nodes_settle(bulk_nodes, 2);
}

/** Delivers a DONE to node 0. */
static enum core_rx_verdict receive_done(struct wire_done done, uint32_t flags, uint32_t len)
{
	uint8_t bytes[64] = { 0 };
	uint32_t at = wire_ext_len(flags);

	memcpy(bytes + at, &done, sizeof(done));
	return core_upcall_table.on_msg(core_peer_lookup(&bulk_nodes[0].ep, 1)->chan,
					WIRE_OP_DONE | flags, bytes, at + len, 0);
}

/** Returns the id of the only open message of node 0. */
static uint32_t open_id(void)
{
	struct util_list *first = util_list_first(&core_peer_lookup(&bulk_nodes[0].ep, 1)->tx);

	return UTIL_CONTAINER_OF(first, struct core_tx_req, op.peer_link)->send_id;
}

/** A notice must name a message that the peer has kept, and that only once. */
Test(core_done, malformed_notices_are_refused)
{
	const uint32_t len = sizeof(struct wire_done);
	struct wire_done good;

	bulk_send(BULK_LEN, 0);
	good = (struct wire_done){ .send_id = open_id() };
	cr_expect_eq(receive_done(good, 0, len - 1), CORE_RX_BAD, "too short");
	cr_expect_eq(receive_done(good, 0, len + 1), CORE_RX_BAD, "too long");
	cr_expect_eq(receive_done(good, WIRE_F_TAG, len), CORE_RX_BAD, "a tag");
	cr_expect_eq(receive_done(good, WIRE_F_DATA32, len), CORE_RX_BAD, "data");
	good.zero = 1;
	cr_expect_eq(receive_done(good, 0, len), CORE_RX_BAD, "reserved bytes");
	good.zero = 0;
	good.send_id++;
	cr_expect_eq(receive_done(good, 0, len), CORE_RX_BAD, "another id");
	good.send_id--;
	good.status = WIRE_STATUS_KEPT;
	cr_expect_eq(receive_done(good, 0, len), CORE_RX_BAD, "no end of a message");
	good.status = FI_EIO;
	cr_expect_not(bulk_has_left());
	cr_expect_eq(receive_done(good, 0, len), CORE_RX_DONE);
	cr_expect_eq(node_poll(&bulk_nodes[0], &bulk_cqe, &bulk_err), -FI_EAVAIL);
	cr_expect_eq(bulk_err.err, FI_EIO);
	cr_expect_eq(receive_done(good, 0, len), CORE_RX_BAD, "twice");
}

/** Connects, then sends a message that stays on its way. */
static void send_stopped(size_t len, uint64_t flags)
{
	bulk_send(1, 0);
	bulk_receive(1);
	cr_assert(bulk_has_left());
	fake_engine_cfg.no_delivery = true;
	bulk_send(len, flags);
	cr_assert_not(bulk_has_left());
}

/** Over sessions a notice may overtake the reply that announces it. Either order ends the send. */
Test(core_done, a_notice_may_come_before_its_reply)
{
	struct wire_done done = { 0 };

	send_stopped(BULK_LEN, 0);
	done.send_id = open_id();
	cr_expect_eq(receive_done(done, 0, sizeof(done)), CORE_RX_DONE);
	cr_expect_not(bulk_has_left(), "the reply has not come");
	cr_expect_eq(receive_done(done, 0, sizeof(done)), CORE_RX_BAD, "twice");
	fake_engine_cfg.no_delivery = false;
	nodes_settle(bulk_nodes, 2);
	cr_expect(bulk_has_left());
	/* this node really has kept it */
	fake_engine_kill(&bulk_nodes[0].ep, &bulk_nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(bulk_nodes, 2);
}

Test(core_done, a_notice_without_a_kept_message_is_an_error)
{
	struct wire_done done = { 0 };

	send_stopped(BULK_LEN, 0);
	bulk_post(0);
	done.send_id = open_id();
	cr_expect_eq(receive_done(done, 0, sizeof(done)), CORE_RX_DONE);
	fake_engine_cfg.no_delivery = false;
	nodes_settle(bulk_nodes, 2);
	cr_expect_eq(node_poll(&bulk_nodes[0], &bulk_cqe, &bulk_err), -FI_EAVAIL,
		     "the reply says delivered");
	cr_expect_eq(bulk_err.err, FI_EIO);
}

/** The first calls stay open, since their replies have room; further messages are kept. */
Test(core_done, some_calls_stay_open)
{
	fake_engine_cfg.held_max = 2;
	for (unsigned round = 0; round < 3; round++) {
		node_fill(bulk_out, BULK_LEN, 1);
		send_unmatched_many(5, BULK_LEN);
		cr_expect_eq(pool_used(&bulk_nodes[1].ep.dones), 3);
		cr_expect_eq(core_peer_lookup(&bulk_nodes[1].ep, 0)->held_cnt, 2);
		receive_many(5, BULK_LEN);
		cr_expect_eq(core_peer_lookup(&bulk_nodes[1].ep, 0)->held_cnt, 0);
	}
}
