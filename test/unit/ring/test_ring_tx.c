/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Without space or credit nothing is sent or changed, and reserved space is available. */
#include "ring/ring_call.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_rx.h"
#include "tx_see.h"

static struct ring_tx tx_before;

static void remember(void)
{
	tx_before = a->conn.tx;
}

static void unchanged(void)
{
	cr_expect_arr_eq(&a->conn.tx, &tx_before, sizeof(tx_before));
}

Test(ring_tx, without_space_a_message_is_refused_and_nothing_changes)
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

Test(ring_tx, a_response_beyond_the_maximum_size_is_refused_and_nothing_changes)
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

Test(ring_tx, a_response_fits_a_full_ring)
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

Test(ring_tx, responses_return_their_reservation)
{
	int context[2];

	start(true, 4096);
	cr_assert_eq(call_len(b, 0, 20, &context[0]), 0);
	cr_assert_eq(call_len(b, 0, 100, &context[1]), 0);
	ring_end_progress(a);
	cr_expect_eq(a->conn.tx.flow.claimed, 64 + 160);
	cr_expect_eq(reply_len(a, seen, 1), 0);
	cr_expect_eq(a->conn.tx.flow.claimed, 64);
	cr_expect_eq(a->conn.tx.flow.granted, 512, "the credit is granted again at once");
	ring_end_progress(b);
	cr_expect_eq(seen_context, &context[1]);
	cr_expect_eq(b->conn.tx.credit, 512 - 64);
	ring_pair_fini(&pair);
}

/* ---- competition for space ---- */

/** Fills the ring: sends the largest message that fits, again and again. */
static void fill(struct ring_end *end)
{
	size_t len = end->conn.eng.chan.eager_max;

	for (; len >= 32; len -= 32)
		while (!send_len(end, len, 0))
			;
}

static enum core_rx_verdict refill_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				       uint32_t len, core_retain_t retain)
{
	fill(a);
	return see_msg(chan, op, data, len, retain);
}

static enum core_rx_verdict reply_at_once(struct core_chan *chan, struct core_call_ref ref,
					  const uint8_t *data, uint32_t len, core_retain_t retain)
{
	see_call(chan, ref, data, len, retain);
	cr_assert_eq(core_chan_reply(chan, ref, data, 0), 0);
	return CORE_RX_DONE;
}

Test(ring_tx, a_flood_of_messages_leaves_credit_for_the_peer_s_calls)
{
	static const struct core_upcalls up = { .on_msg = refill_msg,
						.on_call = reply_at_once,
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
	cr_assert_gt(reply_cnt, 1000, "%u responses in %u rounds", reply_cnt, round);
	ring_pair_fini(&pair);
}
