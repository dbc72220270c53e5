/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does one end do without room or credit, and how does it hear that there is some again? (ring_tx.h)
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_rx.h"
#include "ring/ring_tx.h"
#include "tx_see.h"

/* ---- refusals change nothing ---- */

static struct ring_tx tx_before;

static void remember(void)
{
	tx_before = a->conn.tx;
}

static void unchanged(void)
{
	cr_expect_arr_eq(&a->conn.tx, &tx_before, sizeof(tx_before));
}

Test(ring_tx, without_room_a_message_is_refused_and_nothing_changes)
{
	int context;

	start(true, 1024);
	while (!send_len(a, 20, 0))
		;
	remember();
	cr_expect_eq(send_len(a, 0, 0), -FI_EAGAIN);
	cr_expect_eq(call_len(a, 0, 0, &context), -FI_EAGAIN);
	unchanged();
	cr_expect_eq(a->conn.calls.used_cnt, 0);
	ring_pair_fini(&pair);
}

Test(ring_tx, without_credit_a_call_is_refused_and_nothing_changes)
{
	int context;

	start(true, 1024);
	cr_expect_eq(a->conn.tx.credit, 128);
	cr_expect_eq(call_len(a, 0, 20, &context), 0);
	cr_expect_eq(a->conn.tx.credit, 64);
	remember();
	cr_expect_eq(call_len(a, 0, 21, &context), -FI_EAGAIN);
	unchanged();
	cr_expect_eq(call_len(a, 0, 20, &context), 0);
	cr_expect_eq(call_len(a, 0, 0, &context), -FI_EAGAIN);
	ring_pair_fini(&pair);
}

Test(ring_tx, a_reply_beyond_its_allowance_is_refused_and_nothing_changes)
{
	int context;

	start(true, 1024);
	cr_assert_eq(call_len(b, 0, 20, &context), 0);
	ring_end_progress(a);
	remember();
	cr_expect_eq(reply_len(a, seen, 21), -FI_EMSGSIZE);
	unchanged();
	cr_expect_eq(reply_len(a, seen, 20), 0);
	ring_pair_fini(&pair);
}

Test(ring_tx, a_reply_goes_into_a_full_ring)
{
	int context;

	start(true, 1024);
	cr_assert_eq(call_len(b, 0, 20, &context), 0);
	cr_assert_eq(call_len(b, 0, 20, &context), 0);
	ring_end_progress(a);
	while (!send_len(a, 20, 0))
		;
	cr_expect_eq(reply_len(a, seen, 20), 0);
	cr_expect(ring_flow_holds(&a->conn.tx.flow));
	ring_end_progress(b);
	cr_expect_eq(reply_cnt, 1);
	ring_pair_fini(&pair);
}

Test(ring_tx, replies_give_their_reservation_back)
{
	int context[2];

	start(true, 4096);
	cr_assert_eq(call_len(b, 0, 20, &context[0]), 0);
	cr_assert_eq(call_len(b, 0, 100, &context[1]), 0);
	ring_end_progress(a);
	cr_expect_eq(a->conn.tx.flow.claimed, 64 + 160);
	cr_expect_eq(reply_len(a, seen, 1), 0);
	cr_expect_eq(a->conn.tx.flow.claimed, 64);
	cr_expect_eq(a->conn.tx.flow.granted, 512, "and it is granted again at once");
	ring_end_progress(b);
	cr_expect_eq(seen_context, &context[1]);
	cr_expect_eq(b->conn.tx.credit, 512 - 64);
	ring_pair_fini(&pair);
}

/* ---- news of the peer ---- */

Test(ring_tx, out_of_room_the_consumer_word_is_looked_at)
{
	start(true, 1024);
	while (!send_len(a, 20, 0))
		;
	ring_end_progress(b);
	cr_expect_eq(send_len(a, 20, 0), 0, "nothing was told, but it is there to read");
	ring_pair_fini(&pair);
}

Test(ring_tx, one_read_at_a_time_and_its_answer_makes_room)
{
	start(false, 1024);
	while (!send_len(a, 20, 0))
		;
	ring_end_progress(b);
	cr_expect_eq(a->conn.read, RING_READ_OUT);
	cr_expect_eq(send_len(a, 20, 0), -FI_EAGAIN, "no second read: the device would say so");
	ring_end_progress(a);
	cr_expect_neq(a->conn.read, RING_READ_OUT);
	cr_expect_eq(send_len(a, 20, 0), 0);
	ring_pair_fini(&pair);
}

