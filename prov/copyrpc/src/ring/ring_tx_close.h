/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Closing and posting of batches (docs/ring-protocol.md, sections 4 and 6). Called by the send side
 * and by progress.
 *
 * Closing writes the metadata: consumer position, grant, number of messages. Devices that move the
 * bytes carry all of it in the immediate where possible. Posts for which the device has no space
 * are queued in order.
 *
 * Functions of ring_tx_*.h take the device's ops as a compile-time constant and are inlined: one
 * loop per device and no indirect call. They never block or allocate, and never touch bytes that
 * the peer has not released.
 *
 * Tested by test/unit/ring/test_ring_tx_close.c.
 */
#ifndef RING_TX_CLOSE_H
#define RING_TX_CLOSE_H

#include <string.h>

#include "ring/ring_conn.h"
#include "ring/ring_ack.h"

#define RING_INLINE static inline __attribute__((always_inline))

/** Returns true if the device moves the bytes, so that messages arrive after the post. Constant. */
RING_INLINE bool ring_tx_is_async(const struct dev_link_ops *dev)
{
	return dev->write_imm_ack;
}

/** Returns the closed bytes that the device has not accepted. */
static inline uint64_t ring_tx_queued_len(const struct ring_tx *tx)
{
	uint64_t len = 0;
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
	uint64_t advance = pos - tx->flow.remote_consumer;
	uint64_t sent = tx->flush_start - tx->flow.remote_consumer;

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
		tx->append_idle_end = 0;
	return true;
}

/** Posts a closed batch or marker, behind the queued ones. */
RING_INLINE void ring_tx_post(const struct dev_link_ops *dev, struct ring_conn *conn,
			      struct ring_post post)
{
	struct ring_tx *tx = &conn->tx;

	if (UTIL_LIKELY(!tx->post_cnt) &&
	    UTIL_LIKELY(!dev->write_imm(conn->link, post.off, post.len, post.imm)))
		return;
	assert(tx->post_cnt < RING_POSTS_MAX);
	tx->posts[tx->post_cnt++] = post;
	ring_conn_mark_dirty(conn);
}

/** Posts the queued batches and markers as far as the device has space. */
RING_INLINE void ring_tx_repost(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	uint32_t done = 0;

	while (done < tx->post_cnt && !dev->write_imm(conn->link, tx->posts[done].off,
						      tx->posts[done].len, tx->posts[done].imm))
		done++;
	tx->post_cnt -= done;
	memmove(tx->posts, tx->posts + done, tx->post_cnt * sizeof(tx->posts[0]));
}

/** Writes the metadata except the link word. */
RING_INLINE void ring_tx_write_meta(struct wire_meta *meta, uint64_t consumer, uint64_t grant,
				    uint32_t count)
{
	meta->consumer_pos = consumer;
	meta->credit_grant = grant;
	meta->message_count = count;
	meta->reserved = 0;
}

/** Writes metadata at `pos`: consumer position, grant, number of messages. */
RING_INLINE void ring_tx_meta(struct ring_conn *conn, uint64_t pos, uint32_t count)
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

/** Writes the open batch's metadata, or encodes it in the immediate. Returns the post. */
RING_INLINE struct ring_post ring_tx_seal(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	uint32_t advance = (uint32_t)(conn->rx.consumer - conn->rx.advertised) / WIRE_ALIGN;
	uint32_t len = (uint32_t)(tx->flow.producer - tx->flush_start);
	struct ring_post post = { .off = ring_off(tx->flush_start, tx->len),
				  .len = len,
				  .imm = len / WIRE_ALIGN };

	if (ring_tx_is_async(dev))
		post.len = ring_tx_sent_len(tx, post.off, len, tx->msg_cnt);
	if (!ring_tx_is_async(dev) || !ring_tx_is_short(conn)) {
		ring_tx_meta(conn, tx->flush_start, tx->msg_cnt);
		return post;
	}
	conn->rx.advertised = conn->rx.consumer;
	post.off += WIRE_META_LEN;
	post.len -= WIRE_META_LEN;
	post.imm = wire_imm_short(post.imm, advance);
	return post;
}

/** Posts the batch that ends at flush_start with an ack. Returns false if it was not posted. */
RING_INLINE bool ring_tx_post_with_ack(const struct dev_link_ops *dev, struct ring_conn *conn,
				       struct ring_post post)
{
	struct ring_ack *ack = &conn->ack;
	struct ring_tx *tx = &conn->tx;

	if (tx->post_cnt || ack->ack_tail - ack->ack_head == RING_ACKS_MAX ||
	    dev->write_imm_ack(conn->link, post.off, post.len, post.imm))
		return false;
	ack->ack_mark[ack->ack_tail++ & (RING_ACKS_MAX - 1)] = tx->flush_start;
	return true;
}

/**
 * Posts the batch that ends at flush_start. Requests an ack or watches the batch if its arrival is
 * awaited.
 */
RING_INLINE void ring_tx_post_batch(const struct dev_link_ops *dev, struct ring_conn *conn,
				    struct ring_post post, uint32_t msg_cnt)
{
	if (ring_tx_is_async(dev) && conn->ack.awaited) {
		conn->ack.awaited = false;
		/* For a deferred batch core has already set `awaited`. */
		if (!conn->ack.last_is_new && ring_ack_is_idle(conn)) {
			ring_tx_post(dev, conn, post);
			return;
		}
		if (ring_ack_should_request(&conn->ack, msg_cnt) &&
		    ring_tx_post_with_ack(dev, conn, post))
			return;
		ring_ack_watch(conn);
	}
	ring_tx_post(dev, conn, post);
}

/** Closes the open batch and posts it. */
RING_INLINE void ring_tx_close(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	struct ring_post post = ring_tx_seal(dev, conn);
	uint32_t msg_cnt = tx->msg_cnt;

	tx->open = false;
	ring_conn_disable_append(conn);
	tx->msg_cnt = 0;
	tx->flush_start = tx->flow.producer;
	ring_tx_post_batch(dev, conn, post, msg_cnt);
}

/**
 * Posts a marker at the producer and moves to the next lap. At least 32 bytes of this lap remain.
 */
RING_INLINE void ring_tx_wrap(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	uint64_t start = tx->flow.producer;
	uint64_t skip = ring_skip(start, tx->len);
	struct ring_post post = { .off = ring_off(start, tx->len),
				  .len = WIRE_META_LEN,
				  .imm = (uint32_t)(skip / WIRE_ALIGN) };

	tx->flow.producer += skip;
	tx->single_room = 0;
	ring_tx_meta(conn, start, WIRE_COUNT_WRAP);
	tx->flush_start = tx->flow.producer;
	ring_tx_post(dev, conn, post);
}

#endif
