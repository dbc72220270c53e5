/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does one end append, close, wrap and post as it should? (ring_tx.h)
 *
 * Single steps, each seen in the bytes of the ring or at the other end; what both ends do together
 * over a long time is in test_ring_flow.c; what happens without room in test_ring_tx_room.c.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_rx.h"
#include "ring/ring_tx.h"
#include "tx_see.h"

/* ---- bytes ---- */

Test(ring_tx, a_lone_message_is_metadata_header_and_bytes)
{
	static const uint8_t want[32 + 12 + 24] = {
		[0] = 0,                                          /* consumer_pos, credit_grant */
		[16] = 1,                                         /* message_count */
		[32] = 0x15, [33] = 0x02,                         /* op */
		[40] = 24,                                        /* len */
		[44] = 'e',  [45] = 'x',  [46] = 't', [51] = '!', /* extension */
		[52] = 'p',  [53] = 'a',  [54] = 'y', [67] = '.',
	};
	static const char payload[16] = "pay\0\0\0\0\0\0\0\0\0\0\0\0.";
	struct iovec iov = { .iov_base = (void *)(uintptr_t)payload, .iov_len = 16 };
	struct core_frame frame = ring_frame(0x215, &iov);

	start(false, 1024);
	memset(a->conn.tx.base, 0xEE, 1024);
	frame.ext_len = 8;
	memcpy(frame.ext, "ext\0\0\0\0!", 8);
	cr_assert_eq(a->conn.eng.chan.ops->send(&a->conn.eng.chan, &frame, 0), 0);
	cr_expect_arr_eq(a->conn.tx.base, want, sizeof(want));
	ring_pair_fini(&pair);
}

Test(ring_tx, nothing_behind_a_message_is_touched)
{
	uint32_t len;

	for (len = 0; len <= 84; len++) {
		start(false, 1024);
		memset(a->conn.tx.base, 0xEE, 1024);
		cr_assert_eq(send_len(a, len, 0), 0);
		cr_assert_eq(a->conn.tx.flow.producer, 32 + wire_msg_span(len));
		cr_assert_eq(a->conn.tx.base[32 + wire_msg_span(len)], 0xEE);
		ring_pair_fini(&pair);
	}
}

Test(ring_tx, a_call_carries_its_operation_and_its_allowance_in_blocks)
{
	struct wire_hdr hdr;
	int context;

	start(true, 1024);
	cr_assert_eq(call_len(a, 3, 20, &context), 0);
	memcpy(&hdr, a->conn.tx.base + 32, sizeof(hdr));
	cr_expect_eq(hdr.call_id & WIRE_ID_RESPONSE, 0);
	cr_expect_eq(hdr.piggyback, 1);
	cr_expect_eq(hdr.len, 7);
	ring_end_progress(b);
	cr_expect_eq(call_cnt, 1);
	cr_expect_eq(seen_len, 7);
	cr_expect_arr_eq(seen, "\x44\x33\x22\x11", 4);
	cr_expect_eq(seen_ref.allowance, 20);
	ring_pair_fini(&pair);
}

Test(ring_tx, a_call_keeps_its_extension_in_front_of_its_bytes)
{
	static const char payload[4] = "tail";
	struct iovec iov[2] = { { (void *)(uintptr_t)payload, 1 },
				{ (void *)(uintptr_t)(payload + 1), 3 } };
	struct core_frame frame = { .op = 1, .iov = iov, .iov_cnt = 2, .iov_off = 1, .len = 3 };
	int context;

	start(true, 1024);
	frame.ext_len = CORE_FRAME_EXT_MAX - 4;
	memset(frame.ext, 'x', frame.ext_len);
	cr_assert_eq(a->conn.eng.chan.ops->call(&a->conn.eng.chan, &frame, 0, &context), 0);
	ring_end_progress(b);
	cr_expect_eq(seen_len, CORE_FRAME_EXT_MAX + 3);
	cr_expect_arr_eq(seen, "\1\0\0\0x", 5);
	cr_expect_arr_eq(seen + CORE_FRAME_EXT_MAX - 1, "xail", 4);
	ring_pair_fini(&pair);
}

Test(ring_tx, nothing_is_a_message_too)
{
	struct core_frame frame = { .op = 3 };

	start(true, 1024);
	cr_assert_eq(a->conn.eng.chan.ops->send(&a->conn.eng.chan, &frame, 0), 0);
	cr_assert_eq(send_len(a, 0, 0), 0);
	cr_assert_eq(call_len(a, 0, 0, &frame), 0);
	ring_end_progress(b);
	cr_expect_eq(msg_cnt, 2);
	cr_expect_eq(reply_len(b, NULL, 0), 0);
	ring_end_progress(a);
	cr_expect_eq(seen_len, 0);
	cr_expect_eq(seen_context, &frame);
	ring_pair_fini(&pair);
}

