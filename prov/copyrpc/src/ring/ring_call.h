/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a user's call get onto the ring, and how many more would? (docs/ring-protocol.md, 5)
 *
 * The hot half of ring_tx_call, for an operation word without extension and one buffer: what
 * ring_tx_send_buf is to ring_tx_send. A call takes credit, which the peer granted, and room; both
 * are looked at before anything is written.
 *
 * Shown by test/unit/ring/test_ring_call.c.
 */
#ifndef RING_CALL_H
#define RING_CALL_H

#include "ring/ring_tx.h"

#define RING_CALL_WORD_LEN 4u /* of the operation word, which is the first of a call's payload */

/** core_chan_ops.call_buf */
RING_INLINE int ring_call_buf(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
			      struct ring_conn *conn, uint32_t op, const void *buf, size_t len,
			      uint32_t allowance, void *context, unsigned flags)
{
	struct ring_tx *tx = &conn->tx;
	uint32_t span = wire_msg_span(RING_CALL_WORD_LEN + (uint32_t)len);
	uint32_t answer = wire_msg_span(allowance);
	bool joins = ring_tx_joins(tx, cfg, span, flags);
	uint32_t id;
	int ret;

	if (UTIL_UNLIKELY(conn->eng.err))
		return conn->eng.err;
	if (!joins)
		ring_tx_end_packet(dev, cfg, conn, span);
	if (UTIL_UNLIKELY(tx->credit < answer + WIRE_META_LEN) ||
	    (!joins && UTIL_UNLIKELY(!ring_tx_admit(dev, conn, span))))
		return -FI_EAGAIN;
	ret = util_idmap_alloc(&conn->calls, context, &id);
	if (UTIL_UNLIKELY(ret))
		return ret;
	tx->credit -= answer + WIRE_META_LEN;
	if (!joins)
		ring_tx_place(dev, conn, span);
	ring_tx_write_buf(tx, id | (uint64_t)(answer / WIRE_ALIGN) << 32, op, 0, RING_CALL_WORD_LEN,
			  buf, len, span);
	if (!joins)
		ring_tx_flush_by_policy(dev, cfg, conn, flags);
	return 0;
}

/**
 * core_chan_ops.call_room: each call in a batch of its own, and the end of the ring crossed once.
 * What the peer released since it last told does not count.
 */
static inline size_t ring_call_room(const struct ring_conn *conn, size_t len, uint32_t allowance)
{
	const struct ring_tx *tx = &conn->tx;
	uint32_t span = wire_msg_span(RING_CALL_WORD_LEN + (uint32_t)len);
	uint64_t by_credit = tx->credit / wire_reservation(allowance);
	int64_t room = (int64_t)(ring_flow_limit(&tx->flow) - tx->flow.producer);
	uint64_t by_room;

	if (conn->eng.err || room < 0 || !ring_flow_admits(&tx->flow, ring_tx_move(tx, span)))
		return 0;
	if (ring_must_wrap(tx->flow.producer, (uint64_t)room + WIRE_META_LEN, tx->len))
		room -= span + 2 * WIRE_META_LEN;
	by_room = room > 0 ? (uint64_t)room / (span + WIRE_META_LEN) : 0;
	by_room = by_room ? by_room : 1;
	return by_room < by_credit ? by_room : by_credit;
}

#endif
