/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send side of pipelined, rendezvous and delivery-complete messages: protocol, end, exposure. */
#include "core/msg/core_tx_bulk.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_handler.h"
#include "core/core_peer.h"
#include "support/core_pair.h"
#include "wire/wire_op.h"

#define EAGER    1000u
#define RNDV_MIN 10000u
#define LEN      (CORE_TX_PIPELINED_MAX + 5000u)

static struct node nodes[2];
static uint8_t out[LEN], in[LEN];
static struct core_cqe e;
static struct fi_cq_err_entry err;

static void setup(void)
{
	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = EAGER,
					    .single_copy_min = RNDV_MIN,
					    .unexpected_mem = 1 << 20 };
	nodes_open(nodes, 2);
}

static void teardown(void)
{
	cr_expect_eq(fake_engine_exposed(), 0);
	cr_expect_eq(fake_engine_retained(), 0);
	cr_expect_eq(nodes[0].ep.tx_open, 0);
	nodes_close(nodes, 2);
}

TestSuite(core_tx_bulk, .init = setup, .fini = teardown);

static void send_it(size_t len, uint64_t flags)
{
	node_fill(out, len, 1);
	memset(in, 0, sizeof(in));
	cr_assert_eq(node_send(&nodes[0], 1, out, len, true, 0, FI_COMPLETION | flags, out), 0);
	nodes_settle(nodes, 2);
}

static void send_two_buffers(size_t len)
{
	struct iovec iov[2] = { { out, 100 }, { out + 100, len - 100 } };
	struct core_send s = { .dest = 1,
			       .iov = iov,
			       .iov_cnt = 2,
			       .len = len,
			       .tagged = true,
			       .flags = FI_COMPLETION,
			       .context = out };

	node_fill(out, len, 1);
	cr_assert_eq(core_tx_send(&nodes[0].ep, &s), 0);
	nodes_settle(nodes, 2);
}

static bool has_left(void)
{
	int ret = node_poll(&nodes[0], &e, &err);

	cr_assert_neq(ret, -FI_EAVAIL, "%d", err.err);
	return ret;
}

/** Receives the message and checks its bytes. */
static void receive(size_t len)
{
	cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, 0, 0, FI_COMPLETION, in), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(e.e.len, len);
	cr_expect(node_check(in, len, 1), "%zu bytes", len);
}

Test(core_tx_bulk, length_selects_pipelined_or_rendezvous)
{
	static const size_t lens[] = {
		EAGER + 1, CORE_TX_SEGMENT_LEN, CORE_TX_SEGMENT_LEN + 1, RNDV_MIN - 1, RNDV_MIN, LEN
	};

	for (unsigned i = 0; i < 6; i++) {
		bool fetched = lens[i] >= RNDV_MIN;
		unsigned gets = fake_engine_gets();

		send_it(lens[i], 0);
		cr_expect_eq(has_left(), !fetched, "%zu bytes", lens[i]);
		cr_expect_eq(fake_engine_exposed(), fetched);
		receive(lens[i]);
		cr_expect_eq(fake_engine_gets() - gets, fetched);
		cr_expect_eq(has_left(), fetched);
		cr_expect_eq(fake_engine_exposed(), 0);
	}
}

/** An eager message is delivered when it has arrived, a longer one when a receive matches it. */
Test(core_tx_bulk, delivery_complete_waits_for_the_peer)
{
	static const size_t lens[] = { 0, 1, EAGER, EAGER + 1, RNDV_MIN, LEN };

	for (unsigned i = 0; i < 6; i++) {
		fake_engine_cfg.no_delivery = true;
		send_it(lens[i], FI_DELIVERY_COMPLETE);
		cr_expect_not(has_left(), "%zu bytes, not delivered", lens[i]);
		fake_engine_cfg.no_delivery = false;
		nodes_settle(nodes, 2);
		cr_expect_eq(has_left(), lens[i] <= EAGER, "%zu bytes", lens[i]);
		receive(lens[i]);
		cr_expect_eq(has_left(), lens[i] > EAGER, "%zu bytes", lens[i]);
	}
}

Test(core_tx_bulk, match_complete_waits_for_the_receive)
{
	static const size_t lens[] = { 0, 1, EAGER, EAGER + 1, RNDV_MIN, LEN };
	static const uint64_t levels[] = { FI_MATCH_COMPLETE,
					   FI_MATCH_COMPLETE | FI_DELIVERY_COMPLETE };

	for (unsigned i = 0; i < 12; i++) {
		size_t len = lens[i / 2];

		send_it(len, levels[i % 2]);
		cr_expect_not(has_left(), "%zu bytes, no receive", len);
		receive(len);
		cr_expect(has_left(), "%zu bytes", len);
	}
}