Test(ring_tx, the_link_word_is_the_link_s)
{
	start(true, 1024);
	*(uint64_t *)(void *)(a->conn.tx.base + 24) = 0x1234;
	cr_assert_eq(send_len(a, 1, CORE_SEND_MORE), 0);
	ring_tx_meta(&a->conn, 0, 1);
	cr_expect_eq(meta_at(a, 0).link_word, 0x1234, "in-band: never written");
	ring_pair_fini(&pair);
	start(false, 1024);
	memset(a->conn.tx.base, 0xEE, 32);
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect_eq(meta_at(a, 0).link_word, 0, "elsewhere: zero");
	ring_pair_fini(&pair);
}

/* ---- what leaves over a device that moves the bytes ---- */

static void start_late(uint64_t len)
{
	const struct ring_pair_cfg cfg = { .late = true, .rx_len = { len, len }, .seed = 7 };

	ring_pair_flush = (struct ring_flush_cfg){ .best_len = 4096 };
	ring_pair_init(&pair, &cfg, &see_upcalls);
	a = &pair.end[0];
	b = &pair.end[1];
	a->dev.sq_len = b->dev.sq_len = 1000;
}

/** The n-th write on its way. */
static struct fake_write on_wire(const struct ring_end *end, uint32_t n)
{
	struct fake_write w;

	fake_link_peek(end->link, n, &w);
	return w;
}

Test(ring_tx, of_a_lone_message_nothing_travels_but_its_bytes)
{
	struct fake_write w;

	start_late(4096);
	cr_assert_eq(send_len(a, 16, 0), 0);
	w = on_wire(a, 0);
	cr_expect_eq(w.off, 32);
	cr_expect_eq(w.len, 12 + 16);
	cr_expect_eq(w.imm, wire_imm_short(2, 0));
	a->dev.eager = b->dev.eager = true;
	ring_end_progress(b);
	cr_expect_eq(msg_cnt, 1);
	cr_expect_eq(seen_len, 16);
	ring_pair_fini(&pair);
}

Test(ring_tx, between_messages_the_padding_travels)
{
	struct fake_write w;

	start_late(4096);
	cr_assert_eq(send_len(a, 1, CORE_SEND_MORE), 0);
	cr_assert_eq(send_len(a, 1, 0), 0);
	w = on_wire(a, 0);
	cr_expect_eq(w.len, 64);
	cr_expect_eq(w.imm, wire_imm_short(3, 0));
	ring_pair_fini(&pair);
}

Test(ring_tx, what_was_released_is_told_once_in_the_immediate)
{
	start_late(4096);
	a->dev.eager = b->dev.eager = true;
	cr_assert_eq(send_len(b, 21, 0), 0);
	ring_end_progress(a);
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect_eq(on_wire(a, 0).imm, wire_imm_short(2, 3));
	ring_end_progress(b);
	cr_expect_eq(b->conn.tx.flow.remote_consumer, 96);
	cr_assert_eq(send_len(a, 1, 0), 0);
	flush(a);
	cr_expect_eq(on_wire(a, 0).imm, wire_imm_short(2, 0));
	ring_pair_fini(&pair);
}

Test(ring_tx, what_an_immediate_cannot_say_stands_in_metadata)
{
	struct fake_write w;

	start_late(4096);
	a->conn.tx.flow.granted -= 64;
	cr_assert_eq(send_len(a, 1, 0), 0);
	w = on_wire(a, 0);
	cr_expect_eq(w.off, 0, "a grant");
	cr_expect_eq(w.len, 32 + 12 + 1);
	cr_expect_eq(w.imm, 2);
	cr_expect_eq(meta_at(a, 0).credit_grant, 64);
	a->conn.rx.consumer = a->conn.rx.told + WIRE_ALIGN * (WIRE_IMM_NEWS_MAX + 1ull);
	cr_assert_eq(send_len(a, 1, CORE_SEND_NOW), 0);
	cr_expect_eq(on_wire(a, 1).imm, 2, "much news");
	cr_expect_eq(meta_at(a, 64).consumer_pos, a->conn.rx.consumer);
	cr_assert(ring_tx_credit_only(&fake_link_late_ops, &a->conn));
	cr_expect_eq(on_wire(a, 2).imm, 1, "no message");
	ring_pair_fini(&pair);
}

