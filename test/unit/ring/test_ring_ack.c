/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "ring/ring_ack.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "ring/ring_call.h"
#include "support/ring_pair.h"
#include "support/rng.h"
#include "support/up_count.h"

#define LATE_TURNS 5000000u

static struct ring_pair pair;
static struct ring_end *a, *b;
static uint64_t arrived;
static unsigned acked_cnt, sent_cnt;

static void see_arrived(struct core_chan *chan, uint64_t pos)
{
	if (chan != &a->conn.eng.chan)
		return;
	arrived = pos;
	acked_cnt++;
}

static const struct core_upcalls upcalls = {
	.on_msg = up_count_msg,
	.on_acked = see_arrived,
	.on_down = up_count_down,
};

static void start(void)
{
	const struct ring_pair_cfg cfg = { .ack = true, .rx_len = { 4096, 4096 }, .seed = 7 };

	ring_pair_init(&pair, &cfg, &upcalls);
	ring_pair_flush = (struct ring_flush_cfg){ .best_len = 4096 };
	a = &pair.end[0];
	b = &pair.end[1];
	a->dev.eager = b->dev.eager = true;
	a->dev.sq_len = b->dev.sq_len = 1000;
	arrived = acked_cnt = up_count.msg_cnt = 0;
}

/** Sends like core: sets `awaited` and calls await. */
static uint64_t post(struct ring_end *end, unsigned flags)
{
	struct core_chan *chan = &end->conn.eng.chan;

	cr_assert_eq(chan->ops->send_buf(chan, core_packed(WIRE_OP_MSG, flags), 0, 0, "x", 1), 1);
	if (!(flags & CORE_SEND_NOW))
		chan->awaited = *chan->posted;
	return *chan->posted;
}

static bool is_reading(const struct ring_end *end)
{
	return end->conn.read == RING_READ_POSTED;
}

/** Runs progress of one end alone until it posts a READ. */
static bool progress_until_read(struct ring_end *end)
{
	for (unsigned i = 0; i < LATE_TURNS && !is_reading(end); i++)
		ring_end_progress(end);
	return is_reading(end);
}

static bool watched(const struct ring_end *end)
{
	return !util_list_is_empty(&end->conn.ack.link);
}

Test(ring_ack, a_channel_reports_asynchronous_arrival)
{
	start();
	cr_expect(a->conn.eng.chan.caps & CORE_CHAN_ASYNC);
	ring_pair_fini(&pair);
}

Test(ring_ack, a_response_acknowledges_and_no_ack_is_requested)
{
	uint64_t pos;

	start();
	for (unsigned round = 0; round < 1000; round++) {
		pos = post(a, 0);
		ring_end_progress(a); /* At the end of a lap a message follows the marker */
		ring_end_progress(b);
		post(b, 0);
		ring_end_progress(b);
		ring_end_progress(a);
		cr_assert_eq(arrived, pos, "round %u", round);
		cr_assert_not(is_reading(a) || is_reading(b));
		cr_assert_not(a->conn.ack.requests_acks || b->conn.ack.requests_acks);
	}
	ring_pair_fini(&pair);
}

Test(ring_ack, without_a_response_a_fence_acknowledges_and_then_acks)
{
	uint64_t pos;

	start();
	pos = post(a, 0);
	cr_assert(progress_until_read(a));
	cr_expect_eq(arrived, 0, "not before it is known");
	ring_end_progress(b);
	while (arrived != pos)
		ring_end_progress(a);
	cr_expect(a->conn.ack.requests_acks);
	for (unsigned round = 0; round < 1000; round++) {
		pos = post(a, 0);
		ring_end_progress(a);
		ring_end_progress(b);
		ring_end_progress(a);
		cr_assert_eq(arrived, pos, "round %u", round);
		cr_assert_not(is_reading(a), "the ack reported the arrival");
	}
	cr_expect_not(watched(a));
	ring_pair_fini(&pair);
}

Test(ring_ack, several_acks_may_be_outstanding)
{
	uint64_t pos[RING_ACKS_MAX + 2];

	start();
	a->conn.ack.requests_acks = true;
	for (unsigned i = 0; i < RING_ACKS_MAX + 2; i++) {
		pos[i] = post(a, 0);
		ring_end_progress(a);
	}
	cr_expect(watched(a), "batches beyond the acks are watched");
	ring_end_progress(b);
	while (arrived < pos[RING_ACKS_MAX - 1])
		ring_end_progress(a);
	while (arrived < pos[RING_ACKS_MAX + 1])
		ring_end_progress(a);
	ring_pair_fini(&pair);
}

