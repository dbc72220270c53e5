/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Valid batches are delivered, and random ones cause no access beside the ring. (ring_rx.h) */
#include "support/rng.h"
#include "rx_see.h"

TestSuite(ring_rx, .init = start, .fini = stop);

Test(ring_rx, a_message_is_delivered_with_its_operation_and_bytes)
{
	put_meta(0, 0, 1);
	put_hdr(32, 0x7FFFFFFF, 0, 20);
	accepted(64);
	cr_expect_eq(msg_cnt, 1);
	cr_expect_eq(seen_op, 0x7FFFFFFF);
	cr_expect_eq(seen_len, 20);
	cr_expect_eq(seen_data, ring + 32 + 12);
	cr_expect_eq(*conn->link->consumer_word, 64);
}

static char noted[8];

static void note_op(void)
{
	noted[msg_cnt - 1] = (char)('0' + seen_op);
}

Test(ring_rx, messages_are_delivered_in_order)
{
	in_upcall = note_op;
	put_meta(0, 0, 3);
	put_hdr(32, 1, 0, 0);
	put_hdr(64, 2, 0, 21);
	put_hdr(128, 3, 0, 53);
	accepted(224);
	cr_expect_eq(msg_cnt, 3);
	cr_expect_str_eq(noted, "123");
}

Test(ring_rx, a_batch_at_the_end_of_the_ring_is_read_to_its_last_byte_only)
{
	conn->rx.producer = conn->rx.parsed = conn->rx.consumer = C - 64;
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 20);
	accepted(64);
	cr_expect_eq(seen_data + seen_len, ring + C, "there is nothing behind it");
}

Test(ring_rx, a_batch_without_messages_carries_consumer_and_credit)
{
	uint64_t credit = conn->tx.credit;

	conn->tx.flow.producer = conn->tx.flush_start = 256;
	put_meta(96, 64, 0);
	accepted(32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 96);
	cr_expect_eq(conn->tx.credit, credit + 64);
	cr_expect_eq(msg_cnt, 0);
}

/* Makes end 0 one that has filled the peer's ring, without a byte left to grant. */
static void fill_peer(void)
{
	conn->tx.flow.producer = conn->tx.flush_start = C - 64;
	conn->tx.flow.granted = 0;
	cr_assert_not(ring_flow_grant_due(&conn->tx.flow));
}

Test(ring_rx, a_grant_is_due_though_a_retained_message_stops_the_consumer)
{
	uint64_t kept;

	verdict = CORE_RX_RETAIN;
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 20);
	accepted(64);
	kept = conn->rx.consumer;
	cr_assert_lt(kept, 64, "the message is retained");
	util_list_remove(&conn->dirty_link);
	fill_peer();
	put_meta(C - 64, 0, 0);
	accepted(32);
	cr_expect_eq(conn->rx.consumer, kept);
	cr_expect_not(util_list_is_empty(&conn->dirty_link), "a batch will carry the grant");
	util_list_remove(&conn->dirty_link);
	verdict = CORE_RX_DONE;
}

Test(ring_rx, a_marker_ends_the_lap_and_carries_consumer_and_credit)
{
	uint64_t credit = conn->tx.credit;

	conn->rx.producer = conn->rx.parsed = conn->rx.consumer = C - 96;
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	put_meta(128, 32, WIRE_COUNT_WRAP);
	accepted(96);
	cr_expect_eq(conn->tx.flow.remote_consumer, 128);
	cr_expect_eq(conn->tx.credit, credit + 32);
	cr_expect_eq(ring_off(conn->rx.producer, C), 0);
	cr_expect_eq(conn->rx.consumer, C);
}

Test(ring_rx, a_stale_consumer_position_is_ignored)
{
	conn->tx.flow.producer = conn->tx.flush_start = 1024;
	conn->tx.flow.remote_consumer = 512;
	put_meta(480, 0, 0);
	accepted(32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 512);
}

Test(ring_rx, positions_wrap_at_32_and_63_and_64_bits)
{
	static const uint64_t pos[] = { (1ull << 32) - 64, (1ull << 63) - 64, -64ull };
	unsigned i;

	for (i = 0; i < 3; i++) {
		stop();
		start_at(pos[i]);
		conn->tx.flow.producer = conn->tx.flush_start = 64;
		put_meta(0, 0, WIRE_COUNT_WRAP);
		accepted(64);
		put_meta(32, 0, 1);
		put_hdr(32, 9, 0, 4);
		accepted(64);
		cr_expect_eq(conn->rx.consumer, pos[i] + 128);
	}
	cr_expect_eq(msg_cnt, 3);
}

