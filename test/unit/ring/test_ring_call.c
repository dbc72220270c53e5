/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls, responses, and call_room. Random sizes at every position in rings of the smallest size:
 * ring_call_room is accurate, arguments arrive unchanged, and a retained response stays.
 */
#include "ring/ring_call.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/ring_pair.h"
#include "support/rng.h"

#define RING     4096u
#define CALLS    2000u
#define OP       0x1234560Cu
#define HELD_MAX 64

static struct ring_pair pair;
static struct ring_end *a, *b;
static struct rng rng;

/* Calls that b has received, in order. */
static struct {
	struct core_call_ref ref;
	core_retain_t retain;
	const uint8_t *data;
	uint32_t len;
} held[HELD_MAX];
static unsigned held_cnt, reply_cnt;
static bool keeps;
static struct {
	core_retain_t retain;
	const uint8_t *data;
	uint32_t len;
} kept[HELD_MAX];
static unsigned kept_cnt;

static enum core_rx_verdict on_call(struct core_chan *chan, struct core_call_ref ref,
				    const uint8_t *data, uint32_t len, core_retain_t retain)
{
	uint32_t op;

	memcpy(&op, data, sizeof(op));
	cr_assert_eq(op, OP);
	cr_assert_lt(held_cnt, HELD_MAX);
	held[held_cnt].ref = ref;
	held[held_cnt].retain = retain;
	held[held_cnt].data = data + sizeof(op);
	held[held_cnt++].len = len - (uint32_t)sizeof(op);
	return CORE_RX_RETAIN;
}

static void on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		     uint32_t len)
{
	cr_assert_eq(status, 0);
	cr_assert_eq(context, &reply_cnt);
	reply_cnt++;
	for (uint32_t i = 0; i < len; i++)
		cr_assert_eq(data[i], (uint8_t)(len * 3 + i));
	if (!keeps)
		return;
	kept[kept_cnt].data = data;
	kept[kept_cnt].len = len;
	cr_assert_eq(chan->ops->retain(chan, &kept[kept_cnt++].retain), 0);
}

static void on_down(struct core_chan *chan, int err)
{
	cr_assert_fail("the connection went down: %d", err);
}

static const struct core_upcalls upcalls = {
	.on_call = on_call,
	.on_reply = on_reply,
	.on_down = on_down,
};

static void start(bool direct, uint64_t pos)
{
	const struct ring_pair_cfg cfg = {
		.direct = direct, .rx_len = { RING, RING }, .start = { pos, pos }, .seed = 7
	};

	ring_pair_flush = (struct ring_flush_cfg){ .best_len = 4096,
						   .cheap_signal = true,
						   .reads_consumer = true };
	ring_pair_init(&pair, &cfg, &upcalls);
	a = &pair.end[0];
	b = &pair.end[1];
	a->dev.eager = b->dev.eager = true;
	a->dev.sq_len = b->dev.sq_len = 1000;
	held_cnt = reply_cnt = kept_cnt = 0;
	keeps = false;
}

static int call(size_t len, uint32_t resp_max, unsigned flags)
{
	static uint8_t bytes[RING];

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(len + i);
	return a->conn.eng.chan.ops->call_buf(&a->conn.eng.chan, OP, bytes, len, resp_max,
					      &reply_cnt, flags);
}

static void check_request(unsigned i)
{
	for (uint32_t k = 0; k < held[i].len; k++)
		cr_assert_eq(held[i].data[k], (uint8_t)(held[i].len + k));
}

static void reply(unsigned i, uint32_t len, unsigned flags)
{
	struct core_chan *chan = &b->conn.eng.chan;
	uint8_t bytes[RING];
	struct iovec iov[2] = { { bytes, len / 3 }, { bytes + len / 3, len - len / 3 } };

	check_request(i);
	for (uint32_t k = 0; k < len; k++)
		bytes[k] = (uint8_t)(len * 3 + k);
	cr_assert_eq(chan->ops->reply(chan, held[i].ref, iov, 2, len, flags), 0);
	chan->ops->release(chan, held[i].retain);
	held[i] = held[--held_cnt];
}

