/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pair of ends with recording up-calls, for the tests of ring_tx.h.
 *
 * Everything is static: each including file has its own copy.
 */
#ifndef TEST_RING_TX_SEE_H
#define TEST_RING_TX_SEE_H

#include <criterion/criterion.h>
#include <string.h>

#include "support/ring_pair.h"
#include "wire/wire_ring.h"

static struct ring_pair pair;
static struct ring_end *a, *b;

/* Last recorded up-calls. */
static unsigned msg_cnt, call_cnt, reply_cnt;
static uint8_t seen[8192];
static uint32_t seen_len, seen_op;
static struct core_call_ref seen_ref;
static void *seen_context;

static inline void see(const uint8_t *data, uint32_t len)
{
	memcpy(seen, data, len);
	seen_len = len;
}

static inline enum core_rx_verdict see_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
					   uint32_t len, core_retain_t retain)
{
	see(data, len);
	seen_op = op;
	msg_cnt++;
	return CORE_RX_DONE;
}

static inline enum core_rx_verdict see_call(struct core_chan *chan, struct core_call_ref ref,
					    const uint8_t *data, uint32_t len, core_retain_t retain)
{
	see(data, len);
	seen_ref = ref;
	call_cnt++;
	return CORE_RX_DONE;
}

static inline void see_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
			     uint32_t len)
{
	cr_assert_eq(status, 0);
	see(data, len);
	seen_context = context;
	reply_cnt++;
}

static inline void see_arrived(struct core_chan *chan, uint64_t pos)
{
}

static inline void no_down(struct core_chan *chan, int err)
{
	cr_assert_fail("the connection went down: %d", err);
}

static const struct core_upcalls see_upcalls = {
	.on_msg = see_msg,
	.on_call = see_call,
	.on_reply = see_reply,
	.on_acked = see_arrived,
	.on_down = no_down,
};

static inline void start_with(bool direct, uint64_t len, const struct core_upcalls *up)
{
	const struct ring_pair_cfg cfg = { .direct = direct, .rx_len = { len, len }, .seed = 7 };

	ring_pair_flush = (struct ring_flush_cfg){ .best_len = 4096, .cheap_signal = true };
	ring_pair_init(&pair, &cfg, up);
	a = &pair.end[0];
	b = &pair.end[1];
	a->dev.eager = b->dev.eager = true;
	a->dev.sq_len = b->dev.sq_len = 1000;
}

static inline void start(bool direct, uint64_t len)
{
	start_with(direct, len, &see_upcalls);
}

/** Starts over a link that moves the bytes, with its own policy. */
static inline void start_late(uint64_t len)
{
	const struct ring_pair_cfg cfg = { .ack = true, .rx_len = { len, len }, .seed = 7 };

	ring_pair_flush = (struct ring_flush_cfg){ .best_len = 4096 };
	ring_pair_init(&pair, &cfg, &see_upcalls);
	a = &pair.end[0];
	b = &pair.end[1];
	a->dev.sq_len = b->dev.sq_len = 1000;
}

static inline int send_len(struct ring_end *end, size_t len, unsigned flags)
{
	static uint8_t bytes[8192];
	struct iovec iov = { .iov_base = bytes, .iov_len = len };
	struct core_frame frame = ring_frame(5, &iov);
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = (uint8_t)(i + len);
	return end->conn.eng.chan.ops->send(&end->conn.eng.chan, &frame, flags);
}

static inline int call_len(struct ring_end *end, size_t len, uint32_t resp_max, void *context)
{
	static uint8_t bytes[8192];
	struct iovec iov = { .iov_base = bytes, .iov_len = len };
	struct core_frame frame = ring_frame(0x11223344, &iov);

	return end->conn.eng.chan.ops->call(&end->conn.eng.chan, &frame, resp_max, context, 0);
}

static inline int reply_len(struct ring_end *end, const void *buf, size_t len)
{
	return core_chan_reply(&end->conn.eng.chan, seen_ref, buf, len);
}

static inline void flush(struct ring_end *end)
{
	end->conn.eng.chan.ops->flush(&end->conn.eng.chan);
}

static inline struct wire_meta meta_at(const struct ring_end *end, uint64_t pos)
{
	struct wire_meta meta;

	memcpy(&meta, end->conn.tx.base + ring_off(pos, end->conn.tx.len), sizeof(meta));
	return meta;
}

/** Returns the n-th write in flight. */
static inline struct fake_write on_wire(const struct ring_end *end, uint32_t n)
{
	struct fake_write w;

	fake_link_peek(end->link, n, &w);
	return w;
}

/** Moves end a's ring to `pos`, all released. */
static inline void move_to(uint64_t pos)
{
	struct ring_tx *tx = &a->conn.tx;
	struct ring_rx *rx = &b->conn.rx;

	tx->flow.producer = tx->flow.remote_consumer = tx->flush_start = pos;
	rx->producer = rx->parsed = rx->consumer = rx->advertised = pos;
	fake_link_start(a->link, pos, 0);
	fake_link_start(b->link, 0, pos);
}

#endif