Test(ring_tx, reads_in_vain_are_repeated_later_and_later)
{
	unsigned i;

	start(false, 1024);
	while (!send_len(a, 20, 0))
		;
	ring_end_progress(a);
	for (i = 1; i < 14; i++) {
		cr_assert_eq(a->conn.read, RING_READ_PAUSE);
		cr_expect_eq(a->conn.read_vain, i < 10 ? i : 10);
		a->conn.read_next_ns = UINT64_MAX;
		cr_expect_eq(send_len(a, 20, 0), -FI_EAGAIN);
		cr_assert_eq(a->conn.read, RING_READ_PAUSE, "not before its time");
		a->conn.read_next_ns = 0;
		cr_expect_eq(send_len(a, 20, 0), -FI_EAGAIN);
		cr_assert_eq(a->conn.read, RING_READ_OUT);
		ring_end_progress(a);
	}
	ring_end_progress(b);
	a->conn.read_next_ns = 0;
	cr_expect_eq(send_len(a, 20, 0), -FI_EAGAIN);
	ring_end_progress(a);
	cr_expect_eq(a->conn.read, RING_READ_IDLE);
	cr_expect_eq(a->conn.read_vain, 0, "news: the next one may come at once");
	cr_expect_eq(send_len(a, 20, 0), 0);
	ring_pair_fini(&pair);
}

Test(ring_tx, a_device_that_moves_bytes_is_busy_until_they_have_arrived)
{
	start(false, 4096);
	a->dev.eager = b->dev.eager = false;
	cr_assert_eq(send_len(a, 20, 0), 0);
	cr_expect(a->conn.eng.chan.ops->is_busy(&a->conn.eng.chan),
		  "it has not arrived for all we know");
	cr_expect_eq(a->conn.read, RING_READ_OUT, "so we ask");
	cr_expect(a->conn.eng.chan.ops->is_busy(&a->conn.eng.chan));
	cr_assert(fake_link_deliver(a->link));
	a->dev.eager = true;
	ring_end_progress(a);
	cr_expect_eq(a->conn.tx.placed, a->conn.tx.flow.producer);
	cr_expect_not(a->conn.eng.chan.ops->is_busy(&a->conn.eng.chan), "nobody need have read it");
	ring_pair_fini(&pair);
}

Test(ring_tx, more_than_a_quarter_released_is_told_without_a_message)
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

Test(ring_tx, at_the_end_of_a_lap_a_marker_tells_it)
{
	start(true, 1024);
	move_to(1024 - 32);
	a->conn.rx.consumer = 512;
	cr_expect(ring_tx_credit_only(&fake_link_direct_ops, &a->conn));
	cr_expect_eq(a->conn.tx.flow.producer, 1024);
	cr_expect_eq(meta_at(a, 992).message_count, WIRE_COUNT_WRAP);
	cr_expect_eq(meta_at(a, 992).consumer_pos, 512);
	ring_pair_fini(&pair);
}

Test(ring_tx, two_idle_peers_are_silent)
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

/* ---- who gets the room ---- */

/** Takes all the room there is: the largest message that goes, again and again. */
static void fill(struct ring_end *end)
{
	size_t len = end->conn.eng.chan.eager_max;

	for (; len >= 32; len -= 32)
		while (!send_len(end, len, 0))
			;
}

static enum core_rx_verdict refill_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				       uint32_t len, core_hold_t hold)
{
	fill(a);
	return see_msg(chan, op, data, len, hold);
}

static enum core_rx_verdict answer_call(struct core_chan *chan, struct core_call_ref ref,
					const uint8_t *data, uint32_t len, core_hold_t hold)
{
	see_call(chan, ref, data, len, hold);
	cr_assert_eq(chan->ops->reply(chan, ref, data, 0), 0);
	return CORE_RX_DONE;
}

Test(ring_tx, a_flood_of_messages_leaves_credit_for_the_peer_s_calls)
{
	static const struct core_upcalls up = { .on_msg = refill_msg,
						.on_call = answer_call,
						.on_reply = see_reply,
						.on_down = no_down };
	unsigned round;
	int context;

	start_with(true, 1024, &up);
	for (round = 0; round < 2000; round++) {
		fill(a);
		call_len(b, 1, 20, &context);
		ring_end_progress(b);
		fill(a);
		ring_end_progress(a);
	}
	cr_assert_gt(reply_cnt, 1000, "%u answers in %u rounds", reply_cnt, round);
	ring_pair_fini(&pair);
}