static void progress(void)
{
	for (int i = 0; i < 8; i++) {
		ring_end_progress(a);
		ring_end_progress(b);
	}
}

static void reply_all(void)
{
	while (held_cnt) {
		unsigned i = (unsigned)rng_below(&rng, held_cnt);

		reply(i, (uint32_t)rng_below(&rng, held[i].ref.resp_max + 1),
		      rng_chance(&rng, 1, 2) ? CORE_SEND_MORE : 0);
	}
	progress();
}

static void room_is_kept(bool direct)
{
	uint32_t largest;
	unsigned made = 0;

	rng.state = rng_env("COPYRPC_TEST_SEED", 1);
	start(direct, 0);
	largest = (uint32_t)a->conn.eng.chan.resp_sure;
	while (made < CALLS) {
		size_t len = rng_below(&rng, rng_chance(&rng, 1, 4) ? 500 : 60);
		uint32_t resp_max = (uint32_t)rng_below(&rng, largest + 1);
		size_t room = a->conn.eng.chan.ops->call_room(&a->conn.eng.chan, len, resp_max);

		for (size_t i = 0; i < room && made < CALLS && held_cnt < HELD_MAX; i++, made++)
			cr_assert_eq(call(len, resp_max, rng_chance(&rng, 1, 2)), 0,
				     "call %zu of %zu, %zu bytes, maximum response size %u", i,
				     room, len, resp_max);
		progress();
		cr_assert(ring_flow_holds(&a->conn.tx.flow) && ring_flow_holds(&b->conn.tx.flow));
		reply_all();
	}
	cr_assert_eq(reply_cnt, made);
	ring_pair_fini(&pair);
}

Test(ring_call, call_room_is_accurate_in_the_peers_ring)
{
	room_is_kept(true);
}

Test(ring_call, call_room_is_accurate_in_a_send_ring)
{
	room_is_kept(false);
}

Test(ring_call, call_room_is_accurate_at_every_position)
{
	for (uint64_t pos = 0; pos < RING; pos += WIRE_ALIGN) {
		size_t room, len = 8 + pos % 200;

		start(true, pos);
		room = a->conn.eng.chan.ops->call_room(&a->conn.eng.chan, len, 0);
		cr_assert_gt(room, 0);
		while (room--)
			cr_assert_eq(call(len, 0, CORE_SEND_MORE), 0);
		ring_pair_fini(&pair);
	}
}

Test(ring_call, without_credit_nothing_is_written)
{
	uint32_t largest;
	uint64_t before;

	start(true, 0);
	largest = (uint32_t)a->conn.eng.chan.resp_lim;
	cr_assert_eq(call(8, largest, 0), 0);
	before = a->conn.tx.flow.producer;
	cr_assert_eq(call(8, 0, 0), -FI_EAGAIN);
	cr_assert_eq(a->conn.eng.chan.ops->call_room(&a->conn.eng.chan, 8, 0), 0);
	cr_assert_eq(a->conn.tx.flow.producer, before);
	progress();
	reply_all();
	cr_assert_eq(call(8, 0, 0), 0);
	ring_pair_fini(&pair);
}

Test(ring_call, the_header_has_id_maximum_response_size_and_word)
{
	const uint8_t *at;
	uint32_t word[4];

	start(true, 0);
	cr_assert_eq(call(4, 21, 0), 0);
	at = a->conn.tx.base + WIRE_META_LEN;
	memcpy(word, at, sizeof(word));
	cr_assert_eq(word[0] & WIRE_ID_RESPONSE, 0);
	cr_assert_eq(word[1], 2, "21 bytes are two blocks");
	cr_assert_eq(word[2], 8);
	cr_assert_eq(word[3], OP);
	for (unsigned i = 20; i < 32; i++)
		cr_assert_eq(at[i], 0, "padding");
	ring_pair_fini(&pair);
}

