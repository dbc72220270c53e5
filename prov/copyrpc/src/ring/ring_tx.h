/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Send side of one ring connection: encoding of messages, batches, and space on the ring
 * (docs/ring-protocol.md, sections 3 to 6). Called by ring_send.h, ring_call.h, ring_flush.h and
 * the receive side.
 *
 * A message is admitted, then reserved, then written into the open batch. Admission compares the
 * bytes that it moves, including those skipped at the end of a lap, with the bytes that the peer
 * has released; if there are too few, it reads the consumer word. Reservation provides an open
 * batch with that many contiguous bytes, behind a marker if needed.
 *
 * Closing writes the metadata: consumer position, grant, number of messages. Devices that move the
 * bytes carry all of it in the immediate where possible. Posts for which the device has no space
 * are queued in order.
 *
 * All functions take the device's ops as a compile-time constant and are inlined: one copy per
 * device and no indirect call. They never block or allocate, and never touch bytes that the peer
 * has not released.
 *
 * Tested by test/unit/ring/test_ring_tx_{write,close,reserve}.c.
 */
#ifndef RING_RING_TX_H
#define RING_RING_TX_H

#include <assert.h>
#include <string.h>

#include "core/core_chan.h"
#include "ring/ring_ack.h"
#include "ring/ring_conn.h"
#include "ring/ring_takeover.h"
#include "util/copy.h"
#include "util/probe.h"
#include "util/stats.h"

/*
 * Bytes written in small pieces must not be read back in larger ones: the load would stall until
 * those stores have left the store buffer, on every message. The header is therefore written field
 * by field, and the usual extension (tag, 32 bits of data) as the two words that core wrote.
 */
static inline void ring_tx_write_hdr(uint8_t *dst, struct wire_hdr hdr)
{
	memcpy(dst + offsetof(struct wire_hdr, call_id), &hdr.call_id, sizeof(hdr.call_id));
	memcpy(dst + offsetof(struct wire_hdr, piggyback), &hdr.piggyback, sizeof(hdr.piggyback));
	memcpy(dst + offsetof(struct wire_hdr, len), &hdr.len, sizeof(hdr.len));
}

static inline void ring_tx_write_ext(uint8_t *dst, const struct core_frame *frame)
{
	if (UTIL_UNLIKELY(frame->ext_len != 12)) {
		util_copy(dst, frame->ext, frame->ext_len);
		return;
	}
	memcpy(dst, &frame->ext[0], 8);
	memcpy(dst + 8, &frame->ext[1], 4);
}

/** Writes header, extension and payload at the producer. The batch is open. */
UTIL_INLINE void ring_tx_write(struct ring_tx *tx, struct wire_hdr hdr, uint32_t span,
			       const struct core_frame *frame)
{
	uint8_t *dst = tx->base + ring_off(tx->flow.producer, tx->len);

	ring_tx_write_hdr(dst, hdr);
	dst += WIRE_HDR_LEN;
	ring_tx_write_ext(dst, frame);
	dst += frame->ext_len;
	if (UTIL_LIKELY(frame->len && frame->iov_cnt == 1)) /* Without bytes iov may be NULL */
		util_copy(dst, (const uint8_t *)frame->iov[0].iov_base + frame->iov_off,
			  frame->len);
	else if (frame->len)
		util_iov_gather(dst, frame->iov, frame->iov_cnt, frame->iov_off, frame->len);
	tx->flow.producer += span;
	tx->msg_cnt++;
}

/** Writes a response at the producer. The batch is open. */
UTIL_INLINE void ring_tx_write_reply(struct ring_tx *tx, uint64_t hdr, const struct iovec *iov,
				     size_t iov_cnt, uint32_t len, uint32_t span)
{
	uint8_t *dst = tx->base + ring_off(tx->flow.producer, tx->len);

	memcpy(dst, &hdr, sizeof(hdr));
	memcpy(dst + 8, &len, sizeof(len));
	if (UTIL_LIKELY(iov_cnt == 1))
		util_copy(dst + WIRE_HDR_LEN, iov[0].iov_base, len);
	else
		util_iov_gather(dst + WIRE_HDR_LEN, iov, iov_cnt, 0, len);
	tx->flow.producer += span;
	tx->msg_cnt++;
}