/* ---- retained messages ---- */

Test(ring_rx, a_retained_message_keeps_its_bytes_and_those_behind_it)
{
	verdict = CORE_RX_RETAIN;
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 0);
	accepted(64);
	verdict = CORE_RX_DONE;
	put_meta(0, 0, 1);
	put_hdr(32, 2, 0, 0);
	accepted(64);
	cr_expect_eq(conn->rx.consumer, 32, "its metadata may go");
	conn->eng.chan.ops->release(&conn->eng.chan, 0);
	cr_expect_eq(conn->rx.consumer, 128);
	cr_expect_eq(*conn->link->consumer_word, 128);
}

Test(ring_rx, only_released_bytes_are_advertised)
{
	struct wire_meta meta;

	verdict = CORE_RX_RETAIN;
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 0);
	accepted(64);
	make_call();
	memcpy(&meta, conn->tx.base, sizeof(meta));
	cr_expect_eq(meta.consumer_pos, 32);
}

/** Retains the second message of the batch; the third releases it and an earlier one. */
static void hold_and_release(void)
{
	verdict = seen_op == 3 ? CORE_RX_RETAIN : CORE_RX_DONE;
	if (seen_op != 4)
		return;
	conn->eng.chan.ops->release(&conn->eng.chan, 0);
	cr_expect_eq(conn->rx.consumer, 128, "the second message");
	conn->eng.chan.ops->release(&conn->eng.chan, 1);
	cr_expect_eq(conn->rx.consumer, 128, "not back to the start of the batch");
	cr_expect_eq(*conn->link->consumer_word, 128);
}

Test(ring_rx, the_consumer_never_goes_back_in_the_middle_of_a_batch)
{
	verdict = CORE_RX_RETAIN;
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 0);
	accepted(64);
	in_upcall = hold_and_release;
	put_meta(0, 0, 3);
	put_hdr(32, 2, 0, 0);
	put_hdr(64, 3, 0, 0);
	put_hdr(96, 4, 0, 0);
	accepted(128);
	cr_expect_eq(conn->rx.consumer, 192);
}

/* ---- random batches ---- */

/** Writes a batch that is valid except for an occasional random word. Returns its immediate. */
static uint32_t put_noise(struct rng *r)
{
	uint64_t off = ring_off(conn->rx.producer, C);
	uint32_t count = (uint32_t)rng_below(r, 5), at = 32, i, len;
	uint64_t *bad = (uint64_t *)(void *)(ring + off + 8 * rng_below(r, 6));

	for (i = 0; i < C / 8; i++)
		*(uint64_t *)(void *)(ring + 8 * i) = rng_next(r);
	put_meta(conn->tx.flow.remote_consumer, 32 * rng_below(r, 2), count);
	for (i = 0; i < count; i++) {
		len = (uint32_t)rng_below(r, 100);
		if (off + at + wire_msg_span(len) > C)
			break;
		put_hdr(at, (uint32_t)rng_next(r) >> 1, (uint32_t)rng_chance(r, 1, 8), len);
		at += wire_msg_span(len);
	}
	if (i < count) {
		put_meta(0, 0, WIRE_COUNT_WRAP);
		at = (uint32_t)(C - off);
	}
	if (rng_chance(r, 1, 4) && (uint8_t *)bad < ring + C)
		*bad ^= rng_next(r) >> rng_below(r, 64);
	if (rng_chance(r, 1, 32))
		at = (uint32_t)rng_below(r, C + 64);
	return at / WIRE_ALIGN;
}

Test(ring_rx, random_bytes_fail_the_connection_without_access_beside_the_ring)
{
	struct rng r = { .state = rng_env("COPYRPC_TEST_SEED", 1) };
	unsigned i, good = 0;

	for (i = 0; i < 20000; i++) {
		if (conn->eng.err) {
			stop();
			start();
		}
		verdict = rng_chance(&r, 1, 64) ? CORE_RX_RETAIN : CORE_RX_DONE;
		ring_rx_batch(conn->link->ops, conn, put_noise(&r));
		cr_assert(conn->eng.err == 0 || conn->eng.err == -FI_EIO);
		cr_assert(ring_flow_holds(&conn->tx.flow));
		cr_assert(conn->rx.producer - conn->rx.consumer <= C);
		good += !conn->eng.err;
	}
	cr_expect_gt(good, 10000, "only %u of %u batches were good", good, i);
	cr_expect_lt(good, 19000, "%u of %u batches were good", good, i);
}
