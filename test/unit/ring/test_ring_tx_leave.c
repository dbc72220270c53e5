/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Flush of batches, and control information without a message. */
#include "ring/ring_flush.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_rx.h"
#include "tx_see.h"

Test(ring_tx_leave, fi_more_defers_the_batch_until_progress)
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

Test(ring_tx_leave, the_first_message_without_fi_more_flushes_the_batch)
{
	start(true, 4096);
	cr_assert_eq(send_len(a, 1, CORE_SEND_MORE), 0);
	cr_assert_eq(send_len(a, 2, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 1);
	cr_expect_eq(meta_at(a, 0).message_count, 2);
	ring_pair_fini(&pair);
}

static int send_more(uint64_t bytes)
{
	struct core_chan *chan = &a->conn.eng.chan;

	return chan->ops->send_more(chan, core_packed(1, 0), 0, 0, &bytes, sizeof(bytes));
}

/** Fills batches by send_more: the last message, without FI_MORE, takes its whole batch along. */
Test(ring_tx_leave, messages_with_fi_more_are_appended_until_the_batch_is_full)
{
	unsigned sent = 0;

	start(true, 4096);
	ring_pair_flush.best_len = 544;
	do {
		cr_assert_eq(send_more(sent), 0);
		cr_expect_eq(a->conn.tx.msg_cnt, a->dev.write_cnt ? 0 : sent + 1);
		sent++;
	} while (!a->dev.write_cnt);
	cr_expect_gt(sent, 10);
	cr_expect_eq(meta_at(a, 0).message_count, sent);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(send_more(i), 0);
	cr_expect_eq(a->dev.write_cnt, 1, "nothing has left");
	cr_assert_eq(send_len(a, 2, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 2);
	ring_end_progress(b);
	cr_expect_eq(msg_cnt, sent + 4);
	ring_pair_fini(&pair);
}

Test(ring_tx_leave, fi_more_is_refused_by_a_failed_connection)
{
	start(true, 4096);
	cr_assert_eq(send_more(1), 0);
	cr_assert_eq(send_more(2), 0);
	ring_conn_fail_cold(&a->conn, -FI_EIO, "the test says so");
	cr_expect_eq(send_more(3), -FI_EIO);
	cr_expect_eq(a->conn.tx.msg_cnt, 2);
	ring_pair_fini(&pair);
}

Test(ring_tx_leave, behind_a_batch_in_flight_messages_gather)
{
	start(false, 4096);
	ring_pair_flush.cheap_signal = false;
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 1, "a single message leaves at once");
	cr_assert_eq(send_len(a, 2, 0), 0);
	cr_assert_eq(send_len(a, 3, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 1);
	ring_end_progress(a);
	cr_expect_eq(a->dev.write_cnt, 2);
	cr_expect_eq(meta_at(a, 64).message_count, 2);
	ring_pair_fini(&pair);
}

Test(ring_tx_leave, nothing_is_appended_to_the_batch_of_a_failed_connection)
{
	struct core_chan *chan;
	uint64_t bytes = 7;

	start(false, 4096);
	ring_pair_flush.cheap_signal = false;
	chan = &a->conn.eng.chan;
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_assert_eq(send_len(a, 2, 0), 0, "this batch is deferred");
	cr_assert_eq(chan->ops->send_buf(chan, core_packed(1, 0), 0, 0, &bytes, sizeof(bytes)), 0);
	cr_assert_eq(a->conn.tx.msg_cnt, 2, "this message is appended");
	ring_conn_fail_cold(&a->conn, -FI_EIO, "the test says so");
	cr_expect_eq(chan->ops->send_buf(chan, core_packed(1, 0), 0, 0, &bytes, sizeof(bytes)),
		     -FI_EIO);
	cr_expect_eq(a->conn.tx.msg_cnt, 2);
	ring_pair_fini(&pair);
}

Test(ring_tx_leave, send_now_flushes_all_earlier_messages)
{
	start(false, 4096);
	ring_pair_flush.cheap_signal = false;
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_assert_eq(send_len(a, 2, 0), 0);
	cr_assert_eq(send_len(a, 3, CORE_SEND_NOW), 0);
	cr_expect_eq(a->dev.write_cnt, 2);
	cr_expect_eq(meta_at(a, 64).message_count, 2);
	cr_expect(util_list_is_empty(&ring_end_transport(a)->dirty) || !a->conn.tx.open);
	ring_pair_fini(&pair);
}

Test(ring_tx_leave, a_batch_of_the_best_size_leaves)
{
	start(true, 4096);
	ring_pair_flush.best_len = 96;
	cr_assert_eq(send_len(a, 1, CORE_SEND_MORE), 0);
	cr_expect_eq(a->dev.write_cnt, 0);
	cr_assert_eq(send_len(a, 1, CORE_SEND_MORE), 0);
	cr_expect_eq(a->dev.write_cnt, 1);
	ring_pair_fini(&pair);
}

/*
 * Sends messages of 32 bytes; the last one fills the batch, which leaves, and the peer releases it.
 */
static void fill_and_release(unsigned cnt)
{
	start(true, 4096);
	ring_pair_flush = (struct ring_flush_cfg){ .best_len = 96, .reads_consumer = true };
	cr_assert_eq(send_len(a, 1, 0), 0);
	while (cnt--)
		cr_assert_eq(send_len(a, 1, 0), 0);
	ring_end_progress(b);
}

Test(ring_tx_leave, behind_a_full_batch_the_consumer_word_is_not_read_until_progress)
{
	fill_and_release(2);
	cr_assert_eq(a->dev.write_cnt, 2, "one alone, two that filled a batch");
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 2, "the message is deferred");
	ring_end_progress(a);
	cr_expect_eq(a->dev.write_cnt, 3);
	ring_pair_fini(&pair);

	fill_and_release(2);
	ring_end_progress(a);
	cr_expect(util_list_is_empty(&ring_end_transport(a)->dirty));
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 3, "after a progress call a single message leaves at once");
	ring_pair_fini(&pair);
}

