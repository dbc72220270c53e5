/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send side of pipelined, rendezvous and delivery-complete messages: protocol, end, exposure. */
#include "core/msg/core_tx_bulk.h"

#include <copyrpc/stats.h>
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "core/core_dom.h"
#include "core/core_peer.h"
#include "unit/core/msg/bulk_fixture.h"
#include "wire/wire_op.h"

TestSuite(core_tx_bulk, .init = bulk_setup, .fini = bulk_teardown);

Test(core_tx_bulk, length_selects_pipelined_or_rendezvous)
{
	static const size_t lens[] = { BULK_EAGER + 1,          CORE_TX_SEGMENT_LEN,
				       CORE_TX_SEGMENT_LEN + 1, BULK_RNDV_MIN - 1,
				       BULK_RNDV_MIN,           BULK_LEN };

	for (unsigned i = 0; i < 6; i++) {
		bool fetched = lens[i] >= BULK_RNDV_MIN;
		unsigned gets = fake_engine_gets();

		bulk_send(lens[i], 0);
		cr_expect_eq(bulk_has_left(), !fetched, "%zu bytes", lens[i]);
		cr_expect_eq(fake_engine_exposed(), fetched);
		bulk_receive(lens[i]);
		cr_expect_eq(fake_engine_gets() - gets, fetched);
		cr_expect_eq(bulk_has_left(), fetched);
		cr_expect_eq(fake_engine_exposed(), 0);
	}
}

/** Returns what node 0 counts of long transfers that node 1 fetched. */
static const struct copyrpc_stats_peer *given(void)
{
	return core_peer_get(&bulk_nodes[0].ep, 1)->chan->stats;
}

Test(core_tx_bulk, messages_that_the_peer_fetched_are_counted_and_no_others)
{
	bulk_send(BULK_EAGER, 0);
	bulk_receive(BULK_EAGER);
	cr_expect(bulk_has_left());
	bulk_send(BULK_RNDV_MIN - 1, 0);
	bulk_receive(BULK_RNDV_MIN - 1);
	cr_expect(bulk_has_left());
	cr_expect_eq(given()->given, 0);
	bulk_send(BULK_LEN, 0);
	cr_expect_eq(given()->given, 0, "the peer has fetched nothing yet");
	bulk_receive(BULK_LEN);
	cr_expect(bulk_has_left());
	cr_expect_eq(given()->given, 1);
	cr_expect_eq(given()->given_bytes, BULK_LEN);
	fake_engine_cfg.expose_err = -FI_ENOMEM;
	bulk_send(BULK_LEN, 0);
	bulk_receive(BULK_LEN);
	cr_expect(bulk_has_left());
	cr_expect_eq(given()->given, 1, "the second one was pulled");
}

/** An eager message is delivered when it has arrived, a longer one when a receive matches it. */
Test(core_tx_bulk, delivery_complete_waits_for_the_peer)
{
	static const size_t lens[] = { 0, 1, BULK_EAGER, BULK_EAGER + 1, BULK_RNDV_MIN, BULK_LEN };

	for (unsigned i = 0; i < 6; i++) {
		fake_engine_cfg.no_delivery = true;
		bulk_send(lens[i], FI_DELIVERY_COMPLETE);
		cr_expect_not(bulk_has_left(), "%zu bytes, not delivered", lens[i]);
		fake_engine_cfg.no_delivery = false;
		nodes_settle(bulk_nodes, 2);
		cr_expect_eq(bulk_has_left(), lens[i] <= BULK_EAGER, "%zu bytes", lens[i]);
		bulk_receive(lens[i]);
		cr_expect_eq(bulk_has_left(), lens[i] > BULK_EAGER, "%zu bytes", lens[i]);
	}
}

Test(core_tx_bulk, match_complete_waits_for_the_receive)
{
	static const size_t lens[] = { 0, 1, BULK_EAGER, BULK_EAGER + 1, BULK_RNDV_MIN, BULK_LEN };
	static const uint64_t levels[] = { FI_MATCH_COMPLETE,
					   FI_MATCH_COMPLETE | FI_DELIVERY_COMPLETE };

	for (unsigned i = 0; i < 12; i++) {
		size_t len = lens[i / 2];

		bulk_send(len, levels[i % 2]);
		cr_expect_not(bulk_has_left(), "%zu bytes, no receive", len);
		bulk_receive(len);
		cr_expect(bulk_has_left(), "%zu bytes", len);
	}
}

