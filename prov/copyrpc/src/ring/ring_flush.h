/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Flush of batches, and control information without a message (docs/ring-protocol.md, section 4).
 * Called by the send side after each append and by progress.
 *
 * ring_flush_now is the whole policy: the open batch leaves now or is deferred. A deferred batch
 * leaves with the next progress call at the latest, which also advertises released bytes and grants
 * that no message carried. docs/flush-policy.md justifies the constants by measurements with
 * fabtests/benchmarks/fi_tagged_bench (rate and latency).
 *
 * Also sets the limits below which the next messages skip these checks: ring_tx.fast.append_end,
 * append_idle_end and single_room.
 *
 * Tested by test/unit/ring/test_ring_flush.c and test_ring_tx_leave.c.
 */
#ifndef RING_RING_FLUSH_H
#define RING_RING_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring_access.h"
#include "ring/ring_tx.h"

/**
 * best_len where every write costs a doorbell and a completion (docs/flush-policy.md).
 * Multiple of every path MTU, hence also used for packet_len.
 */
#define RING_NIC_BEST_LEN 4096u

/** Properties of the link; constant per device. */
struct ring_flush_cfg {
	uint32_t best_len;   /* Batches of this many bytes leave unconditionally */
	bool cheap_signal;   /* Signalling is a store, not a doorbell: only FI_MORE defers */
	bool reads_consumer; /* The peer's consumer word can be read at once */
	/*
	 * 32: a full batch ends so that the next head starts in the second half of a cache line; 0:
	 * anywhere
	 */
	uint32_t head_bits;
	uint32_t packet_len; /* Bytes of a packet; 0: the device has no packets */
};

/**
 * Returns true if the open batch, which would send `sent_len` bytes, leaves before a message of
 * `span` bytes is appended. Saves the packet that the message's last bytes would start. A large
 * message starts a packet in any case.
 */
static inline bool ring_flush_before(const struct ring_flush_cfg *cfg, uint64_t sent_len,
				     uint64_t span)
{
	return sent_len + span > cfg->packet_len && span <= cfg->packet_len / 2;
}

/** Returns the position at which a batch that begins at `start` is full. */
static inline uint64_t ring_flush_full(const struct ring_flush_cfg *cfg, uint64_t start)
{
	return (start + cfg->best_len) | cfg->head_bits;
}

static inline bool ring_flush_is_full(const struct ring_flush_cfg *cfg, uint64_t start,
				      uint64_t end)
{
	return end - start >= ring_flush_full(cfg, start) - start;
}

/** Returns true if the open batch [start, end) leaves now. */
static inline bool ring_flush_now(const struct ring_flush_cfg *cfg, uint64_t start, uint64_t end,
				  bool more, bool in_flight)
{
	if (ring_flush_is_full(cfg, start, end))
		return true;
	if (more)
		return false;
	return cfg->cheap_signal || !in_flight;
}