Test(ring_tx_leave, behind_a_single_message_the_consumer_word_is_read)
{
	fill_and_release(0);
	cr_assert_eq(send_len(a, 84, 0), 0);
	cr_assert_eq(a->dev.write_cnt, 2, "one message fills the batch");
	ring_end_progress(b);
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect_eq(a->dev.write_cnt, 3);
	ring_pair_fini(&pair);
}

Test(ring_tx_leave, only_dirty_connections_are_flushed)
{
	start(true, 4096);
	cr_expect(util_list_is_empty(&ring_end_transport(a)->dirty));
	cr_assert_eq(send_len(a, 1, 0), 0);
	cr_expect(util_list_is_empty(&ring_end_transport(a)->dirty), "it left");
	cr_assert_eq(send_len(a, 1, CORE_SEND_MORE), 0);
	cr_expect_not(util_list_is_empty(&ring_end_transport(a)->dirty));
	ring_end_progress(a);
	cr_expect(util_list_is_empty(&ring_end_transport(a)->dirty));
	ring_pair_fini(&pair);
}

/* ---- without a message ---- */

Test(ring_tx_leave, a_channel_is_busy_until_its_bytes_have_arrived)
{
	start(false, 4096);
	a->dev.eager = b->dev.eager = false;
	cr_assert_eq(send_len(a, 20, 0), 0);
	cr_expect(a->conn.eng.chan.ops->is_busy(&a->conn.eng.chan),
		  "it has not arrived for all we know");
	cr_expect_eq(a->conn.read, RING_READ_POSTED, "the word is read");
	cr_expect(a->conn.eng.chan.ops->is_busy(&a->conn.eng.chan));
	cr_assert(fake_link_deliver(a->link));
	a->dev.eager = true;
	ring_end_progress(a);
	cr_expect_eq(a->conn.tx.placed, a->conn.tx.flow.producer);
	cr_expect_not(a->conn.eng.chan.ops->is_busy(&a->conn.eng.chan),
		      "the position need not have been read");
	ring_pair_fini(&pair);
}

Test(ring_tx_leave, more_than_a_quarter_released_is_advertised_without_a_message)
{
	start(true, 1024);
	a->dev.no_read = true;
	cr_assert_eq(send_len(a, 148, 0), 0); /* 192 */
	cr_assert_eq(send_len(a, 20, 0), 0);  /* 256: a quarter */
	ring_end_progress(b);
	cr_expect_eq(b->dev.write_cnt, 0);
	cr_assert_eq(send_len(a, 0, 0), 0);
	ring_end_progress(b);
	cr_expect_eq(b->dev.write_cnt, 1);
	cr_expect_eq(meta_at(b, 0).message_count, 0);
	ring_end_progress(a);
	cr_expect_eq(a->conn.tx.flow.remote_consumer, a->conn.tx.flow.producer);
	ring_pair_fini(&pair);
}

Test(ring_tx_leave, at_the_end_of_a_lap_a_marker_advertises)
{
	start(true, 1024);
	move_to(1024 - 32);
	a->conn.rx.consumer = 512;
	cr_expect(ring_flush_credit_only(&fake_link_direct_ops, &a->conn));
	cr_expect_eq(a->conn.tx.flow.producer, 1024);
	cr_expect_eq(meta_at(a, 992).message_count, WIRE_COUNT_WRAP);
	cr_expect_eq(meta_at(a, 992).consumer_pos, 512);
	ring_pair_fini(&pair);
}

Test(ring_tx_leave, two_idle_peers_are_silent)
{
	uint64_t writes;
	unsigned i;

	start(true, 1024);
	for (i = 0; i < 500; i++) {
		send_len(a, 100, 0);
		send_len(b, 100, 0);
		ring_end_progress(a);
		ring_end_progress(b);
	}
	for (i = 0; i < 20; i++) {
		ring_end_progress(a);
		ring_end_progress(b);
	}
	writes = a->dev.write_cnt + b->dev.write_cnt;
	for (i = 0; i < 1000; i++) {
		ring_end_progress(a);
		ring_end_progress(b);
	}
	cr_expect_eq(a->dev.write_cnt + b->dev.write_cnt, writes);
	ring_pair_fini(&pair);
}