/**
 * Writes the header of a message of one buffer, and its extension as two words. Returns the address
 * for the buffer's bytes. hdr: call_id, and the maximum response size in its upper half.
 */
UTIL_INLINE uint8_t *ring_tx_write_head_at(uint8_t *dst, uint64_t hdr, uint64_t ext0, uint64_t ext1,
					   uint64_t ext_len, size_t len)
{
	uint32_t hdr_len = (uint32_t)(ext_len + len);

	memcpy(dst, &hdr, sizeof(hdr));
	memcpy(dst + 8, &hdr_len, sizeof(hdr_len));
	memcpy(dst + WIRE_HDR_LEN, &ext0, sizeof(ext0));     /* Both within the first 32 bytes, */
	memcpy(dst + WIRE_HDR_LEN + 8, &ext1, sizeof(ext1)); /* and 0 beyond ext_len */
	return dst + WIRE_HDR_LEN + ext_len;
}

/** Writes header and extension at the producer, like ring_tx_write_head_at. */
UTIL_INLINE uint8_t *ring_tx_write_head(const struct ring_tx *tx, uint64_t hdr, uint64_t ext0,
					uint64_t ext1, uint64_t ext_len, size_t len)
{
	return ring_tx_write_head_at(tx->base + ring_off(tx->flow.producer, tx->len), hdr, ext0,
				     ext1, ext_len, len);
}

/**
 * Writes a message of one buffer at the producer. The batch is open. hdr: see
 * ring_tx_write_head_at.
 */
UTIL_INLINE void ring_tx_write_buf(struct ring_tx *tx, uint64_t hdr, uint64_t ext0, uint64_t ext1,
				   uint64_t ext_len, const void *buf, size_t len, uint64_t span)
{
	util_copy(ring_tx_write_head(tx, hdr, ext0, ext1, ext_len, len), buf, len);
	tx->flow.producer += span;
	tx->msg_cnt++;
}

/**
 * Copies as the last step of a function that returns `ret`. The tail call spares the function a
 * frame.
 */
static __attribute__((noinline, unused)) int ring_tx_copy_long(void *dst, const void *src,
							       size_t len, int ret)
{
	memcpy(dst, src, len);
	return ret;
}

/** Returns true if the device moves the bytes, so that messages arrive after the post. Constant. */
UTIL_INLINE bool ring_tx_is_async(const struct dev_link_ops *dev)
{
	return dev->write_imm_ack;
}

static_assert(WIRE_IMM_SHORT == DEV_IMM_SHORT && WIRE_IMM_UNITS_MAX == 0xffff &&
		      WIRE_ALIGN == DEV_IMM_UNIT,
	      "equal immediates of engine and device");

/** Returns the closed bytes that the device has not accepted. */
static inline uint64_t ring_tx_queued_len(const struct ring_tx *tx)
{
	uint64_t len = tx->replay_end - tx->replay;
	uint32_t i;

	for (i = 0; i < tx->post_cnt; i++)
		len += (uint64_t)wire_imm_units(tx->posts[i].imm) * WIRE_ALIGN;
	return len;
}

/**
 * Records that the peer has released everything before `pos`. Returns false if that is impossible.
 */
static inline bool ring_tx_released(struct ring_tx *tx, uint64_t pos)
{
	uint64_t advance = pos - tx->flow.remote_consumer, sent;

	/* An end that only receives reads no more of its send side, which may be in no cache. */
	if (!advance)
		return true;
	sent = tx->flush_start - tx->flow.remote_consumer;
	if (UTIL_UNLIKELY(tx->post_cnt))
		sent -= ring_tx_queued_len(tx);
	if (UTIL_UNLIKELY(advance > sent))
		return (int64_t)advance <
		       /* A stale position is ignored: a READ and a batch may overtake each other */
		       0;
	if (UTIL_UNLIKELY(pos & (WIRE_ALIGN - 1)))
		return false;
	tx->flow.remote_consumer = pos;
	if (pos == tx->flush_start)
		tx->fast.append_idle_end = 0;
	return true;
}

/** Posts a closed batch or marker, behind the queued ones. */
UTIL_INLINE void ring_tx_post(const struct dev_link_ops *dev, struct ring_conn *conn,
			      struct ring_post post)
{
	struct ring_tx *tx = &conn->tx;

