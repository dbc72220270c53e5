/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Send side of one ring connection: core_chan_ops.send, send_buf, call, reply_iov
 * (docs/ring-protocol.md, sections 4 to 6). Called by core.
 *
 * Steps: check credit and space, reserve (ring_tx_reserve.h), write (ring_tx_write.h), flush by
 * policy (ring_tx_leave.h), which closes the batch (ring_tx_close.h). Appending to a deferred batch
 * that stays deferred takes the second and third step only.
 *
 * Tested by test/unit/ring/test_ring_tx.c, and test_ring_flow.c (two ends, millions of random
 * steps, invariant after each).
 */
#ifndef RING_TX_H
#define RING_TX_H

#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_conn.h"
#include "ring/ring_flush.h"
#include "ring/ring_tx_leave.h"
#include "ring/ring_tx_reserve.h"
#include "ring/ring_tx_write.h"
#include "util/copy.h"

/** Implements core_chan_ops.send. */
RING_INLINE int ring_tx_send(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
			     struct ring_conn *conn, const struct core_frame *frame, unsigned flags)
{
	uint32_t len = frame->ext_len + (uint32_t)frame->len;
	uint32_t span = wire_msg_span(len);
	struct wire_hdr hdr = { .call_id = frame->op, .piggyback = 0, .len = len };

	if (UTIL_UNLIKELY(conn->eng.err))
		return conn->eng.err;
	ring_tx_end_packet(dev, cfg, conn, span);
	if (UTIL_UNLIKELY(!ring_tx_admit(dev, conn, span)))
		return -FI_EAGAIN;
	ring_tx_reserve(dev, conn, span);
	ring_tx_write(&conn->tx, hdr, span, frame);
	ring_tx_flush_by_policy(dev, cfg, conn, flags);
	return 0;
}

/** Returns true if the message can be appended to a deferred batch that stays deferred. */
RING_INLINE bool ring_tx_may_append(const struct ring_conn *conn, uint64_t packed, size_t len)
{
	uint64_t ext_len =
		packed >> CORE_PACKED_EXT_SHIFT; /* Any flag makes this exceed every limit */

	return conn->tx.flow.producer + wire_long_span(ext_len + len) < conn->tx.append_idle_end;
}

/** Implements core_chan_ops.send_buf after ring_tx_may_append returned true. Cannot fail. */
RING_INLINE int ring_tx_append(const struct dev_link_ops *dev, struct ring_conn *conn,
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

/** Implements core_chan_ops.send_buf in the general case. */
RING_INLINE int ring_tx_send_buf(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				 struct ring_conn *conn, uint64_t packed, uint64_t ext0,
				 uint64_t ext1, const void *buf, size_t len)
{
	uint32_t ext_len = core_packed_ext_len(packed);
	uint32_t span = wire_msg_span(ext_len + (uint32_t)len);

	if (UTIL_UNLIKELY(conn->eng.err))
		return conn->eng.err;
	ring_tx_end_packet(dev, cfg, conn, span);
	if (UTIL_UNLIKELY(!ring_tx_admit(dev, conn, span)))
		return -FI_EAGAIN;
	ring_tx_reserve(dev, conn, span);
	ring_tx_write_buf(&conn->tx, core_packed_op(packed), ext0, ext1, ext_len, buf, len, span);
	ring_tx_flush_by_policy(dev, cfg, conn, core_packed_flags(packed));
	return ring_tx_is_async(dev);
}

/** Implements core_chan_ops.call. The operation word is the first four bytes of the payload. */
RING_INLINE int ring_tx_call(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
			     struct ring_conn *conn, const struct core_frame *frame,
			     uint32_t resp_max, void *context)
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
	ring_tx_end_packet(dev, cfg, conn, span);
	if (tx->credit < reserve || !ring_tx_admit(dev, conn, span))
		return -FI_EAGAIN;
	ret = util_idmap_alloc(&conn->calls, context, &hdr.call_id);
	if (ret)
		return ret;
	hdr.piggyback = wire_msg_span(resp_max) / WIRE_ALIGN;
	hdr.len = len;
	memmove((uint8_t *)out.ext + sizeof(out.op), frame->ext, frame->ext_len);
	memcpy(out.ext, &frame->op, sizeof(out.op));
	out.ext_len += (uint32_t)sizeof(out.op);
	tx->credit -= reserve;
	ring_tx_reserve(dev, conn, span);
	ring_tx_write(tx, hdr, span, &out);
	ring_tx_flush_by_policy(dev, cfg, conn, 0);
	return 0;
}

/**
 * Returns true if a call or response can be appended to a deferred batch that stays deferred.
 * Unlike ring_tx_may_append, the caller knows whether FI_MORE is set.
 */
static inline bool ring_tx_may_append_call(const struct ring_tx *tx,
					   const struct ring_flush_cfg *cfg, uint32_t span,
					   unsigned flags)
{
	return tx->flow.producer + span < tx->append_end &&
	       ((flags & CORE_SEND_MORE) ||
		(!cfg->cheap_signal && tx->flow.remote_consumer != tx->flush_start));
}

/** Implements core_chan_ops.reply_iov. The space was reserved when the credit was granted. */
RING_INLINE int ring_tx_reply_iov(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				  struct ring_conn *conn, struct core_call_ref ref,
				  const struct iovec *iov, size_t iov_cnt, size_t len,
				  unsigned flags)
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
	joins = ring_tx_may_append_call(&conn->tx, cfg, span, flags);
	if (!joins) {
		ring_tx_end_packet(dev, cfg, conn, span);
		ring_tx_reserve(dev, conn, span);
	}
	ring_tx_write_reply(&conn->tx, hdr, iov, iov_cnt, (uint32_t)len, span);
	flow->claimed -= reserve;
	flow->granted -= reserve;
	if (!joins)
		ring_tx_flush_by_policy(dev, cfg, conn, flags);
	return 0;
}

/** Implements core_chan_ops.reply. */
RING_INLINE int ring_tx_reply(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
			      struct ring_conn *conn, struct core_call_ref ref, const void *buf,
			      size_t len)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return ring_tx_reply_iov(dev, cfg, conn, ref, &iov, 1, len, 0);
}

#endif
