/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A single message leaves on the fast path with the same result as in the general case, and only
 * when it may. (ring_send.h)
 *
 * `single_room` falls by the bytes that such a message takes, and by nothing else: the tests
 * observe that. test_ring_flow.c covers long runs of both ends.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_call.h"
#include "support/rng.h"
#include "tx_see.h"

#define TAGGED (WIRE_OP_MSG | WIRE_F_TAG)
#define TAKEN  64u /* Bytes of the ring that the message of send_8 takes, its metadata included */

static int send_8(unsigned flags)
{
	struct core_chan *chan = &a->conn.eng.chan;
	static const uint64_t bytes = 0x0807060504030201;

	return chan->ops->send_buf(chan, core_packed(TAGGED, flags), 0x77, 0, &bytes,
				   sizeof(bytes));
}

/**
 * Sets up rings of `len` bytes with reads of the consumer word; two messages were sent one by one
 * and received.
 */
static void start_looking(uint64_t len)
{
	start(true, len);
	ring_pair_flush =
		(struct ring_flush_cfg){ .best_len = 544, .reads_consumer = true, .head_bits = 32 };
	cr_assert_eq(send_8(0), 0);
	ring_end_progress(b);
	cr_assert_eq(a->conn.tx.fast.single_room, 0, "one is not many");
	cr_assert_eq(send_8(0), 0);
	cr_assert_gt(a->conn.tx.fast.single_room, 0, "two are");
	ring_end_progress(b);
}

Test(ring_single, the_fast_path_writes_the_bytes_and_state_of_the_general_case)
{
	static uint8_t bytes[UTIL_COPY_SHORT];
	struct ring_pair_cfg cfg = { .direct = true, .rx_len = { 1024, 1024 }, .seed = 7 };
	struct ring_pair other;
	struct rng rng = { .state = 3 };
	uint64_t fast_cnt = 0;
	int i;

	start_looking(1024);
	ring_pair_init(&other, &cfg, &see_upcalls);
	other.end[0].dev.eager = other.end[1].dev.eager = true;
	other.end[0].dev.sq_len = other.end[1].dev.sq_len = 1000;
	for (i = 0; i < 2; i++) { /* Messages sent by start_looking */
		struct iovec iov = { bytes, 8 };
		struct core_frame frame = ring_frame(TAGGED, &iov);

		frame.ext_len = 8;
		cr_assert_eq(other.end[0].conn.eng.chan.ops->send(&other.end[0].conn.eng.chan,
								  &frame, 0),
			     0);
		ring_end_progress(&other.end[1]);
	}
	for (i = 0; i < 1000; i++) {
		uint64_t ext[2] = { rng_next(&rng), (uint32_t)rng_next(&rng) };
		size_t len = rng_below(&rng, sizeof(bytes) + 1);
		struct iovec iov = { bytes, len };
		struct core_frame frame = ring_frame(TAGGED | WIRE_F_DATA32, &iov);
		uint64_t room = a->conn.tx.fast.single_room;
		const struct ring_tx *x = &a->conn.tx, *y = &other.end[0].conn.tx;

		frame.ext_len = 12;
		memcpy(frame.ext, ext, 12);
		memset(bytes, i, sizeof(bytes));
		cr_assert_eq(a->conn.eng.chan.ops->send_buf(&a->conn.eng.chan,
							    core_packed(TAGGED | WIRE_F_DATA32, 0),
							    ext[0], ext[1], bytes, len),
			     0);
		cr_assert_eq(other.end[0].conn.eng.chan.ops->send(&other.end[0].conn.eng.chan,
								  &frame, 0),
			     0);
		fast_cnt += x->fast.single_room < room;
		cr_assert(x->open || a->conn.rx.advertised == a->conn.rx.consumer);
		cr_assert(x->flow.producer == y->flow.producer && x->flush_start == y->flush_start);
		cr_assert(x->flow.granted == y->flow.granted && x->open == y->open);
		cr_assert_eq(a->dev.write_cnt, other.end[0].dev.write_cnt);
		ring_end_progress(a); /* At the end of a lap one more call */
		ring_end_progress(&other.end[0]);
		ring_end_progress(b);
		ring_end_progress(&other.end[1]);
		cr_assert_eq(seen_len, 12 + len);
		if (!rng_below(&rng, 8)) { /* Something to advertise */
			cr_assert_eq(send_len(b, len, 0), 0);
			cr_assert_eq(send_len(&other.end[1], len, 0), 0);
			ring_end_progress(a);
			ring_end_progress(&other.end[0]);
		}
	}
	cr_expect_gt(fast_cnt, 500, "the fast path was taken %u times only", (unsigned)fast_cnt);
	ring_pair_fini(&other);
	ring_pair_fini(&pair);
}

