/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Metadata of a closed batch, the bytes transmitted, and the queue while the device has no space.
 */
#include "ring/ring_tx.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_rx.h"
#include "tx_see.h"

Test(ring_tx_close, the_link_word_belongs_to_the_link)
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

Test(ring_tx_close, a_single_message_is_transmitted_without_padding)
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

Test(ring_tx_close, padding_between_messages_is_transmitted)
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

Test(ring_tx_close, released_bytes_are_advertised_once_in_the_immediate)
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

Test(ring_tx_close, metadata_carries_what_exceeds_the_immediate)
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
	a->conn.rx.consumer = a->conn.rx.advertised + WIRE_ALIGN * (WIRE_IMM_ADVANCE_MAX + 1ull);
	cr_assert_eq(send_len(a, 1, CORE_SEND_NOW), 0);
	cr_expect_eq(on_wire(a, 1).imm, 2, "the advance exceeds the immediate");
	cr_expect_eq(meta_at(a, 64).consumer_pos, a->conn.rx.consumer);
	cr_assert(ring_flush_credit_only(&fake_link_late_ops, &a->conn));
	cr_expect_eq(on_wire(a, 2).imm, 1, "no message");
	ring_pair_fini(&pair);
}

Test(ring_tx_close, queued_posts_are_counted_by_their_distance)
{
	start_late(4096);
	a->dev.sq_len = 0;
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_assert_eq(a->conn.tx.post_cnt, 1);
	cr_expect_eq(ring_tx_queued_len(&a->conn.tx), 64);
	a->dev.sq_len = 8;
	ring_end_progress(a);
	cr_expect_eq(ring_tx_queued_len(&a->conn.tx), 0);
	ring_pair_fini(&pair);
}

/* ---- the device has no space ---- */

Test(ring_tx_close, refused_posts_leave_later_and_in_order)
{
	start(false, 4096);
	a->dev.sq_len = 0;
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect_eq(a->conn.tx.post_cnt, 1);
	cr_assert_eq(send_len(a, 2, 0), 0);
	cr_assert_eq(send_len(a, 3, 0), 0);
	cr_expect_eq(a->conn.tx.post_cnt, 1, "messages gather behind the batch");
	cr_expect(a->conn.eng.chan.ops->is_busy(&a->conn.eng.chan));
	ring_end_progress(a);
	cr_expect_eq(a->dev.write_cnt, 0);
	cr_expect_not(util_list_is_empty(&ring_end_transport(a)->dirty));
	a->dev.sq_len = 8;
	ring_end_progress(a);
	cr_expect_eq(a->dev.write_cnt, 2);
	ring_end_progress(b);
	cr_expect_eq(msg_cnt, 3);
	cr_expect_eq(seen_len, 3);
	ring_pair_fini(&pair);
}

Test(ring_tx_close, the_queue_of_refused_posts_is_bounded)
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