Test(core_tx_bulk, match_complete_ends_at_once_if_a_receive_is_posted)
{
	static const size_t lens[] = { 0, 1, EAGER, EAGER + 1, RNDV_MIN, LEN };

	for (unsigned i = 0; i < 6; i++) {
		cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, 0, 0, 0, in), 0);
		send_it(lens[i], FI_MATCH_COMPLETE);
		cr_expect(has_left(), "%zu bytes", lens[i]);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_expect(node_check(in, lens[i], 1), "%zu bytes", lens[i]);
	}
}

Test(core_tx_bulk, a_buffer_that_cannot_be_exposed_is_pulled)
{
	fake_engine_cfg.expose_err = -FI_ENOMEM;
	send_it(LEN, 0);
	cr_expect_not(has_left());
	cr_expect_eq(fake_engine_exposed(), 0);
	receive(LEN);
	cr_expect(has_left());
	cr_expect_eq(fake_engine_gets(), 0);
}

Test(core_tx_bulk, several_buffers_are_not_exposed)
{
	send_two_buffers(LEN);
	cr_expect_eq(fake_engine_exposed(), 0);
	receive(LEN);
	cr_expect(has_left());
	cr_expect_eq(fake_engine_gets(), 0);
}

/** Parts that the receiver would request are sent at once, as long as they need little memory. */
Test(core_tx_bulk, several_short_buffers_are_pipelined)
{
	send_two_buffers(RNDV_MIN);
	cr_expect(has_left(), "nobody has received it");
	receive(RNDV_MIN);
	cr_expect_eq(fake_engine_gets(), 0);
}

/** An engine that copies all bytes anyway gets several buffers as one. */
Test(core_tx_bulk, several_buffers_are_joined_where_the_engine_copies)
{
	fake_engine_cfg.eager_min = EAGER;
	send_two_buffers(LEN);
	cr_expect_eq(fake_engine_exposed(), 1);
	receive(LEN);
	cr_expect(has_left());
	cr_expect_eq(fake_engine_gets(), 1);
}

/** Queues the first frame and the CONT frames while there is no room. */
Test(core_tx_bulk, a_message_without_room_continues_where_it_stopped)
{
	fake_engine_cfg.room = 1;
	fake_engine_cfg.expose_err = -FI_ENOMEM;
	send_it(LEN, 0);
	receive(LEN);
	cr_expect(has_left());
	send_it(RNDV_MIN - 1, 0);
	cr_expect(has_left());
	receive(RNDV_MIN - 1);
}

/** Sends a short message with FI_MATCH_COMPLETE that no receive of tag 0 matches. */
static void send_unmatched(void)
{
	cr_assert_eq(
		node_send(&nodes[0], 1, out, 1, true, 1, FI_COMPLETION | FI_MATCH_COMPLETE, NULL),
		0);
}

/** A long message that is pulled needs credit for its last part, beside those without a receive. */
Test(core_tx_bulk, a_pulled_message_ends_beside_unmatched_ones)
{
	const unsigned rooms[] = { 1000, 1, 4 };

	fake_engine_cfg.expose_err = -FI_ENOMEM;
	fake_engine_cfg.credit = 4;
	for (unsigned i = 0; i < 3; i++) {
		fake_engine_cfg.room = rooms[i];
		send_it(LEN, 0);
		for (unsigned k = 0; k < 6; k++)
			send_unmatched();
		nodes_settle(nodes, 2);
		receive(LEN);
		cr_expect(has_left(), "with room for %u frames", rooms[i]);
		cr_expect_eq(e.e.op_context, out);
		for (unsigned k = 0; k < 6; k++)
			cr_assert_eq(node_recv(&nodes[1], 0, in, 1, true, 1, 0, 0, in), 0);
		nodes_settle(nodes, 2);
		for (unsigned k = 0; k < 6; k++)
			cr_assert(has_left());
		while (node_poll(&nodes[1], &e, &err))
			continue;
	}
}

/** Sends messages of `len` bytes with the tags 1 to `cnt`, which no receive matches. */
static void send_unmatched_many(unsigned cnt, size_t len)
{
	for (unsigned i = 1; i <= cnt; i++)
		cr_assert_eq(node_send(&nodes[0], 1, out, len, true, i,
				       FI_COMPLETION | FI_MATCH_COMPLETE, NULL),
			     0);
	nodes_settle(nodes, 2);
	cr_expect_not(has_left(), "%zu bytes: a message without a receive", len);
}