Test(ring_tx, what_waits_for_the_device_is_counted_by_its_distance)
{
	start_late(4096);
	a->dev.sq_len = 0;
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_assert_eq(a->conn.tx.post_cnt, 1);
	cr_expect_eq(ring_tx_waiting(&a->conn.tx), 64);
	a->dev.sq_len = 8;
	ring_end_progress(a);
	cr_expect_eq(ring_tx_waiting(&a->conn.tx), 0);
	ring_pair_fini(&pair);
}

/** Sends messages of `len` bytes, the first of which leaves alone: bytes of the second write. */
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

Test(ring_tx, a_batch_ends_where_a_packet_does)
{
	cr_expect_eq(second_write(52, 4096), 64 * 64, "and not before");
	cr_expect_eq(second_write(276, 4096), 14 * 288);
	cr_expect_eq(second_write(1044, 4096), 3 * 1056);
	cr_expect_eq(second_write(276, 0), 15 * 288, "where there are packets");
	cr_expect_eq(second_write(2052, 4096), 2 * 2080, "large ones begin one anyway");
}

/* ---- when a batch leaves ---- */

Test(ring_tx, more_to_come_holds_the_batch_until_progress)
{
	start(true, 4096);
	cr_assert_eq(send_len(a, 1, CORE_SEND_MORE), 0);
	cr_assert_eq(send_len(a, 2, CORE_SEND_MORE), 0);
	cr_expect_eq(a->dev.write_cnt, 0);
	cr_expect(a->conn.eng.chan.ops->is_busy(&a->conn.eng.chan));
	ring_end_progress(a);
	cr_expect_eq(a->dev.write_cnt, 1);
	cr_expect_not(a->conn.eng.chan.ops->is_busy(&a->conn.eng.chan));
	ring_end_progress(b);
	cr_expect_eq(msg_cnt, 2);
	cr_expect_eq(meta_at(a, 0).message_count, 2);
	ring_pair_fini(&pair);
}

Test(ring_tx, the_first_without_more_takes_the_others_along)
{
	start(true, 4096);
	cr_assert_eq(send_len(a, 1, CORE_SEND_MORE), 0);
	cr_assert_eq(send_len(a, 2, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 1);
	cr_expect_eq(meta_at(a, 0).message_count, 2);
	ring_pair_fini(&pair);
}

Test(ring_tx, behind_a_batch_in_flight_messages_gather)
{
	start(false, 4096);
	ring_pair_flush.cheap = false;
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 1, "a lone message leaves at once");
	cr_assert_eq(send_len(a, 2, 0), 0);
	cr_assert_eq(send_len(a, 3, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 1);
	ring_end_progress(a);
	cr_expect_eq(a->dev.write_cnt, 2);
	cr_expect_eq(meta_at(a, 64).message_count, 2);
	ring_pair_fini(&pair);
}

Test(ring_tx, nothing_joins_the_batch_of_a_connection_that_failed)
{
	struct core_chan *chan;
	uint64_t bytes = 7;

	start(false, 4096);
	ring_pair_flush.cheap = false;
	chan = &a->conn.eng.chan;
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_assert_eq(send_len(a, 2, 0), 0, "this one is held");
	cr_assert_eq(chan->ops->send_buf(chan, core_label(1, 0), 0, 0, &bytes, sizeof(bytes)), 0);
	cr_assert_eq(a->conn.tx.msg_cnt, 2, "and this one joins it");
	ring_conn_fail_cold(&a->conn, -FI_EIO, "the test says so");
	cr_expect_eq(chan->ops->send_buf(chan, core_label(1, 0), 0, 0, &bytes, sizeof(bytes)),
		     -FI_EIO);
	cr_expect_eq(a->conn.tx.msg_cnt, 2);
	ring_pair_fini(&pair);
}

Test(ring_tx, what_must_leave_now_leaves_with_all_before_it)
{
	start(false, 4096);
	ring_pair_flush.cheap = false;
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_assert_eq(send_len(a, 2, 0), 0);
	cr_assert_eq(send_len(a, 3, CORE_SEND_NOW), 0);
	cr_expect_eq(a->dev.write_cnt, 2);
	cr_expect_eq(meta_at(a, 64).message_count, 2);
	cr_expect(util_list_is_empty(&ring_end_lane(a)->dirty) || !a->conn.tx.open);
	ring_pair_fini(&pair);
}

Test(ring_tx, a_batch_of_the_best_size_leaves)
{
	start(true, 4096);
	ring_pair_flush.best_len = 96;
	cr_assert_eq(send_len(a, 1, CORE_SEND_MORE), 0);
	cr_expect_eq(a->dev.write_cnt, 0);
	cr_assert_eq(send_len(a, 1, CORE_SEND_MORE), 0);
	cr_expect_eq(a->dev.write_cnt, 1);
	ring_pair_fini(&pair);
}

/* Messages of 32 bytes: the batch that the last one fills leaves, and the peer releases all of it. */
static void fill_and_release(unsigned cnt)
{
	start(true, 4096);
	ring_pair_flush = (struct ring_flush_cfg){ .best_len = 96, .looks = true };
	cr_assert_eq(send_len(a, 1, 0), 0);
	while (cnt--)
		cr_assert_eq(send_len(a, 1, 0), 0);
	ring_end_progress(b);
}

Test(ring_tx, behind_a_full_batch_nobody_looks_until_there_is_progress)
{
	fill_and_release(2);
	cr_assert_eq(a->dev.write_cnt, 2, "one alone, two that filled a batch");
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 2, "it is held");
	ring_end_progress(a);
	cr_expect_eq(a->dev.write_cnt, 3);
	ring_pair_fini(&pair);

	fill_and_release(2);
	ring_end_progress(a);
	cr_expect(util_list_is_empty(&ring_end_lane(a)->dirty));
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 3, "time has passed: a lone message leaves at once");
	ring_pair_fini(&pair);
}

