/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls and responses: core_chan_ops.call, call_buf, call_room, reply and its variants
 * (docs/ring-protocol.md, section 5). Called by core through the functions of ring_template.h.
 *
 * A call takes credit, granted by the peer, and ring space; both are checked before anything is
 * written. A response needs neither: its space was reserved with the credit. The hot path of both,
 * one buffer and no extension, has the three forms of ring_send.h: append, single, general.
 */
#ifndef RING_RING_CALL_H
#define RING_RING_CALL_H

#include "ring/ring_rx.h"
#include "ring/ring_send.h"
#include "ring/ring_transport.h"

#define RING_CALL_WORD_LEN 4u /* Bytes of the operation word, the first of a call's payload */

/**
 * Returns true if a call or response can be appended to a deferred batch that stays deferred.
 * Unlike ring_send_may_append, the caller knows whether FI_MORE is set.
 */
static inline bool ring_call_may_append(const struct ring_tx *tx, const struct ring_flush_cfg *cfg,
					uint32_t span, unsigned flags)
{
	return tx->flow.producer + span < tx->fast.append_end &&
	       ((flags & CORE_SEND_MORE) ||
		(!cfg->cheap_signal && tx->flow.remote_consumer != tx->flush_start));
}

/** Writes a call. The caller has checked credit and space. */
UTIL_INLINE void ring_call_write(struct ring_tx *tx, uint32_t id, uint32_t op, const void *buf,
				 size_t len, uint32_t resp_span, uint32_t span)
{
	tx->credit -= resp_span + WIRE_META_LEN;
	ring_tx_write_buf(tx, id | (uint64_t)(resp_span / WIRE_ALIGN) << 32, op, 0,
			  RING_CALL_WORD_LEN, buf, len, span);
}

/**
 * Appends a call to a deferred batch that stays deferred. Returns 0, or -FI_EAGAIN if
 * ring_call_general must handle the call.
 */
UTIL_INLINE int ring_call_append(const struct ring_flush_cfg *cfg, struct ring_conn *conn,
				 uint32_t op, const void *buf, size_t len, uint32_t resp_max,
				 void *context, unsigned flags)
{
	struct ring_tx *tx = &conn->tx;
	uint32_t span = wire_msg_span(RING_CALL_WORD_LEN + (uint32_t)len);
	uint32_t resp_span = wire_msg_span(resp_max);
	uint32_t id;

	if (!ring_call_may_append(tx, cfg, span, flags) ||
	    UTIL_UNLIKELY(tx->credit < resp_span + WIRE_META_LEN) ||
	    UTIL_UNLIKELY(util_idmap_alloc(&conn->calls, context, &id)))
		return -FI_EAGAIN;
	ring_call_write(tx, id, op, buf, len, resp_span, span);
	return 0;
}

/** Sends a call as a batch of its own, at once. Returns false if nothing was done. */
UTIL_INLINE bool ring_call_single(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				  struct ring_conn *conn, uint32_t op, const void *buf, size_t len,
				  uint32_t resp_max, void *context, unsigned flags)
{
	uint64_t move = WIRE_META_LEN + wire_long_span(RING_CALL_WORD_LEN + len);
	uint32_t resp_span = wire_msg_span(resp_max);
	uint64_t off, hdr;
	uint32_t id;

	if (UTIL_UNLIKELY(conn->tx.credit < resp_span + WIRE_META_LEN) ||
	    !ring_single_applies(dev, cfg, conn, move, len, flags) ||
	    UTIL_UNLIKELY(util_idmap_alloc(&conn->calls, context, &id)))
		return false;
	conn->tx.credit -= resp_span + WIRE_META_LEN;
	hdr = id | (uint64_t)(resp_span / WIRE_ALIGN) << 32;
	off = ring_single_take(&conn->tx, move);
	util_copy_short(ring_tx_write_head_at(conn->tx.base + off + WIRE_META_LEN, hdr, op, 0,
					      RING_CALL_WORD_LEN, len),
			buf, len);
	ring_single_leave(dev, conn, off, move, 0);
	return true;
}

/** Returns the most bytes that a call of `span` bytes moves: it may end the open batch. */
static inline uint64_t ring_call_move_max(const struct ring_tx *tx, uint64_t span)
{
	return ring_move(tx->flow.producer, WIRE_META_LEN + span, tx->len);
}

/**
 * Returns the shortage because of which a call of `span` bytes would be refused now. Assumes that
 * the call takes a batch of its own.
 */