/** Receives them, the last one first: each ends its own send. */
static void receive_many(unsigned cnt, size_t len)
{
	for (unsigned i = cnt; i; i--) {
		cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, i, 0, FI_COMPLETION, in),
			     0);
		nodes_settle(nodes, 2);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_expect(node_check(in, len, 1), "message %u of %zu bytes", i, len);
		cr_expect(has_left(), "message %u of %zu bytes", i, len);
		cr_expect_not(has_left());
	}
}

/** Any number of messages without a receive leaves the credit to those with one. */
Test(core_tx_bulk, unmatched_messages_hold_no_credit)
{
	static const size_t lens[] = { 0, 1, EAGER, RNDV_MIN, LEN };

	fake_engine_cfg.credit = 1;
	for (unsigned i = 0; i < 10; i++) {
		size_t len = lens[i / 2];

		fake_engine_cfg.expose_err = i % 2 ? -FI_ENOMEM : 0; /* fetched, or in parts */
		node_fill(out, len, 1);
		send_unmatched_many(50, len);
		send_it(LEN, 0);
		receive(LEN);
		cr_expect(has_left(), "overtakes those of %zu bytes", len);
		node_fill(out, len, 1);
		receive_many(50, len);
		cr_expect_eq(nodes[0].ep.tx_ids.used_cnt, 0);
		cr_expect_eq(nodes[1].ep.dones.used_cnt, 0);
	}
}

/** Announces a message that is kept, and has its receive posted while there is no room. */
static void keep_and_stop(void)
{
	send_it(LEN, 0);
	cr_assert_eq(nodes[1].ep.dones.used_cnt, 1);
	fake_engine_cfg.room = 0;
	cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, 0, 0, FI_COMPLETION, in), 0);
	nodes_settle(nodes, 2);
	cr_expect_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_not(has_left(), "there was no room");
	cr_expect_eq(nodes[1].ep.tx_open, 1);
}

Test(core_tx_bulk, a_notice_waits_for_room)
{
	keep_and_stop();
	fake_engine_cfg.room = 1000;
	nodes_settle(nodes, 2);
	cr_expect(has_left());
	cr_expect_eq(nodes[1].ep.tx_open, 0);
	cr_expect_eq(nodes[1].ep.dones.used_cnt, 0);
}

Test(core_tx_bulk, a_notice_ends_with_its_channel)
{
	keep_and_stop();
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.err, FI_ECONNRESET);
	cr_expect_eq(nodes[1].ep.tx_open, 0);
	cr_expect_eq(nodes[1].ep.dones.used_cnt, 0);
}

/** A fenced operation of the receiver may wait for this very notice. */
Test(core_tx_bulk, a_notice_overtakes_operations_that_wait)
{
	send_it(LEN, 0);
	cr_assert_eq(node_send(&nodes[1], 0, out, 1, true, 5, FI_MATCH_COMPLETE, NULL), 0);
	cr_assert_eq(node_send(&nodes[1], 0, out, 1, true, 6, FI_FENCE, NULL), 0);
	fake_engine_cfg.room = 0;
	cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, 0, 0, FI_COMPLETION, in), 0);
	nodes_settle(nodes, 2);
	fake_engine_cfg.room = 1000;
	nodes_settle(nodes, 2);
	cr_expect(has_left());
	cr_assert_eq(node_recv(&nodes[0], 1, in, 1, true, 5, 0, 0, NULL), 0);
	nodes_settle(nodes, 2);
}

/** Delivers a DONE to node 0. */
static enum core_rx_verdict receive_done(struct wire_done done, uint32_t flags, uint32_t len)
{
	uint8_t bytes[64] = { 0 };
	uint32_t at = wire_ext_len(flags);

	memcpy(bytes + at, &done, sizeof(done));
	return core_upcall_table.on_msg(core_peer_lookup(&nodes[0].ep, 1)->chan,
					WIRE_OP_DONE | flags, bytes, at + len, 0);
}

/** Returns the id of the only open message of node 0. */
static uint32_t open_id(void)
{
	struct util_list *first = util_list_first(&core_peer_lookup(&nodes[0].ep, 1)->tx);

	return UTIL_CONTAINER_OF(first, struct core_tx_req, op.peer_link)->send_id;
}