/* The device takes one write at a time: each second batch waits, and leaves with an ack. */
Test(ring_ack, a_batch_that_waits_for_the_device_has_an_ack)
{
	uint64_t pos = 0;

	start();
	a->conn.ack.requests_acks = true;
	a->dev.sq_len = 1;
	for (unsigned round = 0; round < 1000; round++) {
		post(a, 0);
		ring_end_progress(a);
		pos = post(a, 0);
		ring_end_progress(a);
		cr_assert_eq(a->conn.tx.post_cnt, 1, "round %u", round);
		for (unsigned i = 0; i < 10 && arrived != pos; i++) {
			ring_end_progress(b);
			ring_end_progress(a);
			cr_assert_not(is_reading(a), "round %u: a fence", round);
		}
		cr_assert_eq(arrived, pos, "round %u", round);
	}
	ring_pair_fini(&pair);
}

Test(ring_ack, early_acknowledgements_end_no_requests_that_cost_nothing)
{
	start();
	a->conn.ack.requests_acks = true;
	a->dev.free_acks = true;
	for (unsigned round = 0; round < 10; round++) {
		post(a, 0);
		ring_end_progress(b);
		post(b, 0);
		ring_end_progress(a);
	}
	cr_expect(a->conn.ack.requests_acks);
	ring_pair_fini(&pair);
}

Test(ring_ack, early_acknowledgements_end_the_requests)
{
	unsigned round;

	start();
	a->conn.ack.requests_acks = true;
	for (round = 0; round < 10 && a->conn.ack.requests_acks; round++) {
		post(a, 0);
		ring_end_progress(b);
		post(b, 0);
		ring_end_progress(a);
	}
	cr_expect_eq(round, 1);
	ring_pair_fini(&pair);
}

Test(ring_ack, after_a_miss_more_early_acknowledgements_are_needed)
{
	uint32_t need = 1;

	start();
	for (unsigned i = 0; i < 3; i++) {
		uint64_t pos = post(a, 0);

		cr_assert(progress_until_read(a));
		ring_end_progress(b);
		while (arrived != pos)
			ring_end_progress(a);
		cr_expect_gt(a->conn.ack.early_need, need);
		need = a->conn.ack.early_need;
		for (unsigned round = 0; a->conn.ack.requests_acks; round++) {
			cr_assert_lt(round, 2 * RING_ACK_EARLY_NEED_MAX);
			post(a, 0);
			ring_end_progress(b);
			post(b, 0);
			ring_end_progress(a);
		}
	}
	ring_pair_fini(&pair);
}

Test(ring_ack, no_ack_is_requested_for_arrival_that_is_not_awaited)
{
	start();
	for (unsigned i = 0; i < 10; i++)
		post(a, CORE_SEND_NOW);
	for (unsigned i = 0; i < 100000; i++)
		ring_end_progress(a);
	cr_expect_not(is_reading(a));
	a->conn.eng.chan.awaited = *a->conn.eng.chan.posted;
	a->conn.eng.chan.ops->await(&a->conn.eng.chan);
	cr_expect(progress_until_read(a), "arrival is awaited now");
	ring_pair_fini(&pair);
}

Test(ring_ack, a_fence_is_posted_before_a_sleep)
{
	start();
	post(a, 0);
	cr_assert(watched(a));
	cr_assert_eq(ring_ack_request_all(ring_end_transport(a)), 0);
	cr_expect(is_reading(a));
	cr_expect_not(watched(a));
	ring_ack_watch(&a->conn);
	cr_expect_eq(ring_ack_request_all(ring_end_transport(a)), -FI_EAGAIN,
		     "one question at a time");
	ring_pair_fini(&pair);
}

Test(ring_ack, a_failed_connection_is_not_watched)
{
	start();
	post(a, 0);
	cr_assert(watched(a));
	ring_conn_fail_cold(&a->conn, -FI_EIO, "for the test");
	cr_expect_not(watched(a));
	ring_ack_watch(&a->conn);
	cr_expect_not(watched(a));
	ring_pair_fini(&pair);
}

