/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fast path for a small message that leaves as a batch of its own. Called through
 * core_chan_ops.
 *
 * Applies if the peer has released everything before the message, or if the message must leave at
 * once. The batch is opened, written and closed in one step, with the result of ring_tx_send_buf
 * and without its intermediate state. One comparison with ring_tx.single_room covers every
 * obstacle: an open batch, queued posts, the ring's end, space, a due grant. Only for links that
 * write into the peer's memory and have a link word.
 *
 * Tested by test/unit/ring/test_ring_single.c and test_ring_flow.c.
 */
#ifndef RING_SINGLE_H
#define RING_SINGLE_H

#include "ring/ring_tx.h"

/** Returns true if the fast path may apply. */
RING_INLINE bool ring_single_may(const struct dev_link_ops *dev, const struct ring_conn *conn)
{
	return !ring_tx_is_async(dev) && conn->tx.single_room;
}

/** Posts the batch. No post is queued: single_room is 0 otherwise. */
RING_INLINE void ring_single_post(const struct dev_link_ops *dev, struct ring_conn *conn,
				  uint64_t off, uint32_t len)
{
	struct ring_post post = { .off = off, .len = len, .imm = len / WIRE_ALIGN };

	if (UTIL_UNLIKELY(dev->write_imm(conn->link, post.off, post.len, post.imm)))
		ring_tx_post(dev, conn, post);
}

/**
 * Returns true if the peer has released everything before `start`, the producer. Reads the consumer
 * word where the link returns it at once.
 */
RING_INLINE bool ring_single_is_idle(const struct dev_link_ops *dev,
				     const struct ring_flush_cfg *cfg, struct ring_conn *conn,
				     uint64_t start)
{
	uint64_t pos;

	if (conn->tx.flow.remote_consumer == start)
		return true;
	if (!cfg->reads_consumer || dev->read_consumer(conn->link, &pos) != 1 || pos != start)
		return false;
	conn->tx.flow.remote_consumer = start;
	return true;
}

/** Returns true if a message with these flags must leave now. */
RING_INLINE bool ring_single_leaves(const struct dev_link_ops *dev,
				    const struct ring_flush_cfg *cfg, struct ring_conn *conn,
				    uint64_t start, unsigned flags)
{
	return flags ? !(flags & CORE_SEND_MORE) : ring_single_is_idle(dev, cfg, conn, start);
}

/**
 * Returns true if a batch of `move` bytes, with one message of `len` user bytes and these flags,
 * leaves at once.
 */
RING_INLINE bool ring_single_is(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				struct ring_conn *conn, uint64_t move, size_t len, unsigned flags)
{
	return len <= UTIL_COPY_SHORT && move <= conn->tx.single_room &&
	       ring_single_leaves(dev, cfg, conn, conn->tx.flow.producer, flags);
}

/** Takes `move` bytes of the ring. Returns the offset at which they begin. */
RING_INLINE uint64_t ring_single_take(struct ring_tx *tx, uint64_t move)
{
	uint64_t start = tx->flow.producer;

	tx->single_room -= move;
	tx->flow.producer = start + move;
	tx->flush_start = start + move;
	return ring_off(start, tx->len);
}

/** Writes the metadata last and posts the batch. */
RING_INLINE void ring_single_leave(const struct dev_link_ops *dev, struct ring_conn *conn,
				   uint64_t off, uint64_t move, uint64_t grant)
{
	uint64_t consumer = conn->rx.consumer;

	conn->rx.advertised = consumer;
	ring_tx_write_meta((struct wire_meta *)(conn->tx.base + off), consumer, grant, 1);
	ring_single_post(dev, conn, off, (uint32_t)move);
}

/** Implements core_chan_ops.send_buf on the fast path. Returns false if nothing was done. */
RING_INLINE bool ring_single_send(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				  struct ring_conn *conn, uint64_t packed, uint64_t ext0,
				  uint64_t ext1, const void *buf, size_t len)
{
	uint64_t ext_len = core_packed_ext_len(packed);
	uint64_t move = WIRE_META_LEN + wire_long_span(ext_len + len);
	uint64_t off;

	if (!ring_single_is(dev, cfg, conn, move, len, core_packed_flags(packed)))
		return false;
	off = ring_single_take(&conn->tx, move);
	util_copy_short(ring_tx_write_head_at(conn->tx.base + off + WIRE_META_LEN,
					      core_packed_op(packed), ext0, ext1, ext_len, len),
			buf, len);
	ring_single_leave(dev, conn, off, move, 0);
	return true;
}

#endif