/** Closes the open batch if a message of `span` bytes costs fewer packets in a batch of its own. */
UTIL_INLINE void ring_flush_end_packet(const struct dev_link_ops *dev,
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
 * Returns true if the peer holds unreleased bytes. Reads the consumer word once per batch, since it
 * costs a cache line, and only where the link returns it at once: elsewhere the value is a round
 * trip late. Does not read it behind a full batch: the peer has hardly seen that one and is about
 * to write the line.
 */
UTIL_INLINE bool ring_flush_in_flight(const struct dev_link_ops *dev,
				      const struct ring_flush_cfg *cfg, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;

	if (cfg->reads_consumer && tx->flow.remote_consumer != tx->flush_start &&
	    tx->msg_cnt == 1 && !tx->fast.flushed_full)
		ring_tx_read_consumer(dev, conn);
	return tx->flow.remote_consumer != tx->flush_start;
}

/**
 * Returns the limit for append_end. The limit is compared by value, so it is 0 in the upper half of
 * all positions, where a sum may overflow.
 */
static inline uint64_t ring_flush_append_end(const struct ring_flush_cfg *cfg,
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

/** Defers the open batch to the progress call, or until it is full. */
UTIL_INLINE void ring_flush_defer(const struct ring_flush_cfg *cfg, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;

	tx->fast.flushed_at_once = false;
	tx->fast.flushed_full = false;
	tx->fast.append_end = ring_flush_append_end(cfg, tx);
	tx->fast.append_idle_end =
		tx->flow.remote_consumer != tx->flush_start ? tx->fast.append_end : 0;
	ring_conn_mark_dirty(conn);
}

/** Returns the value for single_room. No batch is open. */
static inline uint64_t ring_flush_single_room(const struct ring_conn *conn)
{
	const struct ring_tx *tx = &conn->tx;
	uint64_t by_wrap = tx->len - ring_off(tx->flow.producer, tx->len) - WIRE_ALIGN;
	int64_t by_room = (int64_t)(ring_flow_limit(&tx->flow) - tx->flow.producer);

	if (by_room < 0 || tx->post_cnt || tx->flow.granted != tx->flow.grant_max ||
	    !conn->link->inband_len)
		return 0;
	return by_wrap < (uint64_t)by_room ? by_wrap : (uint64_t)by_room;
}

/**
 * Handles a batch that left with its last message. After two in a row, single_room is set: the next
 * ones are likely alike.
 */
UTIL_INLINE void ring_flush_note_at_once(struct ring_conn *conn)
{
	if (conn->tx.fast.flushed_at_once)
		conn->tx.fast.single_room = ring_flush_single_room(conn);
	conn->tx.fast.flushed_at_once = true;
}

/** Flushes the open batch or defers it. */
UTIL_INLINE void ring_flush_by_policy(const struct dev_link_ops *dev,
				      const struct ring_flush_cfg *cfg, struct ring_conn *conn,
				      unsigned flags)
{
	struct ring_tx *tx = &conn->tx;
	bool in_flight = !(flags & CORE_SEND_NOW) && ring_flush_in_flight(dev, cfg, conn);

	if (ring_tx_is_async(dev)) {
		conn->ack.last_is_new = !(flags & CORE_SEND_NOW);
		/* Assumed; core does not call `await` for appended messages */
		conn->ack.awaited = true;
	}
	if (UTIL_LIKELY(ring_flush_now(cfg, tx->flush_start, tx->flow.producer,
				       flags & CORE_SEND_MORE, in_flight) &&
			!tx->post_cnt)) {
		tx->fast.flushed_full = tx->msg_cnt > 1 &&
					ring_flush_is_full(cfg, tx->flush_start, tx->flow.producer);
		/* The batch was deferred */
		assert(!tx->fast.flushed_full || !util_list_is_empty(&conn->dirty_link));
		ring_tx_close(dev, conn);
		if (!ring_tx_is_async(dev))
			ring_flush_note_at_once(conn);
	} else {
		ring_flush_defer(cfg, conn);
	}
	if (ring_tx_is_async(dev))
		conn->ack.last_is_new = false;
}

/**
 * Sends a batch without messages, or a marker at the end of a lap: advertises consumer and grant.
 * Returns false if there is no space.
 */
UTIL_INLINE bool ring_flush_credit_only(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;

	if (tx->post_cnt || !ring_flow_admits_control(&tx->flow, WIRE_META_LEN))
		return false;
	if (ring_must_wrap(tx->flow.producer, WIRE_META_LEN, tx->len)) {
		ring_tx_wrap(dev, conn);
		return true;
	}
	ring_tx_open(dev, tx);
	ring_tx_close_len(dev, conn, WIRE_META_LEN, true);
	return true;
}

/**
 * Returns true while bytes may not have arrived. fi_close polls it. Where the device moves the
 * bytes, a READ behind them reports their arrival. Also advertises the consumer position, so that
 * the peer completes its own messages before it receives the disconnect.
 */
UTIL_INLINE bool ring_flush_is_busy(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	bool accesses = ring_access_is_busy(dev, conn);
	uint64_t pos;

	if (tx->open || tx->post_cnt || UTIL_UNLIKELY(ring_takeover_is_on(conn)))
		return !conn->eng.err;
	if (ring_tx_is_async(dev) && !conn->eng.err &&
	    conn->rx.consumer - conn->rx.advertised > WIRE_META_LEN)
		ring_flush_credit_only(dev, conn);
	if ((conn->link->caps & DEV_CAP_DIRECT) || conn->eng.err ||
	    tx->flow.remote_consumer == tx->flush_start || tx->placed == tx->flush_start)
		return accesses;
	if (conn->read != RING_READ_POSTED && ring_tx_read_start(dev, conn, &pos) == 1)
		return accesses;
	return true;
}

/** Returns true if released bytes or a grant must be advertised without a message. */
static inline bool ring_flush_control_due(const struct ring_conn *conn)
{
	return conn->rx.consumer - conn->rx.advertised > RING_UNADVERTISED_MAX(conn->rx.len) ||
	       ring_flow_grant_due(&conn->tx.flow);
}

/** Flushes a dirty connection. Returns true if nothing is left to do. */
UTIL_INLINE bool ring_flush_dirty(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;

	tx->fast.flushed_full = false;
	if (tx->post_cnt && dev->kick)
		dev->kick(conn->link); /* the queue may be full of transfers with DEV_GET_MORE */
	if (tx->post_cnt)
		ring_tx_repost(dev, conn);
	if (tx->post_cnt)
		return false;
	if (tx->open) {
		ring_tx_close(dev, conn);
		return !tx->post_cnt;
	}
	if (dev->kick)
		dev->kick(conn->link);
	if (!ring_flush_control_due(conn) || ring_flush_credit_only(dev, conn))
		return !tx->post_cnt;
	ring_tx_read_consumer(dev, conn);
	return false;
}

#endif