static inline enum core_shortage ring_call_shortage(const struct ring_conn *conn, uint64_t span,
						    uint32_t resp_max)
{
	const struct ring_tx *tx = &conn->tx;

	if (tx->credit < wire_reservation(resp_max))
		return CORE_SHORT_CREDIT;
	if (ring_flow_admits(&tx->flow, ring_call_move_max(tx, span)))
		return CORE_SHORT_NONE;
	return tx->post_cnt ? CORE_SHORT_QUEUE : CORE_SHORT_SPACE;
}

/** Sends a call in the general case. */
UTIL_INLINE int ring_call_general(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				  struct ring_conn *conn, uint32_t op, const void *buf, size_t len,
				  uint32_t resp_max, void *context, unsigned flags)
{
	struct ring_tx *tx = &conn->tx;
	uint32_t span = wire_msg_span(RING_CALL_WORD_LEN + (uint32_t)len);
	uint32_t resp_span = wire_msg_span(resp_max);
	uint32_t id;
	int ret;

	if (UTIL_UNLIKELY(conn->eng.err))
		return conn->eng.err;
	ring_flush_end_packet(dev, cfg, conn, span);
	if (UTIL_UNLIKELY(tx->credit < resp_span + WIRE_META_LEN) ||
	    UTIL_UNLIKELY(!ring_tx_admit(dev, conn, span)))
		return ring_transport_refuse_cold(conn, span, resp_max, -FI_EAGAIN);
	ret = util_idmap_alloc(&conn->calls, context, &id);
	if (UTIL_UNLIKELY(ret))
		return ring_transport_refuse_cold(conn, span, resp_max, ret);
	ring_tx_reserve(dev, conn, span);
	ring_call_write(tx, id, op, buf, len, resp_span, span);
	ring_flush_by_policy(dev, cfg, conn, flags);
	return 0;
}

/** Implements core_chan_ops.call. The operation word is the first four bytes of the payload. */
UTIL_INLINE int ring_call_frame(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				struct ring_conn *conn, const struct core_frame *frame,
				uint32_t resp_max, void *context, unsigned flags)
{
	struct ring_tx *tx = &conn->tx;
	uint32_t len = (uint32_t)sizeof(frame->op) + frame->ext_len + (uint32_t)frame->len;
	uint32_t span = wire_msg_span(len);
	uint32_t reserve = wire_reservation(resp_max);
	struct core_frame out = *frame;
	struct wire_hdr hdr;
	int ret;

	if (UTIL_UNLIKELY(conn->eng.err))
		return conn->eng.err;
	ring_flush_end_packet(dev, cfg, conn, span);
	if (tx->credit < reserve || !ring_tx_admit(dev, conn, span))
		return ring_transport_refuse_cold(conn, span, resp_max, -FI_EAGAIN);
	ret = util_idmap_alloc(&conn->calls, context, &hdr.call_id);
	if (ret)
		return ring_transport_refuse_cold(conn, span, resp_max, ret);
	hdr.piggyback = wire_msg_span(resp_max) / WIRE_ALIGN;
	hdr.len = len;
	memmove((uint8_t *)out.ext + sizeof(out.op), frame->ext, frame->ext_len);
	memcpy(out.ext, &frame->op, sizeof(out.op));
	out.ext_len += (uint32_t)sizeof(out.op);
	tx->credit -= reserve;
	ring_tx_reserve(dev, conn, span);
	ring_tx_write(tx, hdr, span, &out);
	ring_flush_by_policy(dev, cfg, conn, flags);
	return 0;
}

/**
 * Implements core_chan_ops.call_room. Assumes that each call takes a batch of its own and that the
 * ring wraps once. Bytes that the peer released and has not advertised yet are not counted.
 */
static inline size_t ring_call_room(const struct ring_conn *conn, size_t len, uint32_t resp_max)
{
	const struct ring_tx *tx = &conn->tx;
	uint32_t span = wire_msg_span(RING_CALL_WORD_LEN + (uint32_t)len);
	uint64_t by_credit = tx->credit / wire_reservation(resp_max);
	int64_t room = (int64_t)(ring_flow_limit(&tx->flow) - tx->flow.producer);
	uint64_t by_room;

	if (conn->eng.err || room < 0 || !ring_flow_admits(&tx->flow, ring_call_move_max(tx, span)))
		return 0;
	if (ring_must_wrap(tx->flow.producer, (uint64_t)room + WIRE_META_LEN, tx->len))
		room -= span + 2 * WIRE_META_LEN;
	by_room = room > 0 ? (uint64_t)room / (span + WIRE_META_LEN) : 0;
	by_room = by_room ? by_room : 1;
	return by_room < by_credit ? by_room : by_credit;
}

