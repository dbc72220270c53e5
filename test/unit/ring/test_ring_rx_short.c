/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Batches with a short immediate instead of metadata, where the link moves the bytes. (ring_rx.h)
 */
#include "rx_see.h"

TestSuite(ring_rx_short, .init = start, .fini = stop);

static void accepted_short(uint32_t bytes, uint32_t advance)
{
	uint64_t before = conn->rx.producer;

	ring_rx_batch(conn->link->ops, conn,
		      wire_imm_short(bytes / WIRE_ALIGN, advance / WIRE_ALIGN));
	cr_expect_eq(conn->eng.err, 0);
	cr_expect_eq(conn->rx.parsed, before + bytes);
}

Test(ring_rx_short, a_short_immediate_replaces_the_metadata)
{
	start_late(-64ull);
	put_meta(0, 0, WIRE_COUNT_WRAP);
	accepted(64);
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	memset(ring, 0xFF, WIRE_META_LEN);
	put_hdr(32, 1, 0, 20);
	put_hdr(64, 2, 0, 21);
	accepted_short(128, 96);
	cr_expect_eq(msg_cnt, 2);
	cr_expect_eq(seen_op, 2);
	cr_expect_eq(conn->tx.flow.remote_consumer, 96);
	put_hdr(32, 3, 0, 0);
	accepted_short(64, 32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 128, "the advance is applied");
	put_meta(224, 0, 1);
	put_hdr(32, 4, 0, 0);
	accepted(64);
	put_hdr(32, 5, 0, 0);
	accepted_short(64, 32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 256, "also behind metadata");
	cr_expect_eq(msg_cnt, 5);
}

Test(ring_rx_short, messages_and_bytes_are_counted_as_with_metadata)
{
	const struct copyrpc_stats_peer *stats;

	start_late(0);
	stats = conn->eng.chan.stats;
	put_meta(0, 0, 2);
	put_hdr(32, 1, 0, 20);
	put_hdr(64, 2, 0, 20);
	accepted(96);
	cr_expect_eq(stats->rx_messages, 2);
	cr_expect_eq(stats->rx_bytes, 96);
	put_hdr(32, 1, 0, 20);
	put_hdr(64, 2, 0, 20);
	put_hdr(96, 3, 0, 20);
	accepted_short(128, 0);
	cr_expect_eq(stats->rx_messages, 5);
	cr_expect_eq(stats->rx_bytes, 224);
}

Test(ring_rx_short, a_short_immediate_advances_from_the_advertised_position)
{
	start_late(0);
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	conn->tx.flow.remote_consumer = 192; /* Learned by a READ */
	put_hdr(32, 1, 0, 0);
	accepted_short(64, 96);
	cr_expect_eq(conn->tx.flow.remote_consumer, 192);
	put_hdr(32, 1, 0, 0);
	accepted_short(64, 160);
	cr_expect_eq(conn->tx.flow.remote_consumer, 256);
}

/* Puts an immediate that the device could not send as one. */
static void put_word(uint32_t imm)
{
	uint32_t word = htole32(imm);

	memcpy(ring + ring_off(conn->rx.producer, conn->rx.len) + DEV_LINK_WORD_OFF, &word,
	       sizeof(word));
}

Test(ring_rx_short, an_immediate_may_be_in_the_link_word)
{
	start_late(0);
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	put_meta(64, 0, 1);
	put_word(2);
	put_hdr(32, 1, 0, 0);
	ring_rx_batch(conn->link->ops, conn, 0);
	cr_expect_eq(conn->eng.err, 0);
	cr_expect_eq(conn->rx.parsed, 64);
	cr_expect_eq(conn->tx.flow.remote_consumer, 64);
	put_word(wire_imm_short(2, 3));
	put_hdr(32, 2, 0, 0);
	ring_rx_batch(conn->link->ops, conn, 0);
	cr_expect_eq(conn->eng.err, 0);
	cr_expect_eq(conn->rx.parsed, 128);
	cr_expect_eq(conn->tx.flow.remote_consumer, 160);
	cr_expect_eq(msg_cnt, 2);
}

Test(ring_rx_short, neither_an_immediate_nor_a_link_word_is_refused)
{
	start_late(0);
	put_word(0);
	refused_imm(0);
}

Test(ring_rx_short, a_link_word_across_the_end_is_refused)
{
	start_late(0);
	put_word(0x7fffffff);
	refused_imm(0);
}

Test(ring_rx_short, a_short_immediate_without_a_message_is_refused)
{
	start_late(0);
	refused_imm(wire_imm_short(1, 0));
}

Test(ring_rx_short, a_short_immediate_of_zero_is_refused)
{
	start_late(0);
	refused_imm(wire_imm_short(0, 1));
}

Test(ring_rx_short, a_short_immediate_across_the_end_is_refused)
{
	start_late(C - 64);
	put_hdr(32, 1, 0, 0);
	refused_imm(wire_imm_short(3, 0));
}

Test(ring_rx_short, an_advance_beyond_the_posted_bytes_is_refused)
{
	start_late(0);
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	put_hdr(32, 1, 0, 0);
	refused_imm(wire_imm_short(2, 9));
	cr_expect_eq(conn->tx.flow.remote_consumer, 0);
	cr_expect_eq(msg_cnt, 0);
}

Test(ring_rx_short, a_message_longer_than_its_short_batch_is_refused)
{
	start_late(0);
	put_hdr(32, 1, 0, 21);
	refused_imm(wire_imm_short(2, 0));
	cr_expect_eq(msg_cnt, 0);
}

Test(ring_rx_short, a_link_in_memory_has_no_short_immediates)
{
	put_hdr(32, 1, 0, 0);
	refused_imm(wire_imm_short(2, 0));
	cr_expect_eq(msg_cnt, 0);
}