/** A notice must name a message that the peer has kept, and that only once. */
Test(core_tx_bulk, malformed_notices_are_refused)
{
	const uint32_t len = sizeof(struct wire_done);
	struct wire_done good;

	send_it(LEN, 0);
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
	cr_expect_not(has_left());
	cr_expect_eq(receive_done(good, 0, len), CORE_RX_DONE);
	cr_expect_eq(node_poll(&nodes[0], &e, &err), -FI_EAVAIL, "kept for ever");
	cr_expect_eq(err.err, FI_EIO);
	cr_expect_eq(receive_done(good, 0, len), CORE_RX_BAD, "twice");
}

/** Connects, then sends a message that stays on its way. */
static void send_stopped(size_t len, uint64_t flags)
{
	send_it(1, 0);
	receive(1);
	cr_assert(has_left());
	fake_engine_cfg.no_delivery = true;
	send_it(len, flags);
	cr_assert_not(has_left());
}

/** Over sessions a notice may overtake the reply that announces it. Either order ends the send. */
Test(core_tx_bulk, a_notice_may_come_before_its_reply)
{
	struct wire_done done = { 0 };

	send_stopped(LEN, 0);
	done.send_id = open_id();
	cr_expect_eq(receive_done(done, 0, sizeof(done)), CORE_RX_DONE);
	cr_expect_not(has_left(), "the reply has not come");
	cr_expect_eq(receive_done(done, 0, sizeof(done)), CORE_RX_BAD, "twice");
	fake_engine_cfg.no_delivery = false;
	nodes_settle(nodes, 2);
	cr_expect(has_left());
	/* this node really has kept it */
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 2);
}

Test(core_tx_bulk, a_notice_without_a_kept_message_is_an_error)
{
	struct wire_done done = { 0 };

	send_stopped(LEN, 0);
	cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, 0, 0, 0, in), 0);
	done.send_id = open_id();
	cr_expect_eq(receive_done(done, 0, sizeof(done)), CORE_RX_DONE);
	fake_engine_cfg.no_delivery = false;
	nodes_settle(nodes, 2);
	cr_expect_eq(node_poll(&nodes[0], &e, &err), -FI_EAVAIL, "the reply says delivered");
	cr_expect_eq(err.err, FI_EIO);
}

/** The first calls stay open, since their replies have room; further messages are kept. */
Test(core_tx_bulk, some_calls_stay_open)
{
	fake_engine_cfg.held_max = 2;
	for (unsigned round = 0; round < 3; round++) {
		node_fill(out, LEN, 1);
		send_unmatched_many(5, LEN);
		cr_expect_eq(nodes[1].ep.dones.used_cnt, 3);
		cr_expect_eq(core_peer_lookup(&nodes[1].ep, 0)->held_cnt, 2);
		receive_many(5, LEN);
		cr_expect_eq(core_peer_lookup(&nodes[1].ep, 0)->held_cnt, 0);
	}
}

/** Tag and 64 bits of data leave no room for the id of a match-complete message in one frame. */
Test(core_tx_bulk, a_match_complete_message_of_the_eager_length_fits_its_frames)
{
	fake_engine_cfg.eager_max = EAGER + 16;
	for (size_t len = EAGER - 8; len <= EAGER; len++) {
		struct iovec iov = { out, len };
		struct core_send s = { .dest = 1,
				       .iov = &iov,
				       .iov_cnt = 1,
				       .len = len,
				       .tagged = true,
				       .data = UINT64_MAX,
				       .flags = FI_COMPLETION | FI_MATCH_COMPLETE |
						FI_REMOTE_CQ_DATA,
				       .context = out };

		node_fill(out, len, 1);
		cr_assert_eq(core_tx_send(&nodes[0].ep, &s), 0);
		nodes_settle(nodes, 2);
		receive(len);
		cr_expect(has_left(), "%zu bytes", len);
	}
}

static const struct core_tx_time *times(void)
{
	return core_peer_lookup(&nodes[0].ep, 1)->selector.times[0];
}

/** Sends a message for which a receive is posted. Returns whether the peer fetched it. */
static bool send_awaited(size_t len)
{
	unsigned gets = fake_engine_gets();

	cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, 0, 0, FI_COMPLETION, in), 0);
	send_it(len, 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect(node_check(in, len, 1), "%zu bytes", len);
	cr_expect(has_left());
	return fake_engine_gets() > gets;
}

