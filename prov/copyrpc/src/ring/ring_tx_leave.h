/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When does the open batch leave, and what leaves without a message? (docs/ring-protocol.md, section 4)
 *
 * ring_flush.h has the policy. What is held leaves with the next progress call at the latest, which also tells
 * what no message carried: what was released, and what is granted.
 *
 * Shown by test/unit/ring/test_ring_tx_leave.c.
 */
#ifndef RING_TX_LEAVE_H
#define RING_TX_LEAVE_H

#include "ring/ring_flush.h"
#include "ring/ring_tx_close.h"
#include "ring/ring_tx_reserve.h"

/**
 * Has the peer something of ours that it has not released? Looks once per batch, it costs a line; and
 * only where the link answers at once: elsewhere the answer would be a round trip late. Nor behind a batch that
 * was full: the peer has hardly seen it, and is about to write that line.
 */
RING_INLINE bool ring_tx_in_flight(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				   struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;

	if (cfg->looks && tx->flow.remote_consumer != tx->flush_start && tx->msg_cnt == 1 &&
	    !tx->filled)
		ring_tx_read_consumer(dev, conn);
	return tx->flow.remote_consumer != tx->flush_start;
}

/**
 * How far a batch that is held may grow before anybody has to think again. It is compared by value, so not in the
 * upper half of all positions, where what is added to one may be a small number.
 */
static inline uint64_t ring_tx_append_end(const struct ring_flush_cfg *cfg,
					  const struct ring_tx *tx)
{
	uint64_t by_policy = ring_flush_full(cfg, tx->flush_start);
	uint64_t by_wrap = (tx->flush_start | (tx->len - 1)) + 1;
	uint64_t by_room = ring_flow_limit(&tx->flow) + WIRE_ALIGN;
	uint64_t end = by_policy < by_wrap ? by_policy : by_wrap;

	if (UTIL_UNLIKELY((int64_t)tx->flow.producer < 0))
		return 0;
	return end < by_room ? end : by_room;
}

/** Leaves the open batch to the progress call, or to what makes it long enough. */
RING_INLINE void ring_tx_defer(const struct ring_flush_cfg *cfg, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;

	tx->left = false;
	tx->filled = false;
	tx->append_end = ring_tx_append_end(cfg, tx);
	tx->append_idle_end = tx->flow.remote_consumer != tx->flush_start ? tx->append_end : 0;
	ring_conn_mark(conn);
}

/** ring_tx.single_room, where no batch is open. */
static inline uint64_t ring_tx_single_room(const struct ring_conn *conn)
{
	const struct ring_tx *tx = &conn->tx;
	uint64_t by_wrap = tx->len - ring_off(tx->flow.producer, tx->len) - WIRE_ALIGN;
	int64_t by_room = (int64_t)(ring_flow_limit(&tx->flow) - tx->flow.producer);

	if (by_room < 0 || tx->post_cnt || tx->flow.granted != tx->flow.grant_max ||
	    !conn->link->inband_len)
		return 0;
	return by_wrap < (uint64_t)by_room ? by_wrap : (uint64_t)by_room;
}

/** A batch has left with its last message. Two in a row: the next ones will be like them. */
RING_INLINE void ring_tx_left(struct ring_conn *conn)
{
	if (conn->tx.left)
		conn->tx.single_room = ring_tx_single_room(conn);
	conn->tx.left = true;
}

/** Lets the batch go or leaves it to the progress call. */
RING_INLINE void ring_tx_flush_by_policy(const struct dev_link_ops *dev,
					 const struct ring_flush_cfg *cfg, struct ring_conn *conn,
					 unsigned flags)
{
	struct ring_tx *tx = &conn->tx;
	bool in_flight = !(flags & CORE_SEND_NOW) && ring_tx_in_flight(dev, cfg, conn);

	if (ring_tx_is_async(dev)) {
		conn->ack.fresh = !(flags & CORE_SEND_NOW);
		conn->ack.awaited = true; /* perhaps; of what joins it, nobody asks here */
	}
	if (UTIL_LIKELY(ring_flush_now(cfg, tx->flush_start, tx->flow.producer,
				       flags & CORE_SEND_MORE, in_flight) &&
			!tx->post_cnt)) {
		tx->filled = tx->msg_cnt > 1 &&
			     ring_flush_is_full(cfg, tx->flush_start, tx->flow.producer);
		assert(!tx->filled || !util_list_is_empty(&conn->dirty_link)); /* it was held */
		ring_tx_close(dev, conn);
		if (!ring_tx_is_async(dev))
			ring_tx_left(conn);
	} else {
		ring_tx_defer(cfg, conn);
	}
	if (ring_tx_is_async(dev))
		conn->ack.fresh = false;
}

/** A batch without messages (or a marker, at the end of a lap): tells consumer and grant. */
RING_INLINE bool ring_tx_credit_only(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;

	if (tx->post_cnt || !ring_flow_admits_control(&tx->flow, WIRE_META_LEN))
		return false;
	if (ring_must_wrap(tx->flow.producer, WIRE_META_LEN, tx->len)) {
		ring_tx_wrap(dev, conn);
		return true;
	}
	ring_tx_open(dev, tx);
	ring_tx_close(dev, conn);
	return true;
}

/**
 * Are there bytes that might not have arrived? Where the device moves them, a READ behind them tells:
 * it comes back when they are placed. For fi_close, which asks until there are none; the peer is
 * told what we have taken in, so that it knows of its own messages before it hears goodbye.
 */
RING_INLINE bool ring_tx_is_busy(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	uint64_t pos;

	if (tx->open || tx->post_cnt)
		return !conn->eng.err;
	if (ring_tx_is_async(dev) && !conn->eng.err &&
	    conn->rx.consumer - conn->rx.advertised > WIRE_META_LEN)
		ring_tx_credit_only(dev, conn);
	if ((conn->link->caps & DEV_CAP_DIRECT) || conn->eng.err ||
	    tx->flow.remote_consumer == tx->flush_start || tx->placed == tx->flush_start)
		return false;
	if (conn->read != RING_READ_OUT && ring_tx_read_start(dev, conn, &pos) == 1)
		return false;
	return true;
}

/** Has the peer something to hear that no message carries? */
static inline bool ring_tx_control_due(const struct ring_conn *conn)
{
	return conn->rx.consumer - conn->rx.advertised > RING_UNADVERTISED_MAX(conn->rx.len) ||
	       ring_flow_grant_due(&conn->tx.flow);
}

/** What a progress call does for a marked connection: true when nothing is left to do. */
RING_INLINE bool ring_tx_progress(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;

	tx->filled = false;
	if (tx->post_cnt)
		ring_tx_repost(dev, conn);
	if (tx->post_cnt)
		return false;
	if (tx->open) {
		ring_tx_close(dev, conn);
		return !tx->post_cnt;
	}
	if (!ring_tx_control_due(conn) || ring_tx_credit_only(dev, conn))
		return !tx->post_cnt;
	ring_tx_read_consumer(dev, conn);
	return false;
}

#endif
