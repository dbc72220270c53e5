/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Invalid batches are refused. (ring_rx.h) */
#include "rx_see.h"

TestSuite(ring_rx_bad, .init = start, .fini = stop);

/* ---- immediates ---- */

Test(ring_rx_bad, an_immediate_of_zero_is_refused)
{
	put_meta(0, 0, 0);
	refused_imm(0);
}

Test(ring_rx_bad, an_immediate_across_the_end_is_refused)
{
	conn->rx.producer = conn->rx.parsed = conn->rx.consumer = C - 64;
	put_meta(0, 0, 0);
	refused(96);
}

Test(ring_rx_bad, the_largest_immediate_is_refused)
{
	put_meta(0, 0, 0);
	refused_imm(UINT32_MAX);
}

Test(ring_rx_bad, an_overrun_of_retained_bytes_is_refused)
{
	verdict = CORE_RX_RETAIN;
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 20);
	accepted(64);
	put_meta(0, 0, WIRE_COUNT_WRAP);
	accepted(C - 64);
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 0);
	refused(64);
	cr_expect_eq(msg_cnt, 1);
}

/* ---- metadata ---- */

Test(ring_rx_bad, reserved_bits_are_refused)
{
	struct wire_meta meta = { .reserved = 1u << 31 };

	memcpy(ring, &meta, sizeof(meta));
	refused(32);
}

Test(ring_rx_bad, a_consumer_position_beyond_what_was_posted_is_refused)
{
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	put_meta(288, 0, 0);
	refused(32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 0);
}

Test(ring_rx_bad, a_consumer_position_in_the_open_batch_is_refused)
{
	conn->tx.flow.producer = 320;
	conn->tx.flush_start = 256;
	conn->tx.open = true;
	put_meta(288, 0, 0);
	refused(32);
}

/** If a peer could release bytes that never left, batch after batch would pile up in tx.posts. */
Test(ring_rx_bad, a_consumer_position_in_a_queued_post_is_refused)
{
	const struct ring_pair_cfg cfg = { .rx_len = { C, C }, .seed = 1 };
	struct core_frame frame = { .op = 1 };

	stop();
	ring_pair_init(&pair, &cfg, &see_upcalls);
	conn = &pair.end[0].conn;
	ring = pair.end[0].link->rx_base;
	pair.end[0].dev.sq_len = 1;
	conn->eng.chan.ops->send(&conn->eng.chan, &frame, 0);
	conn->eng.chan.ops->send(&conn->eng.chan, &frame, 0);
	cr_assert_eq(conn->tx.post_cnt, 1);
	cr_assert_eq(conn->tx.flush_start, 128);
	put_meta(64, 0, 0);
	accepted(32);
	put_meta(96, 0, 0);
	refused(32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 64);
}

Test(ring_rx_bad, a_consumer_position_between_blocks_is_refused)
{
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	put_meta(100, 0, 0);
	refused(32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 0);
}

Test(ring_rx_bad, credit_of_partial_blocks_is_refused)
{
	put_meta(0, 33, 0);
	refused(32);
}

Test(ring_rx_bad, credit_beyond_a_quarter_of_the_ring_is_refused)
{
	uint64_t left = C / 4 - conn->tx.credit;

	put_meta(0, left, 0);
	accepted(32);
	put_meta(0, 32, 0);
	refused(32);
}

Test(ring_rx_bad, credit_that_would_overflow_is_refused)
{
	uint64_t credit = conn->tx.credit;

	put_meta(0, -32ull, 0);
	refused(32);
	cr_expect_eq(conn->tx.credit, credit);
}

Test(ring_rx_bad, a_marker_that_does_not_end_the_lap_is_refused)
{
	put_meta(0, 0, WIRE_COUNT_WRAP);
	refused(C - 32);
}

/* ---- counts and lengths ---- */

Test(ring_rx_bad, more_messages_than_bytes_are_refused)
{
	put_meta(0, 0, 2);
	put_hdr(32, 1, 0, 20);
	refused(64);
	cr_expect_eq(msg_cnt, 1, "the first was good");
}

Test(ring_rx_bad, a_message_in_metadata_alone_is_refused)
{
	put_meta(0, 0, 1);
	refused(32);
}

Test(ring_rx_bad, the_largest_count_is_refused)
{
	put_meta(0, 0, WIRE_COUNT_WRAP - 1);
	refused(C);
}

Test(ring_rx_bad, bytes_behind_the_last_message_are_refused)
{
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 0);
	refused(96);
}

Test(ring_rx_bad, bytes_without_messages_are_refused)
{
	put_meta(0, 0, 0);
	refused(64);
}

Test(ring_rx_bad, a_message_one_byte_longer_than_its_batch_is_refused)
{
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 53);
	refused(96);
	cr_expect_eq(msg_cnt, 0);
}

Test(ring_rx_bad, a_message_longer_than_the_ring_is_refused)
{
	static const uint32_t lens[] = {
		UINT32_MAX, UINT32_MAX - 11, UINT32_MAX - 12, UINT32_MAX - 43, C, C - 12
	};
	unsigned i;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		put_meta(0, 0, 1);
		put_hdr(32, 1, 0, lens[i]);
		refused(96);
		stop();
		start();
	}
	cr_expect_eq(msg_cnt, 0);
}

Test(ring_rx_bad, a_message_that_core_rejects_is_refused)
{
	verdict = CORE_RX_BAD;
	put_meta(0, 0, 2);
	put_hdr(32, 1, 0, 0);
	put_hdr(64, 1, 0, 0);
	refused(96);
	cr_expect_eq(msg_cnt, 1);
}

Test(ring_rx_bad, a_failed_connection_receives_nothing)
{
	refused_imm(0);
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 0);
	ring_rx_batch(conn->link->ops, conn, 2);
	cr_expect_eq(msg_cnt, 0);
	cr_expect_eq(conn->rx.producer, 0);
}
