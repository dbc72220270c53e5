/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-way messages: core_chan_ops.send, send_buf and send_more (docs/ring-protocol.md, sections 4
 * to 6). Called by core through the functions of ring_template.h.
 *
 * Three forms of send_buf, tried in this order:
 *   append   into a deferred batch that stays deferred: one comparison, then the bytes are written
 *   single   as a batch of its own that leaves at once: opened, written and closed in one step
 *   general  everything else: admit, reserve, write, flush by policy
 *
 * The single form applies if the peer has released everything before the message, or if the
 * message must leave at once. One comparison with ring_tx.fast.single_room covers every obstacle:
 * an open batch, queued posts, the ring's end, space, a due grant. Only for links that write into
 * the peer's memory and have a link word. Calls and responses use it, too (ring_call.h).
 *
 * Tested by test/unit/ring/test_ring_{tx,single,flow}.c.
 */
#ifndef RING_RING_SEND_H
#define RING_RING_SEND_H

#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_flush.h"
#include "ring/ring_tx.h"
#include "util/copy.h"

/** Returns true if the message can be appended to a deferred batch that stays deferred. */
UTIL_INLINE bool ring_send_may_append(const struct ring_conn *conn, uint64_t packed, size_t len)
{
	uint64_t ext_len =
		packed >> CORE_PACKED_EXT_SHIFT; /* Any flag makes this exceed every limit */

	return conn->tx.flow.producer + wire_long_span(ext_len + len) <
	       conn->tx.fast.append_idle_end;
}

/** Returns true if a message with FI_MORE can be appended to a deferred batch. */
UTIL_INLINE bool ring_send_may_gather(const struct ring_conn *conn, uint64_t packed, size_t len)
{
	uint64_t ext_len = packed >> CORE_PACKED_EXT_SHIFT;

	return conn->tx.flow.producer + wire_long_span(ext_len + len) < conn->tx.fast.append_end;
}

/**
 * Implements core_chan_ops.send_buf after ring_send_may_append returned true, and send_more after
 * ring_send_may_gather. Cannot fail.
 */
UTIL_INLINE int ring_send_append(const struct dev_link_ops *dev, struct ring_conn *conn,
				 uint64_t packed, uint64_t ext0, uint64_t ext1, const void *buf,
				 size_t len)
{
	uint64_t ext_len = packed >> CORE_PACKED_EXT_SHIFT;
	struct ring_tx *tx = &conn->tx;
	uint8_t *dst = ring_tx_write_head(tx, core_packed_op(packed), ext0, ext1, ext_len, len);

	tx->flow.producer += wire_long_span(ext_len + len);
	tx->msg_cnt++;
	if (len > UTIL_COPY_SHORT)
		return ring_tx_copy_long(dst, buf, len, ring_tx_is_async(dev));
	util_copy_short(dst, buf, len);
	return ring_tx_is_async(dev);
}

/** Returns true if the fast path may apply. */
UTIL_INLINE bool ring_single_is_possible(const struct dev_link_ops *dev,
					 const struct ring_conn *conn)
{
	return !ring_tx_is_async(dev) && conn->tx.fast.single_room;
}