Test(core_tx_bulk, match_complete_ends_at_once_if_a_receive_is_posted)
{
	static const size_t lens[] = { 0, 1, BULK_EAGER, BULK_EAGER + 1, BULK_RNDV_MIN, BULK_LEN };

	for (unsigned i = 0; i < 6; i++) {
		bulk_post(0);
		bulk_send(lens[i], FI_MATCH_COMPLETE);
		cr_expect(bulk_has_left(), "%zu bytes", lens[i]);
		cr_assert_eq(node_poll(&bulk_nodes[1], &bulk_cqe, &bulk_err), 1);
		cr_expect(node_check(bulk_in, lens[i], 1), "%zu bytes", lens[i]);
	}
}

Test(core_tx_bulk, a_buffer_that_cannot_be_exposed_is_pulled)
{
	fake_engine_cfg.expose_err = -FI_ENOMEM;
	bulk_send(BULK_LEN, 0);
	cr_expect_not(bulk_has_left());
	cr_expect_eq(fake_engine_exposed(), 0);
	bulk_receive(BULK_LEN);
	cr_expect(bulk_has_left());
	cr_expect_eq(fake_engine_gets(), 0);
}

static void send_two_buffers(size_t len)
{
	struct iovec iov[2] = { { bulk_out, 100 }, { bulk_out + 100, len - 100 } };
	struct core_send s = { .dest = 1,
			       .iov = iov,
			       .iov_cnt = 2,
			       .len = len,
			       .tagged = true,
			       .flags = FI_COMPLETION,
			       .context = bulk_out };

	node_fill(bulk_out, len, 1);
	cr_assert_eq(core_tx_send(&bulk_nodes[0].ep, &s), 0);
	nodes_settle(bulk_nodes, 2);
}

Test(core_tx_bulk, several_buffers_are_not_exposed)
{
	send_two_buffers(BULK_LEN);
	cr_expect_eq(fake_engine_exposed(), 0);
	bulk_receive(BULK_LEN);
	cr_expect(bulk_has_left());
	cr_expect_eq(fake_engine_gets(), 0);
}

/** Parts that the receiver would request are sent at once, as long as they need little memory. */
Test(core_tx_bulk, several_short_buffers_are_pipelined)
{
	send_two_buffers(BULK_RNDV_MIN);
	cr_expect(bulk_has_left(), "nobody has received it");
	bulk_receive(BULK_RNDV_MIN);
	cr_expect_eq(fake_engine_gets(), 0);
}

/** An engine that copies all bytes anyway gets several buffers as one. */
Test(core_tx_bulk, several_buffers_are_joined_where_the_engine_copies)
{
	fake_engine_cfg.eager_min = BULK_EAGER;
	send_two_buffers(BULK_LEN);
	cr_expect_eq(fake_engine_exposed(), 1);
	bulk_receive(BULK_LEN);
	cr_expect(bulk_has_left());
	cr_expect_eq(fake_engine_gets(), 1);
}

/** Queues the first frame and the CONT frames while there is no room. */
Test(core_tx_bulk, a_message_without_room_continues_where_it_stopped)
{
	fake_engine_cfg.room = 1;
	fake_engine_cfg.expose_err = -FI_ENOMEM;
	bulk_send(BULK_LEN, 0);
	bulk_receive(BULK_LEN);
	cr_expect(bulk_has_left());
	bulk_send(BULK_RNDV_MIN - 1, 0);
	cr_expect(bulk_has_left());
	bulk_receive(BULK_RNDV_MIN - 1);
}

/** Sends a message of tag 1, which no receive of tag 0 matches. */
static void send_other(size_t len)
{
	cr_assert_eq(node_send(&bulk_nodes[0], 1, bulk_out, len, true, 1, 0, NULL), 0);
}

static void receive_others(unsigned cnt, size_t len)
{
	for (unsigned i = 0; i < cnt; i++) {
		bulk_post(1);
		nodes_settle(bulk_nodes, 2);
		cr_assert_eq(node_poll(&bulk_nodes[1], &bulk_cqe, &bulk_err), 1);
		cr_expect_eq(bulk_cqe.e.len, len);
	}
}