Test(ring_ack, the_first_message_of_a_burst_requests_no_ack)
{
	struct ring_ack ack = { .requests_acks = true, .last_is_new = true };

	cr_expect(ring_ack_should_request(&ack, 1));
	cr_expect(ring_ack_should_request(&ack, 15));
	cr_expect_not(ring_ack_should_request(&ack, 1));
	cr_expect(ring_ack_should_request(&ack, 1), "once");
	ack.last_is_new = false;
	cr_expect(ring_ack_should_request(&ack, 15));
	cr_expect(ring_ack_should_request(&ack, 1), "the rest of a burst, deferred");
	ack.last_is_new = true;
	cr_expect_not(ring_ack_should_request(&ack, 1), "the next one's first");
	ack.requests_acks = false;
	cr_expect_not(ring_ack_should_request(&ack, 15));
}

Test(ring_ack, a_closing_end_first_advertises_received_bytes)
{
	uint64_t pos;

	start();
	pos = post(a, 0);
	ring_end_progress(b);
	cr_assert_eq(up_count.msg_cnt, 1);
	while (b->conn.eng.chan.ops->is_busy(&b->conn.eng.chan)) {
		ring_end_progress(b);
		ring_end_progress(a);
	}
	cr_expect_eq(arrived, pos);
	for (unsigned i = 0; i < 100; i++) {
		cr_assert_not(b->conn.eng.chan.ops->is_busy(&b->conn.eng.chan),
			      "nothing else is reported");
		ring_end_progress(a);
		ring_end_progress(b);
	}
	ring_pair_fini(&pair);
}

/**
 * Sends one message in any of core's ways, awaited or not. Awaited messages of one burst end at
 * pos.
 */
static void post_any(struct rng *rng, uint64_t *pos)
{
	struct core_chan *chan = &a->conn.eng.chan;
	unsigned flags = (rng_chance(rng, 1, 3) ? CORE_SEND_NOW : 0) |
			 (rng_chance(rng, 1, 3) ? CORE_SEND_MORE : 0);
	size_t len = rng_below(rng, 3) ? 1 : 200;
	static const uint8_t bytes[200];

	if (chan->ops->send_buf(chan, core_packed(WIRE_OP_MSG, flags), 0, 0, bytes, len) != 1) {
		ring_end_progress(a); /* No space: the peer must release some */
		ring_end_progress(b);
		return;
	}
	sent_cnt++;
	if (rng_chance(rng, 1, 2))
		return;
	chan->awaited = *chan->posted;
	*pos = chan->awaited;
	if (flags & CORE_SEND_NOW)
		chan->ops->await(chan);
}

/* Arrival of every awaited message is reported, in whatever company and way it leaves. */
Test(ring_ack, arrival_of_every_awaited_message_is_reported)
{
	struct rng rng = { rng_env("COPYRPC_TEST_SEED", 5) };
	uint64_t pos = 0;
	uint32_t i, cnt;

	start();
	ring_pair_flush = (struct ring_flush_cfg){ .best_len = 300 };
	for (unsigned round = 0; round < 20000; round++) {
		cnt = 1 + (uint32_t)rng_below(&rng, 4);
		for (i = 0; i < cnt; i++) {
			post_any(&rng, &pos);
			if (rng_chance(&rng, 1, 4))
				ring_end_progress(a);
		}
		if (rng_chance(&rng, 1, 8))
			post(b, 0); /* Sometimes the peer sends, and thereby acknowledges */
		for (i = 0; (int64_t)(arrived - pos) < 0; i++) {
			cr_assert_lt(i, LATE_TURNS,
				     "round %u: %lu of %lu; flushed %lu open %d posts %u read %d "
				     "watched %d asks %d acks %u",
				     round, (unsigned long)arrived, (unsigned long)pos,
				     (unsigned long)a->conn.tx.flush_start, a->conn.tx.open,
				     a->conn.tx.post_cnt, a->conn.read, watched(a),
				     a->conn.ack.requests_acks,
				     a->conn.ack.ack_tail - a->conn.ack.ack_head);
			ring_end_progress(a);
			ring_end_progress(b);
		}
	}
	cr_expect_gt(sent_cnt, 20000);
	ring_pair_fini(&pair);
}
