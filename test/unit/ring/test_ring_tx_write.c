/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bytes written to the ring; no other bytes change. */
#include "ring/ring_tx.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_rx.h"
#include "tx_see.h"

Test(ring_tx_write, a_single_message_is_metadata_header_and_bytes)
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

Test(ring_tx_write, nothing_behind_a_message_is_touched)
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

Test(ring_tx_write, a_call_carries_its_operation_and_maximum_response_blocks)
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
	cr_expect_eq(seen_ref.resp_max, 20);
	ring_pair_fini(&pair);
}

Test(ring_tx_write, a_call_keeps_its_extension_in_front_of_its_bytes)
{
	static const char payload[4] = "tail";
	struct iovec iov[2] = { { (void *)(uintptr_t)payload, 1 },
				{ (void *)(uintptr_t)(payload + 1), 3 } };
	struct core_frame frame = { .op = 1, .iov = iov, .iov_cnt = 2, .iov_off = 1, .len = 3 };
	int context;

	start(true, 1024);
	frame.ext_len = CORE_FRAME_EXT_MAX - 4;
	memset(frame.ext, 'x', frame.ext_len);
	cr_assert_eq(a->conn.eng.chan.ops->call(&a->conn.eng.chan, &frame, 0, &context, 0), 0);
	ring_end_progress(b);
	cr_expect_eq(seen_len, CORE_FRAME_EXT_MAX + 3);
	cr_expect_arr_eq(seen, "\1\0\0\0x", 5);
	cr_expect_arr_eq(seen + CORE_FRAME_EXT_MAX - 1, "xail", 4);
	ring_pair_fini(&pair);
}

Test(ring_tx_write, an_empty_message_is_valid)
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