	if (UTIL_LIKELY(!tx->post_cnt) &&
	    UTIL_LIKELY(!dev->write_imm(conn->link, post.off, post.len, post.imm)))
		return;
	assert(tx->post_cnt < RING_POSTS_MAX);
	conn->eng.chan.stats->no_queue++;
	UTIL_PROBE2(wait, conn->eng.chan.stats, UTIL_PROBE_QUEUE);
	tx->posts[tx->post_cnt++] = post;
	ring_conn_mark_dirty(conn);
}

/** Posts the batch that ends at flush_start with an ack. Returns false if it was not posted. */
UTIL_INLINE bool ring_tx_post_with_ack(const struct dev_link_ops *dev, struct ring_conn *conn,
				       struct ring_post post)
{
	struct ring_ack *ack = &conn->ack;
	struct ring_tx *tx = &conn->tx;

	if (ack->ack_tail - ack->ack_head == RING_ACKS_MAX ||
	    dev->write_imm_ack(conn->link, post.off, post.len, post.imm))
		return false;
	ack->ack_mark[ack->ack_tail++ & (RING_ACKS_MAX - 1)] = tx->flush_start;
	return true;
}

/**
 * Posts a queued batch or marker. The last one has an ack if its arrival is watched and acks are
 * requested: for lack of room it was queued without. Returns false if it was not posted.
 */
UTIL_INLINE bool ring_tx_post_queued(const struct dev_link_ops *dev, struct ring_conn *conn,
				     struct ring_post post, bool is_last)
{
	struct ring_ack *ack = &conn->ack;
	struct ring_tx *tx = &conn->tx;

	if (!ring_tx_is_async(dev) || !is_last || !ack->requests_acks ||
	    ack->watched != tx->flush_start || tx->replay != tx->replay_end)
		return !dev->write_imm(conn->link, post.off, post.len, post.imm);
	if (!ring_tx_post_with_ack(dev, conn, post))
		return false;
	ack->watched = ring_ack_arrived(tx);
	return true;
}

/** Posts the queued batches and markers as far as the device has space. */
UTIL_INLINE void ring_tx_repost(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	uint32_t done = 0;

	while (done < tx->post_cnt &&
	       ring_tx_post_queued(dev, conn, tx->posts[done], done + 1 == tx->post_cnt))
		if (tx->replay == tx->replay_end || !ring_takeover_next(conn, &tx->posts[done]))
			done++;
	tx->post_cnt -= done;
	memmove(tx->posts, tx->posts + done, tx->post_cnt * sizeof(tx->posts[0]));
}

/** Writes the metadata except the link word. */
UTIL_INLINE void ring_tx_write_meta(struct wire_meta *meta, uint64_t consumer, uint64_t grant,
				    uint32_t count)
{
	meta->consumer_pos = consumer;
	meta->credit_grant = grant;
	meta->message_count = count;
	meta->reserved = 0;
}

/** Writes metadata at `pos`: consumer position, grant, number of messages. */
UTIL_INLINE void ring_tx_meta(struct ring_conn *conn, uint64_t pos, uint32_t count)
{
	struct ring_tx *tx = &conn->tx;
	struct wire_meta *meta = (struct wire_meta *)(tx->base + ring_off(pos, tx->len));
	uint64_t grant = 0;

	if (tx->flow.granted != tx->flow.grant_max)
		grant = ring_flow_grantable(&tx->flow);
	ring_tx_write_meta(meta, conn->rx.consumer, grant, count);
	if (!conn->link->inband_len)
		meta->link_word = 0;
	conn->rx.advertised = conn->rx.consumer;
	tx->flow.granted += grant;
}

/** Returns the bytes of a closed batch to transmit: without the padding behind a single message. */
static inline uint32_t ring_tx_sent_len(const struct ring_tx *tx, uint64_t off, uint32_t len,
					uint32_t msg_cnt)
{
	uint32_t body;

	if (msg_cnt != 1)
		return len;
	memcpy(&body, tx->base + off + WIRE_META_LEN + offsetof(struct wire_hdr, len),
	       sizeof(body));
	return WIRE_META_LEN + WIRE_HDR_LEN + body;
}

