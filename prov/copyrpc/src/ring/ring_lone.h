/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a small message take that leaves alone?
 *
 * The peer has released all before it, or the message must leave at once whatever it did: then it is opened,
 * written and closed in one step, as ring_tx_send_buf would, without the state in between. Everything
 * that could be in the way (an open batch, writes that wait, the ring's end, room, a grant that is due) is
 * one comparison, with ring_tx.lone_room. For links that write into the peer's memory and have a link word.
 *
 * Shown by test/unit/ring/test_ring_lone.c and test_ring_flow.c.
 */
#ifndef RING_LONE_H
#define RING_LONE_H

#include "ring/ring_tx.h"

/** Is it worth to ask? */
RING_INLINE bool ring_lone_may(const struct dev_link_ops *dev, const struct ring_conn *conn)
{
	return !ring_tx_is_late(dev) && conn->tx.lone_room;
}

/** Nothing waits for the device: it has been asked for nothing but what it took. */
RING_INLINE void ring_lone_post(const struct dev_link_ops *dev, struct ring_conn *conn,
				uint64_t off, uint32_t len)
{
	struct ring_post post = { .off = off, .len = len, .imm = len / WIRE_ALIGN };

	if (UTIL_UNLIKELY(dev->write_imm(conn->link, post.off, post.len, post.imm)))
		ring_tx_post(dev, conn, post);
}

/** Has the peer released everything before `start`, the producer? Looks, where the link can say so at once. */
RING_INLINE bool ring_lone_is_idle(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				   struct ring_conn *conn, uint64_t start)
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
RING_INLINE bool ring_lone_leaves(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				  struct ring_conn *conn, uint64_t start, unsigned flags)
{
	return flags ? !(flags & CORE_SEND_MORE) : ring_lone_is_idle(dev, cfg, conn, start);
}

/** core_chan_ops.send_buf: true, and it has left; or nothing was done. */
RING_INLINE bool ring_lone_send(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				struct ring_conn *conn, uint64_t label, uint64_t ext0,
				uint64_t ext1, const void *buf, size_t len)
{
	uint64_t start = conn->tx.flow.producer, room = conn->tx.lone_room;
	uint64_t ext_len = core_label_ext_len(label);
	uint64_t move = WIRE_META_LEN + wire_long_span(ext_len + len);
	uint64_t consumer, off;
	uint8_t *dst;

	if (len > UTIL_COPY_SHORT || move > room ||
	    !ring_lone_leaves(dev, cfg, conn, start, core_label_flags(label)))
		return false;
	consumer = conn->rx.consumer;
	off = ring_off(start, conn->tx.len);
	dst = conn->tx.base + off;
	conn->tx.lone_room = room - move;
	conn->tx.flow.producer = start + move;
	conn->tx.flush_start = start + move;
	conn->rx.told = consumer;
	ring_tx_write_meta((struct wire_meta *)dst, consumer, 0, 1);
	dst = ring_tx_write_head_at(dst + WIRE_META_LEN, core_label_op(label), ext0, ext1, ext_len,
				    len);
	util_copy_short(dst, buf, len);
	ring_lone_post(dev, conn, off, (uint32_t)move);
	return true;
}

#endif