/** The first messages go by both protocols. A timed pipelined one ends with a reply. */
Test(core_tx_bulk, single_messages_are_timed)
{
	for (unsigned i = 0; i < 2 * CORE_TX_SELECTOR_FIRST; i++)
		cr_expect_eq(send_awaited(RNDV_MIN), !(i % 2));
	cr_expect_eq(times()[CORE_TX_GET].cnt, CORE_TX_SELECTOR_FIRST);
	cr_expect_eq(times()[CORE_TX_PARTS].cnt, CORE_TX_SELECTOR_FIRST);
}

Test(core_tx_bulk, a_late_receive_says_nothing_of_a_get)
{
	for (unsigned i = 0; i < 2 * CORE_TX_SELECTOR_FIRST; i++) {
		send_it(RNDV_MIN, 0);
		receive(RNDV_MIN);
		cr_expect(has_left());
	}
	cr_expect_eq(fake_engine_gets(), 2 * CORE_TX_SELECTOR_FIRST);
	cr_expect_eq(times()[CORE_TX_GET].cnt, 0);
}

/** A pipelined message that has to be kept counts as slow. */
Test(core_tx_bulk, a_late_receive_of_a_pipelined_message_counts)
{
	cr_expect(send_awaited(RNDV_MIN));
	send_it(RNDV_MIN, 0);
	cr_expect(has_left(), "all bytes are with the peer");
	receive(RNDV_MIN);
	cr_expect_eq(times()[CORE_TX_PARTS].cnt, 1);
	cr_expect_eq(times()[CORE_TX_PARTS].kib_ns, 2 * times()[CORE_TX_GET].kib_ns);
}

/** The last part of a timed message is a call, and waits for credit. */
Test(core_tx_bulk, a_timed_message_waits_for_credit)
{
	cr_expect(send_awaited(RNDV_MIN));
	fake_engine_cfg.credit = 0;
	send_it(RNDV_MIN, 0);
	cr_expect_not(has_left());
	fake_engine_cfg.credit = 1;
	nodes_settle(nodes, 2);
	cr_expect(has_left());
	receive(RNDV_MIN);
}

/** Messages of a stream wait for each other, and their times say nothing. */
Test(core_tx_bulk, a_stream_is_not_timed)
{
	unsigned cnt = 2 * CORE_TX_SELECTOR_FIRST;

	cr_assert(send_awaited(RNDV_MIN)); /* connects: the first of the stream starts alone */
	for (unsigned i = 0; i < cnt; i++)
		cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, 0, 0, FI_COMPLETION, in),
			     0);
	node_fill(out, RNDV_MIN, 1);
	for (unsigned i = 0; i < cnt; i++)
		cr_assert_eq(node_send(&nodes[0], 1, out, RNDV_MIN, true, 0, FI_COMPLETION, out),
			     0);
	nodes_settle(nodes, 2);
	for (unsigned i = 0; i < cnt; i++) {
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_expect(has_left());
	}
	cr_expect_eq(times()[CORE_TX_GET].cnt, 1);
	cr_expect_eq(times()[CORE_TX_PARTS].cnt, 0);
}

/** Where processes share a processor, no message that fits is fetched, and none is timed. */
Test(core_tx_bulk, on_a_shared_processor_messages_are_pipelined)
{
	nodes[0].dom.switches = (struct util_switches){ .events = 1, .shared = true };
	for (unsigned i = 0; i < 2 * CORE_TX_SELECTOR_FIRST; i++)
		cr_expect_not(send_awaited(i % 2 ? RNDV_MIN : CORE_TX_PIPELINED_MAX));
	cr_expect_eq(times()[CORE_TX_PARTS].cnt, 0);
	cr_expect(send_awaited(CORE_TX_PIPELINED_MAX + 1));
}

Test(core_tx_bulk, an_exposure_ends_when_the_peer_dies)
{
	send_it(LEN, 0);
	cr_assert_eq(fake_engine_exposed(), 1);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 2);
	cr_expect_eq(fake_engine_exposed(), 0);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.op_context, out);
	cr_expect_eq(err.err, FI_ECONNRESET);
}

Test(core_tx_bulk, a_failed_get_is_an_error_at_both_ends)
{
	fake_engine_cfg.get_err = -FI_EIO;
	send_it(LEN, 0);
	cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, 0, 0, FI_COMPLETION, in), 0);
	nodes_settle(nodes, 2);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(node_poll(&nodes[i], &e, &err), -FI_EAVAIL);
		cr_expect_eq(err.err, FI_EIO);
		cr_expect_eq(err.op_context, i ? in : out);
	}
}