/** Lengths of a message whose parts are left to send: a pipelined and a pulled one. */
Test(core_tx_bulk, no_message_starts_while_parts_of_another_are_left)
{
	static const size_t lens[] = { BULK_RNDV_MIN - 1, BULK_LEN };
	struct core_peer *peer = core_peer_get(&bulk_nodes[0].ep, 1);

	fake_engine_cfg.expose_err = -FI_ENOMEM;
	for (unsigned i = 0; i < 2; i++) {
		fake_engine_cfg.room = 1000;
		bulk_send(1, 0);
		bulk_receive(1);
		cr_assert(bulk_has_left());
		cr_expect_neq(peer->eager_end, 0);
		bulk_post(0);
		fake_engine_cfg.room = 1;
		node_fill(bulk_out, lens[i], 1);
		cr_assert_eq(node_send(&bulk_nodes[0], 1, bulk_out, lens[i], true, 0, FI_COMPLETION,
				       bulk_out),
			     0);
		while (!peer->pipelined) {
			core_dom_progress(&bulk_nodes[1].dom);
			core_dom_progress(&bulk_nodes[0].dom);
		}
		cr_expect_eq(peer->eager_end, 0, "%zu bytes", lens[i]);
		send_other(8);
		cr_expect_not(util_list_is_empty(&peer->tx_queue));
		nodes_settle(bulk_nodes, 2);
		cr_expect_eq(peer->pipelined, 0);
		cr_expect_neq(peer->eager_end, 0);
		cr_assert_eq(node_poll(&bulk_nodes[1], &bulk_cqe, &bulk_err), 1);
		cr_expect_eq(bulk_cqe.e.len, lens[i]);
		cr_expect(node_check(bulk_in, lens[i], 1));
		receive_others(1, 8);
		cr_assert(bulk_has_left());
	}
}

/** Messages that wait in the ring for memory are moved out of it before the parts come. */
Test(core_tx_bulk, a_pulled_message_has_room_where_no_memory_is_left)
{
	struct core_dom *dom = &bulk_nodes[1].dom;
	size_t before = dom->limits.unexpected_mem;

	fake_engine_cfg.expose_err = -FI_ENOMEM;
	dom->limits.unexpected_mem = 0;
	bulk_send(BULK_LEN, 0);
	for (unsigned i = 0; i < 4; i++)
		send_other(BULK_EAGER);
	nodes_settle(bulk_nodes, 2);
	cr_assert_eq(fake_engine_retained(), 4);
	bulk_post(0);
	cr_expect_eq(fake_engine_retained(), 0);
	send_other(BULK_EAGER); /* may be in flight while the parts are requested */
	nodes_settle(bulk_nodes, 2);
	cr_assert_eq(node_poll(&bulk_nodes[1], &bulk_cqe, &bulk_err), 1);
	cr_expect_eq(bulk_cqe.e.len, BULK_LEN);
	cr_expect(bulk_has_left());
	send_other(BULK_EAGER);
	nodes_settle(bulk_nodes, 2);
	cr_expect_eq(fake_engine_retained(), 1, "the limit holds again");
	receive_others(6, BULK_EAGER);
	dom->limits.unexpected_mem = before;
}

/** Sends a short message with FI_MATCH_COMPLETE that no receive of tag 0 matches. */
static void send_unmatched(void)
{
	cr_assert_eq(node_send(&bulk_nodes[0], 1, bulk_out, 1, true, 1,
			       FI_COMPLETION | FI_MATCH_COMPLETE, NULL),
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
		bulk_send(BULK_LEN, 0);
		for (unsigned k = 0; k < 6; k++)
			send_unmatched();
		nodes_settle(bulk_nodes, 2);
		bulk_receive(BULK_LEN);
		cr_expect(bulk_has_left(), "with room for %u frames", rooms[i]);
		cr_expect_eq(bulk_cqe.e.op_context, bulk_out);
		for (unsigned k = 0; k < 6; k++)
			cr_assert_eq(
				node_recv(&bulk_nodes[1], 0, bulk_in, 1, true, 1, 0, 0, bulk_in),
				0);
		nodes_settle(bulk_nodes, 2);
		for (unsigned k = 0; k < 6; k++)
			cr_assert(bulk_has_left());
		while (node_poll(&bulk_nodes[1], &bulk_cqe, &bulk_err))
			continue;
	}
}