/** Returns true if a short immediate can replace the metadata of the open batch, closed now. */
static inline bool ring_tx_is_short(const struct ring_conn *conn)
{
	const struct ring_tx *tx = &conn->tx;

	return tx->msg_cnt && tx->flow.granted == tx->flow.grant_max &&
	       conn->rx.consumer - conn->rx.advertised <= WIRE_IMM_ADVANCE_MAX * WIRE_ALIGN &&
	       tx->flow.producer - tx->flush_start <= WIRE_IMM_UNITS_MAX * WIRE_ALIGN;
}

/**
 * Writes the metadata of the open batch, `len` bytes long, or encodes it in the immediate. Returns
 * the post.
 */
UTIL_INLINE struct ring_post ring_tx_seal(const struct dev_link_ops *dev, struct ring_conn *conn,
					  uint32_t len)
{
	struct ring_tx *tx = &conn->tx;
	uint32_t advance = (uint32_t)(conn->rx.consumer - conn->rx.advertised) / WIRE_ALIGN;
	struct ring_post post = { .off = ring_off(tx->flush_start, tx->len),
				  .len = len,
				  .imm = len / WIRE_ALIGN };

	if (ring_tx_is_async(dev))
		post.len = ring_tx_sent_len(tx, post.off, len, tx->msg_cnt);
	if (!ring_tx_is_async(dev) || !ring_tx_is_short(conn)) {
		ring_tx_meta(conn, tx->flush_start, tx->msg_cnt);
		return post;
	}
	if (UTIL_UNLIKELY(tx->keeps_heads))
		ring_tx_meta(conn, tx->flush_start, tx->msg_cnt);
	conn->rx.advertised = conn->rx.consumer;
	post.off += WIRE_META_LEN;
	post.len -= WIRE_META_LEN;
	post.imm = wire_imm_short(post.imm, advance);
	return post;
}

/**
 * Posts the batch that ends at flush_start. Requests an ack or watches the batch if its arrival is
 * awaited.
 */
UTIL_INLINE void ring_tx_post_batch(const struct dev_link_ops *dev, struct ring_conn *conn,
				    struct ring_post post, uint32_t msg_cnt)
{
	if (ring_tx_is_async(dev) && conn->ack.awaited) {
		conn->ack.awaited = false;
		/* For a deferred batch core has already set `awaited`. */
		if (!conn->ack.last_is_new && ring_ack_is_idle(conn)) {
			ring_tx_post(dev, conn, post);
			return;
		}
		if (ring_ack_should_request(&conn->ack, msg_cnt) && !conn->tx.post_cnt &&
		    ring_tx_post_with_ack(dev, conn, post))
			return;
		ring_ack_watch(conn);
	}
	ring_tx_post(dev, conn, post);
}

/** Returns the length of the open batch. */
static inline uint32_t ring_tx_batch_len(const struct ring_tx *tx)
{
	return (uint32_t)(tx->flow.producer - tx->flush_start);
}

/** Closes a batch of `len` bytes, counts and posts it. */
UTIL_INLINE void ring_tx_close_len(const struct dev_link_ops *dev, struct ring_conn *conn,
				   uint32_t len, bool credit_only)
{
	struct ring_tx *tx = &conn->tx;
	struct ring_post post = ring_tx_seal(dev, conn, len);
	uint32_t msg_cnt = tx->msg_cnt;

	tx->open = false;
	ring_conn_disable_append(conn);
	tx->msg_cnt = 0;
	tx->flush_start = tx->flow.producer;
	if (credit_only)
		util_stats_credit(conn->eng.chan.stats, len);
	else
		util_stats_batch(conn->eng.chan.stats, msg_cnt, len);
	ring_tx_post_batch(dev, conn, post, msg_cnt);
}

/** Closes the open batch, which has messages, and posts it. */
UTIL_INLINE void ring_tx_close(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	ring_tx_close_len(dev, conn, ring_tx_batch_len(&conn->tx), false);
}

/**
 * Posts a marker at the producer and moves to the next lap. At least 32 bytes of this lap remain.
 */