static enum core_shortage shortage(size_t len, uint32_t resp_max)
{
	return a->conn.eng.chan.ops->call_shortage(&a->conn.eng.chan, len, resp_max);
}

Test(ring_call, the_shortage_of_a_refused_call_is_credit_or_space)
{
	static const struct {
		size_t len;
		uint32_t resp_max;
		enum core_shortage shortage;
	} rows[] = { { 8, 150, CORE_SHORT_CREDIT }, { 500, 0, CORE_SHORT_SPACE } };

	for (unsigned row = 0; row < 2; row++) {
		for (unsigned flags = 0; flags <= CORE_SEND_MORE; flags += CORE_SEND_MORE) {
			int ret, cnt = 0;

			start(true, 0);
			cr_assert_eq(shortage(rows[row].len, rows[row].resp_max), CORE_SHORT_NONE);
			while (!(ret = call(rows[row].len, rows[row].resp_max, flags)))
				cnt++;
			cr_assert_eq(ret, -FI_EAGAIN);
			cr_assert_gt(cnt, 0);
			cr_assert_eq(a->conn.eng.chan.shortage, rows[row].shortage, "row %u", row);
			cr_assert_eq(shortage(rows[row].len, rows[row].resp_max),
				     rows[row].shortage);
			progress();
			reply_all();
			cr_assert_eq(shortage(rows[row].len, rows[row].resp_max), CORE_SHORT_NONE);
			cr_assert_eq(call(rows[row].len, rows[row].resp_max, flags), 0);
			ring_pair_fini(&pair);
		}
	}
}

Test(ring_call, a_full_ring_behind_a_full_send_queue_is_a_shortage_of_the_queue)
{
	int ret;

	start(false, 0);
	a->dev.sq_len = 0;
	while (!(ret = call(500, 0, 0)))
		;
	cr_assert_eq(ret, -FI_EAGAIN);
	cr_assert_gt(a->conn.tx.post_cnt, 0);
	cr_assert_eq(a->conn.eng.chan.shortage, CORE_SHORT_QUEUE);
	cr_assert_eq(shortage(500, 0), CORE_SHORT_QUEUE);
	a->dev.sq_len = 1000;
	progress();
	cr_assert_eq(shortage(500, 0), CORE_SHORT_SPACE, "sent, and retained by the peer");
	reply_all();
	cr_assert_eq(shortage(500, 0), CORE_SHORT_NONE);
	ring_pair_fini(&pair);
}

Test(ring_call, a_retained_response_stays_and_keeps_its_ring_bytes)
{
	uint64_t consumer;

	start(true, 0);
	keeps = true;
	for (int i = 0; i < 3; i++)
		cr_assert_eq(call(8, 20, 0), 0);
	progress();
	while (held_cnt)
		reply(0, 20, 0);
	consumer = a->conn.rx.consumer;
	progress();
	cr_assert_eq(kept_cnt, 3);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(kept[i].data[0], 60);
	a->conn.eng.chan.ops->release(&a->conn.eng.chan, kept[1].retain);
	a->conn.eng.chan.ops->release(&a->conn.eng.chan, kept[2].retain);
	cr_assert_leq(a->conn.rx.consumer, consumer + WIRE_META_LEN,
		      "the oldest message is retained");
	a->conn.eng.chan.ops->release(&a->conn.eng.chan, kept[0].retain);
	cr_assert_eq(a->conn.rx.consumer, a->conn.rx.parsed);
	ring_pair_fini(&pair);
}

Test(ring_call, a_failed_connection_accepts_nothing)
{
	start(true, 0);
	a->conn.eng.err = -FI_EIO;
	cr_assert_eq(call(8, 20, 0), -FI_EIO);
	cr_assert_eq(a->conn.eng.chan.ops->call_room(&a->conn.eng.chan, 8, 20), 0);
	a->conn.eng.err = 0;
	ring_pair_fini(&pair);
}