/** Tag and 64 bits of data leave no room for the id of a match-complete message in one frame. */
Test(core_tx_bulk, a_match_complete_message_of_the_eager_length_fits_its_frames)
{
	fake_engine_cfg.eager_max = BULK_EAGER + 16;
	for (size_t len = BULK_EAGER - 8; len <= BULK_EAGER; len++) {
		struct iovec iov = { bulk_out, len };
		struct core_send s = { .dest = 1,
				       .iov = &iov,
				       .iov_cnt = 1,
				       .len = len,
				       .tagged = true,
				       .data = UINT64_MAX,
				       .flags = FI_COMPLETION | FI_MATCH_COMPLETE |
						FI_REMOTE_CQ_DATA,
				       .context = bulk_out };

		node_fill(bulk_out, len, 1);
		cr_assert_eq(core_tx_send(&bulk_nodes[0].ep, &s), 0);
		nodes_settle(bulk_nodes, 2);
		bulk_receive(len);
		cr_expect(bulk_has_left(), "%zu bytes", len);
	}
}

/** SYNC carries an id beside the bytes, for which such a limit has no room. */
Test(core_tx_bulk, below_a_limit_of_4_bytes_no_message_is_a_sync)
{
	for (size_t max = 0; max < sizeof(struct wire_sync); max++) {
		unsigned gets = fake_engine_gets();

		bulk_nodes[0].dom.limits.eager_max = max;
		bulk_send(BULK_LEN, 0);
		cr_expect_eq(fake_engine_exposed(), 1, "a limit of %zu bytes", max);
		bulk_receive(BULK_LEN);
		cr_expect_eq(fake_engine_gets() - gets, 1, "a limit of %zu bytes", max);
		cr_expect(bulk_has_left());
	}
}

/** Such a limit leaves the first part one byte beside its head. */
Test(core_tx_bulk, at_the_least_limit_a_pipelined_message_arrives_whole)
{
	for (size_t max = sizeof(struct wire_part) + 1; max < sizeof(struct wire_part) + 4; max++) {
		bulk_nodes[0].dom.limits.eager_max = max;
		bulk_send(BULK_RNDV_MIN - 1, 0);
		bulk_receive(BULK_RNDV_MIN - 1);
		cr_expect(bulk_has_left(), "a limit of %zu bytes", max);
		cr_expect_eq(fake_engine_gets(), 0);
	}
}

static const struct core_tx_time *times(void)
{
	return core_peer_lookup(&bulk_nodes[0].ep, 1)->selector.times[0];
}

/** Sends a message for which a receive is posted. Returns whether the peer fetched it. */
static bool send_awaited(size_t len)
{
	unsigned gets = fake_engine_gets();

	bulk_post(0);
	bulk_send(len, 0);
	cr_assert_eq(node_poll(&bulk_nodes[1], &bulk_cqe, &bulk_err), 1);
	cr_expect(node_check(bulk_in, len, 1), "%zu bytes", len);
	cr_expect(bulk_has_left());
	return fake_engine_gets() > gets;
}

/** The first messages go by both protocols. A timed pipelined one ends with a reply. */
Test(core_tx_bulk, single_messages_are_timed)
{
	for (unsigned i = 0; i < 2 * CORE_TX_SELECTOR_FIRST; i++)
		cr_expect_eq(send_awaited(BULK_RNDV_MIN), !(i % 2));
	cr_expect_eq(times()[CORE_TX_GET].cnt, CORE_TX_SELECTOR_FIRST);
	cr_expect_eq(times()[CORE_TX_PARTS].cnt, CORE_TX_SELECTOR_FIRST);
}

Test(core_tx_bulk, a_late_receive_says_nothing_of_a_get)
{
	for (unsigned i = 0; i < 2 * CORE_TX_SELECTOR_FIRST; i++) {
		bulk_send(BULK_RNDV_MIN, 0);
		bulk_receive(BULK_RNDV_MIN);
		cr_expect(bulk_has_left());
	}
	cr_expect_eq(fake_engine_gets(), 2 * CORE_TX_SELECTOR_FIRST);
	cr_expect_eq(times()[CORE_TX_GET].cnt, 0);
}