UTIL_INLINE void ring_tx_wrap(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	uint64_t start = tx->flow.producer;
	uint64_t skip = ring_skip(start, tx->len);
	struct ring_post post = { .off = ring_off(start, tx->len),
				  .len = WIRE_META_LEN,
				  .imm = (uint32_t)(skip / WIRE_ALIGN) };

	tx->flow.producer += skip;
	tx->fast.single_room = 0;
	ring_tx_meta(conn, start, WIRE_COUNT_WRAP);
	tx->flush_start = tx->flow.producer;
	ring_tx_post(dev, conn, post);
}

/** Opens a batch at the producer. The caller has checked that it fits before the end. */
UTIL_INLINE void ring_tx_open(const struct dev_link_ops *dev, struct ring_tx *tx)
{
	tx->flush_start = tx->flow.producer;
	tx->flow.producer += WIRE_META_LEN;
	tx->msg_cnt = 0;
	tx->open = true;
	if (!ring_tx_is_async(dev))
		tx->fast.single_room = 0;
}

/** Returns the bytes that a message of `span` moves: metadata, skip, itself. */
static inline uint64_t ring_tx_move(const struct ring_tx *tx, uint64_t span)
{
	if (tx->open && !ring_must_wrap(tx->flow.producer, span, tx->len))
		return span;
	return ring_move(tx->flow.producer, WIRE_META_LEN + span, tx->len);
}

/** Provides an open batch with `span` contiguous bytes at the producer; wraps if needed. */
UTIL_INLINE void ring_tx_reserve_cold(const struct dev_link_ops *dev, struct ring_conn *conn,
				      uint64_t span)
{
	struct ring_tx *tx = &conn->tx;

	if (tx->open && !ring_must_wrap(tx->flow.producer, span, tx->len))
		return;
	if (tx->open)
		ring_tx_close(dev, conn);
	if (ring_off(tx->flow.producer, tx->len) &&
	    ring_must_wrap(tx->flow.producer, WIRE_META_LEN + span, tx->len))
		ring_tx_wrap(dev, conn);
	ring_tx_open(dev, tx);
}

UTIL_INLINE void ring_tx_reserve(const struct dev_link_ops *dev, struct ring_conn *conn,
				 uint64_t span)
{
	struct ring_tx *tx = &conn->tx;
	uint64_t need = tx->open ? span : WIRE_META_LEN + span;

	if (UTIL_UNLIKELY(ring_must_wrap(tx->flow.producer, need, tx->len)))
		ring_tx_reserve_cold(dev, conn, span);
	else if (!tx->open)
		ring_tx_open(dev, tx);
}

/**
 * Starts a READ of the peer's consumer word. Returns 1 and *pos, 0 if DEV_EV_READ follows, or
 * -FI_EAGAIN.
 */
UTIL_INLINE int ring_tx_read_start(const struct dev_link_ops *dev, struct ring_conn *conn,
				   uint64_t *pos)
{
	int ret = dev->read_consumer(conn->link, pos);

	if (ret == 0) {
		conn->read = RING_READ_POSTED;
		conn->read_base = conn->tx.flow.remote_consumer;
		conn->read_mark = conn->tx.flush_start - ring_tx_queued_len(&conn->tx);
	}
	return ret;
}

/** Reads the consumer word. Returns true if the position advanced. */
UTIL_INLINE bool ring_tx_read_consumer(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	uint64_t before = conn->tx.flow.remote_consumer;
	uint64_t pos = 0;

	if (UTIL_UNLIKELY(conn->read != RING_READ_IDLE) && !ring_conn_may_read_cold(conn))
		return false;
	if (ring_tx_read_start(dev, conn, &pos) != 1)
		return false;
	if (!ring_tx_released(&conn->tx, pos))
		ring_conn_fail_cold(conn, -FI_EIO, "consumer word beyond what was sent");
	return conn->tx.flow.remote_consumer != before;
}

/**
 * Returns true if a message (not a response) of `span` bytes fits. Reads the consumer word if not.
 */
UTIL_INLINE bool ring_tx_admit(const struct dev_link_ops *dev, struct ring_conn *conn,
			       uint64_t span)
{
	struct ring_tx *tx = &conn->tx;

	if (UTIL_LIKELY(ring_flow_admits(&tx->flow, ring_tx_move(tx, span))))
		return true;
	return ring_tx_read_consumer(dev, conn) &&
	       ring_flow_admits(&tx->flow, ring_tx_move(tx, span));
}

#endif