Test(ring_tx, behind_a_batch_of_one_somebody_looks)
{
	fill_and_release(0);
	cr_assert_eq(send_len(a, 84, 0), 0);
	cr_assert_eq(a->dev.write_cnt, 2, "long enough alone");
	ring_end_progress(b);
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 3);
	ring_pair_fini(&pair);
}

Test(ring_tx, only_what_is_dirty_is_visited)
{
	start(true, 4096);
	cr_expect(util_list_is_empty(&ring_end_lane(a)->dirty));
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect(util_list_is_empty(&ring_end_lane(a)->dirty), "it left");
	cr_assert_eq(send_len(a, 1, CORE_SEND_MORE), 0);
	cr_expect_not(util_list_is_empty(&ring_end_lane(a)->dirty));
	ring_end_progress(a);
	cr_expect(util_list_is_empty(&ring_end_lane(a)->dirty));
	ring_pair_fini(&pair);
}

/* ---- the device has no room ---- */

Test(ring_tx, what_the_device_refuses_leaves_later_and_in_order)
{
	start(false, 4096);
	a->dev.sq_len = 0;
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect_eq(a->conn.tx.post_cnt, 1);
	cr_assert_eq(send_len(a, 2, 0), 0);
	cr_assert_eq(send_len(a, 3, 0), 0);
	cr_expect_eq(a->conn.tx.post_cnt, 1, "they gather behind it");
	cr_expect(a->conn.eng.chan.ops->is_busy(&a->conn.eng.chan));
	ring_end_progress(a);
	cr_expect_eq(a->dev.write_cnt, 0);
	cr_expect_not(util_list_is_empty(&ring_end_lane(a)->dirty));
	a->dev.sq_len = 8;
	ring_end_progress(a);
	cr_expect_eq(a->dev.write_cnt, 2);
	ring_end_progress(b);
	cr_expect_eq(msg_cnt, 3);
	cr_expect_eq(seen_len, 3);
	ring_pair_fini(&pair);
}

Test(ring_tx, however_long_the_device_refuses_what_waits_is_few)
{
	unsigned i;

	start(false, 1024);
	for (i = 0; i < 40; i++) {
		a->dev.sq_len = 0;
		while (!send_len(a, 20 + i % 7, 0))
			cr_assert_leq(a->conn.tx.post_cnt, 3);
		a->dev.sq_len = 100;
		ring_end_progress(a);
		ring_end_progress(b);
		ring_end_progress(a);
	}
	cr_expect_gt(msg_cnt, 200);
	ring_pair_fini(&pair);
}

/* ---- the end of the ring ---- */

Test(ring_tx, a_message_that_would_end_at_the_end_goes_to_the_next_lap)
{
	start(true, 1024);
	a->conn.tx.flow.producer = a->conn.tx.flow.remote_consumer = a->conn.tx.flush_start = 960;
	fake_link_start(a->link, 960, 0);
	fake_link_start(b->link, 0, 960);
	b->conn.rx.producer = b->conn.rx.parsed = b->conn.rx.consumer = b->conn.rx.told = 960;
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

Test(ring_tx, at_the_start_of_a_lap_there_is_no_marker)
{
	start(true, 1024);
	move_to(4096);
	cr_assert_eq(send_len(a, 20, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 1);
	cr_expect_eq(a->conn.tx.flow.producer, 4096 + 64);
	ring_pair_fini(&pair);
}

Test(ring_tx, a_wrap_posts_the_open_batch_then_the_marker_then_the_rest)
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

Test(ring_tx, a_marker_carries_consumer_and_credit)
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

Test(ring_tx, room_for_the_skip_is_checked_before_anything_is_posted)
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
