/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A rail takes over: under random traffic every message arrives once and in order, whichever links
 * fail and when; gets go on; what cannot be taken over fails. (ring_takeover.c)
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "flow.h"
#include "rail_pair.h"
#include "ring/ring_ack.h"
#include "ring/ring_bulk.h"
#include "ring/ring_takeover.h"
#include "support/rng.h"

#define KIB   1024ull
#define LEN   4096u
#define SEEDS 100u
#define STEPS 1500u /* per seed: one takeover, somewhere, and traffic after it */

/* ---- random traffic ---- */

static const struct flow_case cases[] = {
	{ "1K, queue of 1",
	  { .ack = true, .rails = true, .rx_len = { KIB, KIB } },
	  { .best_len = 512 },
	  1,
	  false },
	{ "1K/4K, gathered in packets, no read",
	  { .ack = true, .rails = true, .rx_len = { KIB, 4 * KIB } },
	  { .best_len = 256, .packet_len = 256 },
	  3,
	  true },
	{ "4K/1K, below 2^64 and 2^37",
	  { .ack = true,
	    .rails = true,
	    .rx_len = { 4 * KIB, KIB },
	    .start = { -96ull, (1ull << 37) - 32 } },
	  { .best_len = 4096, .cheap_signal = true },
	  4,
	  false },
	{ "64K, queue of 8",
	  { .ack = true, .rails = true, .rx_len = { 64 * KIB, 64 * KIB } },
	  { .best_len = 512 },
	  8,
	  false },
	{ "2K, without short immediates",
	  { .rails = true, .rx_len = { 2 * KIB, 2 * KIB } },
	  { .best_len = 1u << 20 },
	  2,
	  true },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

/* Indexes: a case's name has another address in the process that runs the test. */
ParameterizedTestParameters(ring_takeover, nothing_is_lost_doubled_or_reordered)
{
	static unsigned index[CASES];

	for (unsigned i = 0; i < CASES; i++)
		index[i] = i;
	return cr_make_param_array(unsigned, index, CASES);
}

ParameterizedTest(unsigned *i, ring_takeover, nothing_is_lost_doubled_or_reordered)
{
	uint64_t steps = rng_env("COPYRPC_TEST_STEPS", STEPS);
	uint64_t seed = rng_env("COPYRPC_TEST_SEED", 0);

	if (seed) {
		flow_play(&cases[*i], seed, steps);
		return;
	}
	for (seed = 1; seed <= SEEDS; seed++)
		flow_play(&cases[*i], seed, steps);
}

/* ---- gets and exposures ---- */

static struct ring_pair pair;
static struct ring_end *a, *b;
static unsigned done_cnt, msg_cnt, undirect_cnt;
static int down;

static enum core_rx_verdict on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				   uint32_t len, core_retain_t retain)
{
	msg_cnt++;
	return CORE_RX_DONE;
}

static void on_done(struct core_chan *chan, struct core_get *get)
{
	done_cnt++;
}

static void on_down(struct core_chan *chan, int err)
{
	down = err;
}

static uint64_t acked;

/** Checks that the bytes are in the peer's ring, and counts them. */
static void on_acked(struct core_chan *chan, uint64_t pos)
{
	struct ring_end *end = ring_end_of(chan), *peer = end == a ? b : a;

	cr_assert_leq(pos, peer->conn.rx.producer);
	acked = pos;
}

static void on_limits(struct core_chan *chan)
{
	cr_expect_null(chan->reg_dev);
	undirect_cnt++;
}

static const struct core_upcalls upcalls = {
	.on_msg = on_msg,
	.on_get_done = on_done,
	.on_acked = on_acked,
	.on_limits = on_limits,
	.on_down = on_down,
};

static void start(void)
{
	rail_pair_start(&pair, true, &upcalls);
	a = &pair.end[0];
	b = &pair.end[1];
}

static void finish(void)
{
	rail_pair_finish(&pair);
}

static void progress(void)
{
	for (int i = 0; i < 8; i++) {
		ring_end_progress_rails(a);
		ring_end_progress_rails(b);
	}
}

static bool is_taken(const struct ring_end *end)
{
	return end->conn.rail->phase == RING_RAIL_TAKEN;
}

static void send_one(struct ring_end *end)
{
	struct core_chan *chan = &end->conn.eng.chan;

	cr_assert(chan->ops->send_buf(chan, core_packed(WIRE_OP_MSG, 0), 0, 0, "x", 1) >= 0);
}

