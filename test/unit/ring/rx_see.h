/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One end with a receive ring that the test writes like a lying peer, for the tests of ring_rx.h.
 *
 * The ring lies between two inaccessible pages. A refused batch fails the connection with -FI_EIO,
 * and nothing behind the fault is delivered. Everything is static: each including file has its own
 * copy.
 */
#ifndef TEST_RING_RX_SEE_H
#define TEST_RING_RX_SEE_H

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_rx.h"
#include "support/ring_pair.h"
#include "wire/wire_ring.h"

#define C 4096u

static struct ring_pair pair;
static struct ring_conn *conn; /* End 0 */
static uint8_t *ring;          /* Ring that end 0 reads */

/* Recorded up-calls, and the results of the next ones. */
static unsigned msg_cnt, call_cnt, reply_cnt;
static uint32_t seen_op, seen_len;
static const uint8_t *seen_data;
static core_retain_t seen_hold;
static struct core_call_ref seen_ref;
static enum core_rx_verdict verdict;
static void (*in_upcall)(void);

static inline enum core_rx_verdict see(const uint8_t *data, uint32_t len, core_retain_t retain)
{
	uint32_t i, sum = 0;

	for (i = 0; i < len; i++)
		sum += data[i];
	cr_assert(sum < UINT32_MAX, "every byte can be read");
	seen_data = data;
	seen_len = len;
	seen_hold = retain;
	if (in_upcall)
		in_upcall();
	return verdict;
}

static inline enum core_rx_verdict see_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
					   uint32_t len, core_retain_t retain)
{
	msg_cnt++;
	seen_op = op;
	return see(data, len, retain);
}

static inline enum core_rx_verdict see_call(struct core_chan *chan, struct core_call_ref ref,
					    const uint8_t *data, uint32_t len, core_retain_t retain)
{
	call_cnt++;
	seen_ref = ref;
	return see(data, len, retain);
}

static inline void see_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
			     uint32_t len)
{
	cr_assert_eq(status, 0);
	reply_cnt++;
	*(unsigned *)context += 1;
	see(data, len, 0);
}

static const struct core_upcalls see_upcalls = {
	.on_msg = see_msg,
	.on_call = see_call,
	.on_reply = see_reply,
};

static inline void start_at(uint64_t pos)
{
	const struct ring_pair_cfg cfg = {
		.direct = true, .rx_len = { C, C }, .start = { pos, 0 }, .seed = 1
	};

	ring_pair_init(&pair, &cfg, &see_upcalls);
	conn = &pair.end[0].conn;
	ring = pair.end[0].link->rx_base;
}

static inline void start(void)
{
	start_at(0);
}

/** Starts over a link that moves the bytes. */
static inline void start_late(uint64_t pos)
{
	const struct ring_pair_cfg cfg = {
		.ack = true, .rx_len = { C, C }, .start = { pos, 0 }, .seed = 1
	};

	ring_pair_fini(&pair);
	ring_pair_init(&pair, &cfg, &see_upcalls);
	conn = &pair.end[0].conn;
	ring = pair.end[0].link->rx_base;
}

static inline void stop(void)
{
	ring_pair_fini(&pair);
}

/** Writes metadata at the start of the next batch. */
static inline void put_meta(uint64_t consumer, uint64_t grant, uint32_t count)
{
	struct wire_meta meta = { .consumer_pos = consumer,
				  .credit_grant = grant,
				  .message_count = count };

	memcpy(ring + ring_off(conn->rx.producer, C), &meta, sizeof(meta));
}

/** Writes a message header `at` bytes behind the start of the next batch. */
static inline void put_hdr(uint32_t at, uint32_t id, uint32_t piggyback, uint32_t len)
{
	struct wire_hdr hdr = { .call_id = id, .piggyback = piggyback, .len = len };

	memcpy(ring + ring_off(conn->rx.producer, C) + at, &hdr, sizeof(hdr));
}

static inline void accepted(uint32_t bytes)
{
	uint64_t before = conn->rx.producer;

	ring_rx_batch(conn->link->ops, conn, bytes / WIRE_ALIGN);
	cr_expect_eq(conn->eng.err, 0);
	cr_expect_eq(conn->rx.producer, before + bytes);
	cr_expect_eq(conn->rx.parsed, before + bytes);
}

static inline void refused_imm(uint32_t imm)
{
	ring_rx_batch(conn->link->ops, conn, imm);
	cr_expect_eq(conn->eng.err, -FI_EIO);
	cr_expect_not(util_list_is_empty(&pair.end[0].engine.failed), "the failure is reported");
}

static inline void refused(uint32_t bytes)
{
	refused_imm(bytes / WIRE_ALIGN);
}

static unsigned reply_context; /* Context of a call */

/** Makes a call. Returns the id that its response must have. */
static inline uint32_t make_call(void)
{
	struct iovec iov = { .iov_base = "", .iov_len = 0 };
	struct core_frame frame = ring_frame(1, &iov);
	uint64_t pos = conn->tx.flow.producer + WIRE_META_LEN;
	struct wire_hdr hdr;

	cr_assert_eq(conn->eng.chan.ops->call(&conn->eng.chan, &frame, 20, &reply_context, 0), 0);
	memcpy(&hdr, conn->tx.base + ring_off(pos, C), sizeof(hdr));
	return hdr.call_id;
}

#endif
