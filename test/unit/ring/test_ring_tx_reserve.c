/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Position of a message at the end of a packet and of a lap, and reads of the consumer word. */
#include "ring/ring_tx.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_rx.h"
#include "tx_see.h"

/**
 * Sends messages of `len` bytes, the first of which leaves by itself. Returns the length of the
 * second write.
 */
static uint32_t second_write(size_t len, uint32_t packet_len)
{
	uint32_t sent;

	start_late(16384);
	ring_pair_flush = (struct ring_flush_cfg){ .best_len = 4096, .packet_len = packet_len };
	for (unsigned i = 0; i < 100 && fake_link_in_transit(a->link) < 2; i++)
		cr_assert_eq(send_len(a, len, 0), 0);
	sent = on_wire(a, 1).len;
	ring_pair_fini(&pair);
	return sent;
}

Test(ring_tx_reserve, a_batch_ends_where_a_packet_does)
{
	cr_expect_eq(second_write(52, 4096), 64 * 64, "and not before");
	cr_expect_eq(second_write(276, 4096), 14 * 288);
	cr_expect_eq(second_write(1044, 4096), 3 * 1056);
	cr_expect_eq(second_write(276, 0), 15 * 288, "where there are packets");
	cr_expect_eq(second_write(2052, 4096), 2 * 2080, "large messages start a packet anyway");
}

/* ---- the end of the ring ---- */

Test(ring_tx_reserve, a_message_that_would_end_at_the_end_goes_to_the_next_lap)
{
	start(true, 1024);
	a->conn.tx.flow.producer = a->conn.tx.flow.remote_consumer = a->conn.tx.flush_start = 960;
	fake_link_start(a->link, 960, 0);
	fake_link_start(b->link, 0, 960);
	b->conn.rx.producer = b->conn.rx.parsed = b->conn.rx.consumer = b->conn.rx.advertised = 960;
	cr_assert_eq(send_len(a, 20, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 2, "a marker and a batch");
	cr_expect_eq(meta_at(a, 960).message_count, WIRE_COUNT_WRAP);
	cr_expect_eq(meta_at(a, 1024).message_count, 1);
	cr_expect_eq(a->conn.tx.flow.producer, 1024 + 64);
	ring_end_progress(b);
	cr_expect_eq(msg_cnt, 1);
	cr_expect_eq(b->conn.rx.consumer, 1024 + 64);
	ring_pair_fini(&pair);
}

Test(ring_tx_reserve, at_the_start_of_a_lap_there_is_no_marker)
{
	start(true, 1024);
	move_to(4096);
	cr_assert_eq(send_len(a, 20, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 1);
	cr_expect_eq(a->conn.tx.flow.producer, 4096 + 64);
	ring_pair_fini(&pair);
}

Test(ring_tx_reserve, a_wrap_posts_the_open_batch_then_the_marker_then_the_rest)
{
	start(true, 1024);
	move_to(832);
	cr_assert_eq(send_len(a, 20, CORE_SEND_MORE), 0);
	cr_assert_eq(send_len(a, 90, CORE_SEND_MORE), 0);
	cr_expect_eq(a->dev.write_cnt, 2);
	flush(a);
	cr_expect_eq(a->dev.write_cnt, 3);
	cr_expect_eq(meta_at(a, 832).message_count, 1);
	cr_expect_eq(meta_at(a, 896).message_count, WIRE_COUNT_WRAP);
	cr_expect_eq(meta_at(a, 1024).message_count, 1);
	ring_end_progress(b);
	cr_expect_eq(msg_cnt, 2);
	cr_expect_eq(seen_len, 90);
	ring_pair_fini(&pair);
}

Test(ring_tx_reserve, a_marker_carries_consumer_and_credit)
{
	start(true, 1024);
	move_to(960);
	a->conn.rx.consumer = 96;
	a->conn.tx.flow.granted = 32;
	cr_assert_eq(send_len(a, 20, 0), 0);
	cr_expect_eq(meta_at(a, 960).consumer_pos, 96);
	cr_expect_eq(meta_at(a, 960).credit_grant, 96);
	cr_expect_eq(meta_at(a, 1024).credit_grant, 0);
	ring_pair_fini(&pair);
}

Test(ring_tx_reserve, space_for_the_skip_is_checked_before_anything_is_posted)
{
	uint64_t before;

	start(true, 1024);
	move_to(1024 - 160);
	a->conn.tx.flow.remote_consumer -= 352; /* 320 are free: 128 + 160 fit, 192 + 160 do not */
	a->dev.no_read = true;
	before = a->conn.tx.flow.producer;
	cr_expect_eq(send_len(a, 148, 0), -FI_EAGAIN);
	cr_expect_eq(a->conn.tx.flow.producer, before);
	cr_expect_eq(a->dev.write_cnt, 0);
	ring_pair_fini(&pair);
}

/* ---- room ---- */

Test(ring_tx_reserve, out_of_space_the_consumer_word_is_read)
{
	start(true, 1024);
	while (!send_len(a, 20, 0))
		;
	ring_end_progress(b);
	cr_expect_eq(send_len(a, 20, 0), 0, "nothing was advertised, but the word can be read");
	ring_pair_fini(&pair);
}

Test(ring_tx_reserve, one_read_at_a_time_and_its_value_frees_space)
{
	start(false, 1024);
	while (!send_len(a, 20, 0))
		;
	ring_end_progress(b);
	cr_expect_eq(a->conn.read, RING_READ_POSTED);
	cr_expect_eq(send_len(a, 20, 0), -FI_EAGAIN, "no second read: the device would say so");
	ring_end_progress(a);
	cr_expect_neq(a->conn.read, RING_READ_POSTED);
	cr_expect_eq(send_len(a, 20, 0), 0);
	ring_pair_fini(&pair);
}

Test(ring_tx_reserve, reads_without_an_advance_back_off)
{
	unsigned i;

	start(false, 1024);
	while (!send_len(a, 20, 0))
		;
	ring_end_progress(a);
	for (i = 1; i < 14; i++) {
		cr_assert_eq(a->conn.read, RING_READ_PAUSE);
		cr_expect_eq(a->conn.read_unchanged, i < 10 ? i : 10);
		a->conn.read_next_ns = UINT64_MAX;
		cr_expect_eq(send_len(a, 20, 0), -FI_EAGAIN);
		cr_assert_eq(a->conn.read, RING_READ_PAUSE, "not before its time");
		a->conn.read_next_ns = 0;
		cr_expect_eq(send_len(a, 20, 0), -FI_EAGAIN);
		cr_assert_eq(a->conn.read, RING_READ_POSTED);
		ring_end_progress(a);
	}
	ring_end_progress(b);
	a->conn.read_next_ns = 0;
	cr_expect_eq(send_len(a, 20, 0), -FI_EAGAIN);
	ring_end_progress(a);
	cr_expect_eq(a->conn.read, RING_READ_IDLE);
	cr_expect_eq(a->conn.read_unchanged, 0, "after an advance the next read may start at once");
	cr_expect_eq(send_len(a, 20, 0), 0);
	ring_pair_fini(&pair);
}