/** Releases a retained message. Inline form of ring_rx_release_retained. */
static inline void ring_call_release(struct ring_conn *conn, core_retain_t retain)
{
	if (UTIL_LIKELY(ring_retained_release(&conn->rx.retained, retain)))
		ring_rx_release(conn);
}

/**
 * Appends a response to a deferred batch that stays deferred. Returns false if nothing was done.
 */
UTIL_INLINE bool ring_reply_append(const struct ring_flush_cfg *cfg, struct ring_conn *conn,
				   struct core_call_ref ref, core_retain_t retain, const void *buf,
				   size_t len, unsigned flags)
{
	/* Response: no maximum response size in the upper half */
	uint64_t hdr = ref.call_id | WIRE_ID_RESPONSE;
	uint32_t span = wire_msg_span((uint32_t)len);
	uint32_t reserve = wire_reservation(ref.resp_max);
	struct ring_tx *tx = &conn->tx;

	if (UTIL_UNLIKELY(len > ref.resp_max) || !ring_call_may_append(tx, cfg, span, flags))
		return false;
	assert(tx->flow.claimed >= reserve);
	ring_tx_write_buf(tx, hdr, 0, 0, 0, buf, len, span);
	tx->flow.claimed -= reserve;
	tx->flow.granted -= reserve;
	ring_call_release(conn, retain);
	return true;
}

/**
 * Sends a response as a batch of its own, at once. Returns false if nothing was done. The credit
 * that it frees is granted again in the same batch: single_room reserves the space for that. The
 * same batch advertises the bytes of the call as released.
 */
UTIL_INLINE bool ring_reply_single(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				   struct ring_conn *conn, struct core_call_ref ref,
				   core_retain_t retain, const void *buf, size_t len,
				   unsigned flags)
{
	/* Response: no maximum response size in the upper half */
	uint64_t hdr = ref.call_id | WIRE_ID_RESPONSE;
	uint64_t move = WIRE_META_LEN + wire_long_span(len);
	uint32_t reserve = wire_reservation(ref.resp_max);
	uint64_t off;

	if (UTIL_UNLIKELY(len > ref.resp_max) ||
	    !ring_single_applies(dev, cfg, conn, move, len, flags))
		return false;
	assert(conn->tx.flow.claimed >= reserve);
	conn->tx.flow.claimed -= reserve;
	off = ring_single_take(&conn->tx, move);
	util_copy_short(
		ring_tx_write_head_at(conn->tx.base + off + WIRE_META_LEN, hdr, 0, 0, 0, len), buf,
		len);
	ring_call_release(conn, retain);
	ring_single_leave(dev, conn, off, move, reserve);
	return true;
}

/** Implements core_chan_ops.reply. The space was reserved when the credit was granted. */
UTIL_INLINE int ring_reply(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
			   struct ring_conn *conn, struct core_call_ref ref,
			   const struct iovec *iov, size_t iov_cnt, size_t len, unsigned flags)
{
	/* Response: no maximum response size in the upper half */
	uint64_t hdr = ref.call_id | WIRE_ID_RESPONSE;
	uint32_t span = wire_msg_span((uint32_t)len);
	struct ring_flow *flow = &conn->tx.flow;
	uint32_t reserve = wire_reservation(ref.resp_max);
	bool joins;

	if (len > ref.resp_max)
		return -FI_EMSGSIZE;
	if (UTIL_UNLIKELY(conn->eng.err))
		return 0; /* The caller of a failed connection receives no response */
	assert(flow->claimed >= reserve);
	joins = ring_call_may_append(&conn->tx, cfg, span, flags);
	if (!joins) {
		ring_flush_end_packet(dev, cfg, conn, span);
		ring_tx_reserve(dev, conn, span);
	}
	ring_tx_write_reply(&conn->tx, hdr, iov, iov_cnt, (uint32_t)len, span);
	flow->claimed -= reserve;
	flow->granted -= reserve;
	if (!joins)
		ring_flush_by_policy(dev, cfg, conn, flags);
	return 0;
}

/** Sends a response in the general case and releases the call's bytes. */
UTIL_INLINE int ring_reply_general(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				   struct ring_conn *conn, struct core_call_ref ref,
				   core_retain_t retain, const void *buf, size_t len,
				   unsigned flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	int ret = ring_reply(dev, cfg, conn, ref, &iov, 1, len, flags);

	if (UTIL_LIKELY(!ret))
		ring_call_release(conn, retain);
	return ret;
}

#endif