static uint8_t source[LEN], sink[2][LEN];
static struct iovec iov[2] = { { sink[0], LEN }, { sink[1], LEN } };
static struct core_exposure exposure;

static void expose(struct ring_end *end)
{
	for (size_t i = 0; i < LEN; i++)
		source[i] = (uint8_t)(i * 7 + (i >> 8));
	memset(sink, 0, sizeof(sink));
	exposure.chan = &end->conn.eng.chan;
	cr_assert_eq(ring_bulk_expose(exposure.chan, source, LEN, &exposure), 0);
}

static struct core_get request(int i)
{
	return (struct core_get){ .remote_addr = (uintptr_t)source,
				  .remote_key = exposure.key,
				  .iov = &iov[i],
				  .iov_cnt = 1,
				  .len = LEN };
}

Test(ring_takeover, gets_go_on_over_the_second_device)
{
	struct core_get get, held;

	start();
	expose(b);
	get = request(0);
	held = request(1);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
	fake_link_kill(a->conn.link, -FI_ETIMEDOUT);
	ring_end_progress_rails(a);
	cr_assert(ring_takeover_is_on(&a->conn));
	cr_expect_eq(a->dev.mem_cnt, 0, "the first device has nothing of the buffers");
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &held), 0);
	cr_expect_eq(done_cnt, 0);
	send_one(a);
	cr_expect_eq(ring_transport_arm(&ring_end_transport(a)->eng), 0,
		     "a thread sleeps until the peer's position arrives");
	progress();
	cr_expect(is_taken(a) && is_taken(b));
	cr_expect_eq(msg_cnt, 1);
	cr_expect_eq(done_cnt, 2);
	cr_expect(!get.status && !held.status);
	cr_expect_arr_eq(sink[0], source, LEN);
	cr_expect_arr_eq(sink[1], source, LEN);
	cr_expect_eq(b->dev.mem_cnt, 0, "nor of what is exposed");
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);

	expose(b);
	cr_expect_eq(exposure.key >> 32, 0, "the second device is the only one");
	get = request(0);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
	progress();
	cr_expect_eq(done_cnt, 3);
	cr_expect_arr_eq(sink[0], source, LEN);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

Test(ring_takeover, both_first_devices_are_free_and_direct_accesses_end)
{
	start();
	a->conn.eng.chan.reg_dev = &a->dev;
	send_one(a);
	fake_link_kill(b->conn.link, -FI_EIO);
	progress();
	cr_expect_eq(msg_cnt, 1);
	cr_expect_eq(undirect_cnt, 1);
	for (int i = 0; i < 2; i++) {
		struct ring_end *end = &pair.end[i];

		cr_expect(is_taken(end));
		cr_expect(ring_rails_is_unused(&ring_end_transport(end)->eng));
		cr_expect_eq(end->dev.link_cnt, 0);
		cr_expect_eq(end->conn.dev, fake_dev_of(&end->second));
		cr_expect_eq(end->conn.eng.err, 0);
		cr_expect(end->engine.must_look);
	}
	send_one(a);
	send_one(b);
	progress();
	cr_expect_eq(msg_cnt, 3);
	finish();
}

static void expect_down(struct ring_end *end, int err)
{
	for (int i = 0; i < 8 && !down; i++) {
		ring_end_progress_rails(end);
		if (end->conn.eng.err)
			eng_events_cold(&end->engine);
	}
	cr_expect_eq(down, err);
	cr_expect_not(is_taken(end));
}

/* Arrivals that the device has acknowledged are processed, whatever happens to the rail then. */
Test(ring_takeover, what_has_arrived_over_the_first_link_is_not_dropped)
{
	start();
	for (int i = 0; i < 3; i++)
		send_one(b);
	b->conn.eng.chan.ops->flush(&b->conn.eng.chan);
	while (fake_link_deliver(b->conn.link))
		;
	b->conn.tx.placed = b->conn.tx.flush_start; /* and acknowledged */
	fake_link_kill(b->conn.link, -FI_EIO);
	ring_end_progress_rails(b);
	cr_assert(ring_takeover_is_on(&b->conn));
	cr_expect(b->conn.eng.chan.ops->is_busy(&b->conn.eng.chan), "fi_close waits");
	ring_rails_poll(ring_end_transport(a));
	ring_takeover_work(&a->rails, false);
	cr_expect_eq(a->conn.rail->phase, RING_RAIL_BESIDE, "arrivals come first");
	fake_link_kill(a->conn.rail->link, -FI_ENETDOWN);
	ring_end_progress_rails(a);
	cr_expect_eq(msg_cnt, 3);
	expect_down(a, -FI_ENETDOWN);
	down = 0;
	fake_link_kill(b->conn.rail->link, -FI_ENETDOWN);
	expect_down(b, -FI_ENETDOWN);
	finish();
}

