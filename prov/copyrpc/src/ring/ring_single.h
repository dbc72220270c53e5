/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a small message take that leaves alone?
 *
 * The peer has released all before it, or the message must leave at once whatever it did: then it is opened,
 * written and closed in one step, as ring_tx_send_buf would, without the state in between. Everything
 * that could be in the way (an open batch, writes that wait, the ring's end, room, a grant that is due) is
 * one comparison, with ring_tx.single_room. For links that write into the peer's memory and have a link word.
 *
 * Shown by test/unit/ring/test_ring_single.c and test_ring_flow.c.
 */
#ifndef RING_SINGLE_H
#define RING_SINGLE_H

#include "ring/ring_tx.h"

/** Is it worth to ask? */
RING_INLINE bool ring_single_may(const struct dev_link_ops *dev, const struct ring_conn *conn)
{
	return !ring_tx_is_async(dev) && conn->tx.single_room;
}

/** Nothing waits for the device: it has been asked for nothing but what it took. */
RING_INLINE void ring_single_post(const struct dev_link_ops *dev, struct ring_conn *conn,
				  uint64_t off, uint32_t len)
{
	struct ring_post post = { .off = off, .len = len, .imm = len / WIRE_ALIGN };

	if (UTIL_UNLIKELY(dev->write_imm(conn->link, post.off, post.len, post.imm)))
		ring_tx_post(dev, conn, post);
}

/** Has the peer released everything before `start`, the producer? Looks, where the link can say so at once. */
RING_INLINE bool ring_single_is_idle(const struct dev_link_ops *dev,
				     const struct ring_flush_cfg *cfg, struct ring_conn *conn,
				     uint64_t start)
{
	uint64_t pos;

	if (conn->tx.flow.remote_consumer == start)
		return true;
	if (!cfg->looks || dev->read_consumer(conn->link, &pos) != 1 || pos != start)
		return false;
	conn->tx.flow.remote_consumer = start;
	return true;
}

/** Must a message with these flags leave now? */
RING_INLINE bool ring_single_leaves(const struct dev_link_ops *dev,
				    const struct ring_flush_cfg *cfg, struct ring_conn *conn,
				    uint64_t start, unsigned flags)
{
	return flags ? !(flags & CORE_SEND_MORE) : ring_single_is_idle(dev, cfg, conn, start);
}

/** Is a batch of `move` bytes whose only message has `len` of the user's, and these flags, to leave by itself? */
RING_INLINE bool ring_single_is(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				struct ring_conn *conn, uint64_t move, size_t len, unsigned flags)
{
	return len <= UTIL_COPY_SHORT && move <= conn->tx.single_room &&
	       ring_single_leaves(dev, cfg, conn, conn->tx.flow.producer, flags);
}

/** Takes `move` bytes of the ring for it: where they begin. */
RING_INLINE uint64_t ring_single_take(struct ring_tx *tx, uint64_t move)
{
	uint64_t start = tx->flow.producer;

	tx->single_room -= move;
	tx->flow.producer = start + move;
	tx->flush_start = start + move;
	return ring_off(start, tx->len);
}

/** Its metadata, the last thing to be written; then it leaves. */
RING_INLINE void ring_single_leave(const struct dev_link_ops *dev, struct ring_conn *conn,
				   uint64_t off, uint64_t move, uint64_t grant)
{
	uint64_t consumer = conn->rx.consumer;

	conn->rx.advertised = consumer;
	ring_tx_write_meta((struct wire_meta *)(conn->tx.base + off), consumer, grant, 1);
	ring_single_post(dev, conn, off, (uint32_t)move);
}

/** core_chan_ops.send_buf: true, and it has left; or nothing was done. */
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