/** A pipelined message that has to be kept counts as slow. */
Test(core_tx_bulk, a_late_receive_of_a_pipelined_message_counts)
{
	cr_expect(send_awaited(BULK_RNDV_MIN));
	bulk_send(BULK_RNDV_MIN, 0);
	cr_expect(bulk_has_left(), "all bytes are with the peer");
	bulk_receive(BULK_RNDV_MIN);
	cr_expect_eq(times()[CORE_TX_PARTS].cnt, 1);
	cr_expect_eq(times()[CORE_TX_PARTS].kib_ns, 2 * times()[CORE_TX_GET].kib_ns);
}

/** The last part of a timed message is a call, and waits for credit. */
Test(core_tx_bulk, a_timed_message_waits_for_credit)
{
	cr_expect(send_awaited(BULK_RNDV_MIN));
	fake_engine_cfg.credit = 0;
	bulk_send(BULK_RNDV_MIN, 0);
	cr_expect_not(bulk_has_left());
	fake_engine_cfg.credit = 1;
	nodes_settle(bulk_nodes, 2);
	cr_expect(bulk_has_left());
	bulk_receive(BULK_RNDV_MIN);
}

/** Messages of a stream wait for each other, and their times say nothing. */
Test(core_tx_bulk, a_stream_is_not_timed)
{
	unsigned cnt = 2 * CORE_TX_SELECTOR_FIRST;

	cr_assert(send_awaited(BULK_RNDV_MIN)); /* connects: the first of the stream starts alone */
	for (unsigned i = 0; i < cnt; i++)
		bulk_post(0);
	node_fill(bulk_out, BULK_RNDV_MIN, 1);
	for (unsigned i = 0; i < cnt; i++)
		cr_assert_eq(node_send(&bulk_nodes[0], 1, bulk_out, BULK_RNDV_MIN, true, 0,
				       FI_COMPLETION, bulk_out),
			     0);
	nodes_settle(bulk_nodes, 2);
	for (unsigned i = 0; i < cnt; i++) {
		cr_assert_eq(node_poll(&bulk_nodes[1], &bulk_cqe, &bulk_err), 1);
		cr_expect(bulk_has_left());
	}
	cr_expect_eq(times()[CORE_TX_GET].cnt, 1);
	cr_expect_eq(times()[CORE_TX_PARTS].cnt, 0);
}

/** Where processes share a processor, no message that fits is fetched, and none is timed. */
Test(core_tx_bulk, on_a_shared_processor_messages_are_pipelined)
{
	bulk_nodes[0].dom.switches = (struct util_switches){ .events = 1, .shared = true };
	for (unsigned i = 0; i < 2 * CORE_TX_SELECTOR_FIRST; i++)
		cr_expect_not(send_awaited(i % 2 ? BULK_RNDV_MIN : CORE_TX_PIPELINED_MAX));
	cr_expect_eq(times()[CORE_TX_PARTS].cnt, 0);
	cr_expect(send_awaited(CORE_TX_PIPELINED_MAX + 1));
}

Test(core_tx_bulk, an_exposure_ends_when_the_peer_dies)
{
	bulk_send(BULK_LEN, 0);
	cr_assert_eq(fake_engine_exposed(), 1);
	fake_engine_kill(&bulk_nodes[0].ep, &bulk_nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(bulk_nodes, 2);
	cr_expect_eq(fake_engine_exposed(), 0);
	cr_assert_eq(node_poll(&bulk_nodes[0], &bulk_cqe, &bulk_err), -FI_EAVAIL);
	cr_expect_eq(bulk_err.op_context, bulk_out);
	cr_expect_eq(bulk_err.err, FI_ECONNRESET);
}

Test(core_tx_bulk, a_failed_get_is_an_error_at_both_ends)
{
	fake_engine_cfg.get_err = -FI_EIO;
	bulk_send(BULK_LEN, 0);
	bulk_post(0);
	nodes_settle(bulk_nodes, 2);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(node_poll(&bulk_nodes[i], &bulk_cqe, &bulk_err), -FI_EAVAIL);
		cr_expect_eq(bulk_err.err, FI_EIO);
		cr_expect_eq(bulk_err.op_context, i ? bulk_in : bulk_out);
	}
}
