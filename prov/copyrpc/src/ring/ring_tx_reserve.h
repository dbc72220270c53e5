/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Admission and reservation of ring space for a message (docs/ring-protocol.md, section 5). Called
 * by the send side before it writes.
 *
 * Admission compares the bytes that the message moves, including those skipped at the end of a lap,
 * with the bytes that the peer has released; if there are too few, it reads the consumer word.
 * Reservation provides an open batch with that many contiguous bytes, behind a marker if needed.
 *
 * Tested by test/unit/ring/test_ring_tx_reserve.c.
 */
#ifndef RING_TX_RESERVE_H
#define RING_TX_RESERVE_H

#include "ring/ring_flush.h"
#include "ring/ring_tx_close.h"

/** Opens a batch at the producer. The caller has checked that it fits before the end. */
RING_INLINE void ring_tx_open(const struct dev_link_ops *dev, struct ring_tx *tx)
{
	tx->flush_start = tx->flow.producer;
	tx->flow.producer += WIRE_META_LEN;
	tx->msg_cnt = 0;
	tx->open = true;
	if (!ring_tx_is_async(dev))
		tx->single_room = 0;
}

/** Returns the bytes that a message of `span` moves: metadata, skip, itself. */
static inline uint64_t ring_tx_move(const struct ring_tx *tx, uint64_t span)
{
	if (tx->open && !ring_must_wrap(tx->flow.producer, span, tx->len))
		return span;
	return ring_move(tx->flow.producer, WIRE_META_LEN + span, tx->len);
}

/** Provides an open batch with `span` contiguous bytes at the producer; wraps if needed. */
RING_INLINE void ring_tx_reserve_cold(const struct dev_link_ops *dev, struct ring_conn *conn,
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

RING_INLINE void ring_tx_reserve(const struct dev_link_ops *dev, struct ring_conn *conn,
				 uint64_t span)
{
	struct ring_tx *tx = &conn->tx;
	uint64_t need = tx->open ? span : WIRE_META_LEN + span;

	if (UTIL_UNLIKELY(ring_must_wrap(tx->flow.producer, need, tx->len)))
		ring_tx_reserve_cold(dev, conn, span);
	else if (!tx->open)
		ring_tx_open(dev, tx);
}

/** Closes the open batch if a message of `span` bytes costs fewer packets in a batch of its own. */
RING_INLINE void ring_tx_end_packet(const struct dev_link_ops *dev,
				    const struct ring_flush_cfg *cfg, struct ring_conn *conn,
				    uint64_t span)
{
	struct ring_tx *tx = &conn->tx;
	uint64_t len = tx->flow.producer - tx->flush_start;

	if (!cfg->packet_len || !tx->open || tx->post_cnt)
		return;
	if (ring_tx_is_async(dev) && ring_tx_is_short(conn))
		len -= WIRE_META_LEN;
	if (ring_flush_before(cfg, len, span))
		ring_tx_close(dev, conn);
}

/**
 * Starts a READ of the peer's consumer word. Returns 1 and *pos, 0 if DEV_EV_READ follows, or
 * -FI_EAGAIN.
 */
RING_INLINE int ring_tx_read_start(const struct dev_link_ops *dev, struct ring_conn *conn,
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
RING_INLINE bool ring_tx_read_consumer(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	uint64_t before = conn->tx.flow.remote_consumer;
	uint64_t pos;

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
RING_INLINE bool ring_tx_admit(const struct dev_link_ops *dev, struct ring_conn *conn,
			       uint64_t span)
{
	struct ring_tx *tx = &conn->tx;

	if (UTIL_LIKELY(ring_flow_admits(&tx->flow, ring_tx_move(tx, span))))
		return true;
	return ring_tx_read_consumer(dev, conn) &&
	       ring_flow_admits(&tx->flow, ring_tx_move(tx, span));
}

#endif