Test(ring_takeover, an_awaited_arrival_is_reported_without_other_traffic)
{
	struct core_chan *chan;

	start();
	chan = &a->conn.eng.chan;
	send_one(a);
	chan->awaited = *chan->posted;
	fake_link_kill(a->conn.link, -FI_ETIMEDOUT); /* not delivered */
	for (int i = 0; i < 1000 && acked != chan->awaited; i++)
		progress();
	cr_expect(is_taken(a));
	cr_expect_eq(acked, chan->awaited);
	cr_expect_eq(msg_cnt, 1);
	finish();
}

/* A fence that was posted over the first link says nothing about the second one. */
Test(ring_takeover, the_read_that_ends_covers_what_was_not_written_again)
{
	struct core_chan *chan;
	uint64_t value;

	start();
	chan = &a->conn.eng.chan;
	a->second.lose_reads = true;
	a->second.sq_len = 0; /* nothing is written again yet */
	a->conn.rail->is_ready = false;
	cr_assert_eq(a->conn.rail->link->ops->read_consumer(a->conn.rail->link, &value), 0);
	send_one(a);
	chan->awaited = *chan->posted;
	ring_ack_watch(&a->conn);
	cr_assert_eq(ring_ack_request_all(ring_end_transport(a)), 0);
	cr_assert_eq(a->conn.read, RING_READ_POSTED);
	fake_link_kill(a->conn.link, 0);
	fake_link_kill(b->conn.link, -FI_ETIMEDOUT);
	ring_end_progress_rails(b);
	a->second.sq_len = 1; /* the position alone */
	for (int i = 0; i < 4; i++)
		ring_end_progress_rails(a);
	cr_assert(is_taken(a));
	a->second.lose_reads = false;
	for (int i = 0; i < 4; i++)
		ring_end_progress_rails(a);
	cr_expect_eq(msg_cnt, 0);
	cr_expect_eq(acked, 0);
	for (int i = 0; i < 1000 && acked != chan->awaited; i++)
		progress();
	cr_expect_eq(acked, chan->awaited);
	cr_expect_eq(msg_cnt, 1);
	finish();
}

/* The device had acknowledged a batch that the peer had not processed when its own link failed. */
Test(ring_takeover, a_close_waits_for_what_is_written_again)
{
	struct core_chan *chan;

	start();
	chan = &b->conn.eng.chan;
	send_one(b);
	chan->ops->flush(chan);
	b->conn.tx.placed = b->conn.tx.flush_start;
	cr_expect_not(chan->ops->is_busy(chan));
	fake_link_kill(b->conn.link, -FI_EIO); /* not delivered */
	ring_end_progress_rails(b);
	for (int i = 0; i < 4 && !is_taken(b); i++) {
		ring_end_progress_rails(a);
		ring_rails_poll(ring_end_transport(b));
	}
	cr_assert(is_taken(b));
	cr_expect(chan->ops->is_busy(chan));
	for (int i = 0; i < 8 && chan->ops->is_busy(chan); i++)
		progress();
	cr_expect_not(chan->ops->is_busy(chan));
	cr_expect_eq(msg_cnt, 1);
	finish();
}

/* The fake link ends the test at a second READ while one is outstanding. */
Test(ring_takeover, the_test_read_that_is_outstanding_is_the_connections)
{
	uint64_t value;

	start();
	a->second.lose_reads = true;
	a->conn.rail->is_ready = false;
	cr_assert_eq(a->conn.rail->link->ops->read_consumer(a->conn.rail->link, &value), 0);
	fake_link_kill(b->conn.link, -FI_EIO);
	progress();
	cr_assert(is_taken(a) && is_taken(b));
	cr_expect_eq(a->conn.read, RING_READ_POSTED);
	for (int i = 0; i < 8; i++)
		send_one(a);
	ring_ack_request_all(ring_end_transport(a));
	a->second.lose_reads = false;
	progress();
	cr_expect_neq(a->conn.read, RING_READ_POSTED);
	cr_expect_eq(msg_cnt, 8);
	finish();
}