Test(ring_single, a_message_behind_unreleased_bytes_is_deferred)
{
	start_looking(4096);
	cr_assert_eq(send_8(0), 0);
	cr_expect_eq(a->dev.write_cnt, 3, "the peer is idle");
	cr_assert_eq(send_8(0), 0);
	cr_expect_eq(a->dev.write_cnt, 3, "it is not");
	cr_expect_eq(a->conn.tx.fast.single_room, 0, "while a batch is open");
	ring_end_progress(a);
	ring_end_progress(b);
	cr_expect_eq(a->dev.write_cnt, 4);
	cr_assert_eq(send_8(0), 0);
	ring_end_progress(b);
	cr_expect_eq(a->conn.tx.fast.single_room, 0, "one is not many");
	cr_assert_eq(send_8(0), 0);
	cr_expect_gt(a->conn.tx.fast.single_room, 0);
	ring_pair_fini(&pair);
}

Test(ring_single, send_now_skips_the_check_and_fi_more_defers)
{
	uint64_t room;

	start_looking(4096);
	cr_assert_eq(send_8(0), 0);
	room = a->conn.tx.fast.single_room;
	cr_assert_eq(send_8(CORE_SEND_NOW), 0);
	cr_expect_eq(a->dev.write_cnt, 4);
	cr_expect_eq(a->conn.tx.fast.single_room, room - TAKEN);
	ring_end_progress(b);
	cr_assert_eq(send_8(CORE_SEND_MORE), 0);
	cr_expect_eq(a->dev.write_cnt, 4);
	cr_assert_eq(send_8(CORE_SEND_NOW), 0);
	cr_expect_eq(a->dev.write_cnt, 5, "in the deferred batch");
	ring_end_progress(b);
	cr_expect_eq(msg_cnt, 6);
	ring_pair_fini(&pair);
}

Test(ring_single, a_due_grant_takes_the_general_case)
{
	start_looking(4096);
	ring_end_progress(b);
	a->conn.tx.flow.granted -= 32;
	a->conn.tx.fast.single_room = ring_flush_single_room(&a->conn);
	cr_expect_eq(a->conn.tx.fast.single_room, 0);
	cr_assert_eq(send_8(0), 0);
	cr_expect_eq(meta_at(a, 2 * TAKEN).credit_grant, 32);
	cr_expect_gt(a->conn.tx.fast.single_room, 0);
	ring_pair_fini(&pair);
}

Test(ring_single, the_fast_path_stays_within_free_space_and_the_lap)
{
	uint64_t pos;

	start_looking(1024);
	for (pos = 2 * TAKEN; pos < 1024 - TAKEN; pos += TAKEN) {
		cr_assert_eq(a->conn.tx.flow.producer, pos);
		cr_assert_leq(a->conn.tx.fast.single_room, 1024 - 32 - pos);
		cr_assert_eq(send_8(0), 0);
		ring_end_progress(b);
	}
	cr_assert_eq(send_8(0), 0);
	cr_expect_eq(meta_at(a, 1024 - TAKEN).message_count, WIRE_COUNT_WRAP);
	cr_expect_eq(a->conn.tx.flow.producer, 1024 + TAKEN);
	ring_end_progress(b);
	a->dev.no_read = true;
	while (!send_8(CORE_SEND_NOW))
		cr_assert(ring_flow_holds(&a->conn.tx.flow));
	cr_expect_lt(a->conn.tx.fast.single_room, TAKEN);
	ring_pair_fini(&pair);
}

Test(ring_single, a_failed_connection_sends_nothing_on_the_fast_path)
{
	uint64_t before;

	start_looking(1024);
	before = a->conn.tx.flow.producer;
	ring_conn_fail_cold(&a->conn, -FI_EIO, "the test says so");
	cr_expect_eq(send_8(0), -FI_EIO);
	cr_expect_eq(send_8(CORE_SEND_NOW), -FI_EIO);
	cr_expect_eq(a->conn.tx.flow.producer, before);
	ring_pair_fini(&pair);
}

Test(ring_single, the_fast_path_needs_a_link_word)
{
	start(false, 4096);
	ring_pair_flush = (struct ring_flush_cfg){ .best_len = 544, .cheap_signal = true };
	cr_assert_eq(send_8(0), 0);
	cr_assert_eq(send_8(0), 0);
	cr_assert_eq(send_8(0), 0);
	cr_expect_eq(a->conn.tx.fast.single_room, 0);
	ring_pair_fini(&pair);
}