/** Posts the batch. No post is queued: single_room is 0 otherwise. */
UTIL_INLINE void ring_single_post(const struct dev_link_ops *dev, struct ring_conn *conn,
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
UTIL_INLINE bool ring_single_is_idle(const struct dev_link_ops *dev,
				     const struct ring_flush_cfg *cfg, struct ring_conn *conn,
				     uint64_t start)
{
	uint64_t pos = 0;

	if (conn->tx.flow.remote_consumer == start)
		return true;
	if (!cfg->reads_consumer || dev->read_consumer(conn->link, &pos) != 1 || pos != start)
		return false;
	conn->tx.flow.remote_consumer = start;
	return true;
}

/** Returns true if a message with these flags must leave now. */
UTIL_INLINE bool ring_single_leaves(const struct dev_link_ops *dev,
				    const struct ring_flush_cfg *cfg, struct ring_conn *conn,
				    uint64_t start, unsigned flags)
{
	return flags ? !(flags & CORE_SEND_MORE) : ring_single_is_idle(dev, cfg, conn, start);
}

/**
 * Returns true if a batch of `move` bytes, with one message of `len` user bytes and these flags,
 * leaves at once.
 */
UTIL_INLINE bool ring_single_applies(const struct dev_link_ops *dev,
				     const struct ring_flush_cfg *cfg, struct ring_conn *conn,
				     uint64_t move, size_t len, unsigned flags)
{
	return len <= UTIL_COPY_SHORT && move <= conn->tx.fast.single_room &&
	       ring_single_leaves(dev, cfg, conn, conn->tx.flow.producer, flags);
}

/** Takes `move` bytes of the ring. Returns the offset at which they begin. */
UTIL_INLINE uint64_t ring_single_take(struct ring_tx *tx, uint64_t move)
{
	uint64_t start = tx->flow.producer;

	tx->fast.single_room -= move;
	tx->flow.producer = start + move;
	tx->flush_start = start + move;
	return ring_off(start, tx->len);
}

/** Writes the metadata last and posts the batch. */
UTIL_INLINE void ring_single_leave(const struct dev_link_ops *dev, struct ring_conn *conn,
				   uint64_t off, uint64_t move, uint64_t grant)
{
	uint64_t consumer = conn->rx.consumer;

	util_stats_single(conn->eng.chan.stats, move);
	conn->rx.advertised = consumer;
	ring_tx_write_meta((struct wire_meta *)(conn->tx.base + off), consumer, grant, 1);
	ring_single_post(dev, conn, off, (uint32_t)move);
}

/** Implements core_chan_ops.send_buf on the fast path. Returns false if nothing was done. */
UTIL_INLINE bool ring_send_single(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				  struct ring_conn *conn, uint64_t packed, uint64_t ext0,
				  uint64_t ext1, const void *buf, size_t len)
{
	uint64_t ext_len = core_packed_ext_len(packed);
	uint64_t move = WIRE_META_LEN + wire_long_span(ext_len + len);
	uint64_t off;

	if (!ring_single_applies(dev, cfg, conn, move, len, core_packed_flags(packed)))
		return false;
	off = ring_single_take(&conn->tx, move);
	util_copy_short(ring_tx_write_head_at(conn->tx.base + off + WIRE_META_LEN,
					      core_packed_op(packed), ext0, ext1, ext_len, len),
			buf, len);
	ring_single_leave(dev, conn, off, move, 0);
	return true;
}

/** Implements core_chan_ops.send_buf in the general case. */
UTIL_INLINE int ring_send_general(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				  struct ring_conn *conn, uint64_t packed, uint64_t ext0,
				  uint64_t ext1, const void *buf, size_t len)
{
	uint32_t ext_len = core_packed_ext_len(packed);
	uint32_t span = wire_msg_span(ext_len + (uint32_t)len);

	if (UTIL_UNLIKELY(conn->eng.err))
		return conn->eng.err;
	ring_flush_end_packet(dev, cfg, conn, span);
	if (UTIL_UNLIKELY(!ring_tx_admit(dev, conn, span)))
		return ring_transport_no_space_cold(conn);
	ring_tx_reserve(dev, conn, span);
	ring_tx_write_buf(&conn->tx, core_packed_op(packed), ext0, ext1, ext_len, buf, len, span);
	ring_flush_by_policy(dev, cfg, conn, core_packed_flags(packed));
	return ring_tx_is_async(dev);
}

/** Implements core_chan_ops.send. */
UTIL_INLINE int ring_send_frame(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				struct ring_conn *conn, const struct core_frame *frame,
				unsigned flags)
{
	uint32_t len = frame->ext_len + (uint32_t)frame->len;
	uint32_t span = wire_msg_span(len);
	struct wire_hdr hdr = { .call_id = frame->op, .piggyback = 0, .len = len };

	if (UTIL_UNLIKELY(conn->eng.err))
		return conn->eng.err;
	ring_flush_end_packet(dev, cfg, conn, span);
	if (UTIL_UNLIKELY(!ring_tx_admit(dev, conn, span)))
		return ring_transport_no_space_cold(conn);
	ring_tx_reserve(dev, conn, span);
	ring_tx_write(&conn->tx, hdr, span, frame);
	ring_flush_by_policy(dev, cfg, conn, flags);
	return 0;
}

#endif