/* ---- what fails ---- */

Test(ring_takeover, a_rail_that_is_not_ready_takes_over_nothing)
{
	start();
	a->conn.rail->is_ready = false;
	fake_link_kill(a->conn.link, -FI_ETIMEDOUT);
	expect_down(a, -FI_ETIMEDOUT);
	finish();
}

Test(ring_takeover, a_direct_access_in_progress_fails_with_its_connection)
{
	start();
	a->conn.link->access_cnt++;
	fake_link_kill(a->conn.link, -FI_ETIMEDOUT);
	expect_down(a, -FI_ETIMEDOUT);
	finish();
}

Test(ring_takeover, a_rail_that_fails_meanwhile_ends_the_connection_and_its_gets)
{
	struct core_get get;

	start();
	expose(b);
	get = request(0);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
	fake_link_kill(a->conn.link, -FI_ETIMEDOUT);
	ring_end_progress_rails(a);
	cr_assert(ring_takeover_is_on(&a->conn));
	fake_link_kill(a->conn.rail->link, -FI_ENETDOWN);
	expect_down(a, -FI_ENETDOWN);
	cr_expect_eq(done_cnt, 1);
	cr_expect_eq(get.status, -FI_ENETDOWN);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

Test(ring_takeover, a_rail_that_fails_behind_the_peers_position_ends_the_connection)
{
	start();
	fake_link_kill(b->conn.link, -FI_ETIMEDOUT);
	ring_end_progress_rails(b);
	ring_rails_poll(ring_end_transport(a));
	cr_assert(a->conn.rail->has_peer_pos && a->conn.rail->phase == RING_RAIL_BESIDE);
	fake_link_kill(a->conn.rail->link, -FI_ENETDOWN);
	ring_rails_poll(ring_end_transport(a));
	cr_expect_eq(a->conn.eng.err, -FI_ENETDOWN);
	expect_down(a, -FI_ENETDOWN);
	down = 0;
	fake_link_kill(b->conn.rail->link, -FI_ENETDOWN);
	expect_down(b, -FI_ENETDOWN);
	finish();
}

/* Positions of a peer: what it has not been sent, a second one, and one within a batch. */
Test(ring_takeover, illegal_positions_end_the_connection)
{
	static const uint32_t positions[] = { 3, 0xffffffffu, 1u << 31 };

	for (size_t i = 0; i < sizeof(positions) / sizeof(positions[0]); i++) {
		start();
		down = 0;
		send_one(a); /* two units */
		b->conn.rail->link->ops->write_imm(b->conn.rail->link, 0, 32, positions[i]);
		expect_down(a, -FI_EIO);
		finish();
	}
}

Test(ring_takeover, a_second_position_ends_the_connection)
{
	struct dev_link *link;

	start();
	link = b->conn.rail->link;
	a->second.sq_len = 0; /* cannot reply yet */
	link->ops->write_imm(link, 0, 32, 0);
	link->ops->write_imm(link, 0, 32, 0);
	expect_down(a, -FI_EIO);
	finish();
}

/* A peer has received what it has released. */
Test(ring_takeover, a_position_before_what_the_peer_has_released_meanwhile_ends_the_connection)
{
	start();
	send_one(a);
	b->conn.rail->link->ops->write_imm(b->conn.rail->link, 0, 32, 0);
	ring_rails_poll(ring_end_transport(a));
	cr_assert(a->conn.rail->has_peer_pos);
	ring_end_progress_rails(b);
	cr_assert_eq(b->conn.rx.consumer, 64);
	send_one(b);
	expect_down(a, -FI_EIO);
	finish();
}

Test(ring_takeover, a_position_within_a_batch_ends_the_connection)
{
	uint64_t count = 0x7f7f7f7f7f7f7f7full; /* no batch has as many messages */
	struct core_chan *chan;

	start();
	chan = &a->conn.eng.chan;
	cr_assert(chan->ops->send_buf(chan, core_packed(WIRE_OP_MSG, 0), 0, 0, &count,
				      sizeof(count)) >= 0);
	b->conn.rail->link->ops->write_imm(b->conn.rail->link, 0, 32, 1);
	for (int i = 0; i < 4 && !down; i++) {
		ring_end_progress_rails(a);
		if (a->conn.eng.err)
			eng_events_cold(&a->engine);
	}
	cr_expect_eq(down, -FI_EIO);
	finish();
}
