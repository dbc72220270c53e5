/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When does a sender learn that its message is with the peer, where a device moves the bytes?
 * (docs/ring-protocol.md, section 8)
 *
 *   news   the consumer position in the peer's batches: free, and what ping-pong traffic lives on
 *   ack    the batch itself is posted so that its end is told (write_imm_ack): one completion
 *   fence  a READ behind what was posted: when it is back, all of that is placed
 *
 * A batch that somebody waits for is watched: if no news came within two ticks (RING_LATE_TICK_*),
 * a fence is asked for, and from then on this connection's batches are posted with an ack. It goes
 * back to waiting for news when the peer answers all it was sent right after the ack: then the
 * answer would have told as much; after that was wrong, only if it does so more often. So a stream
 * costs a completion per batch, a ping-pong nothing.
 *
 * core/ hears by on_acked. Owner: whoever holds the domain; `unsure` is the transport's.
 * Shown by test/unit/ring/test_ring_ack.c.
 */
#ifndef RING_ACK_H
#define RING_ACK_H

#include "ring/ring_conn.h"
#include "ring/ring_transport.h"

/* A tick: so many progress calls and so long, or a few and longer where they are rare. */
#define RING_LATE_TICK_POLLS 32u
#define RING_LATE_TICK_NS    5000u
#define RING_LATE_TICK_LEAST 4u
#define RING_LATE_TICK_RARE  200000u
/* Progress calls between an ack and the answer that would have done as well. */
#define RING_LATE_SOON     256u
#define RING_LATE_NEED_MAX 1024u

void ring_ack_init(struct ring_conn *conn);

/** Everything before it is known to be with the peer. */
static inline uint64_t ring_ack_report(const struct ring_tx *tx)
{
	int64_t ahead = (int64_t)(tx->placed - tx->flow.remote_consumer);

	return ahead > 0 ? tx->placed : tx->flow.remote_consumer;
}

/** Does nobody wait for the arrival of anything? */
static inline bool ring_ack_is_idle(const struct ring_conn *conn)
{
	return (int64_t)(conn->eng.chan.awaited - ring_ack_report(&conn->tx)) <= 0;
}

/** Tells core how far the peer is known to have everything, if that is news. */
void ring_ack_advance(struct ring_conn *conn);

/** Somebody waits for what was just posted, and nothing was asked for. */
void ring_ack_watch(struct ring_conn *conn);

/**
 * Is the batch that leaves now posted with an ack? A first message that leaves at once, ahead of the others,
 * is not: theirs will do. Once; if they do not come, a fence finds out. A lone message that was
 * held is the rest of a group, if there was one.
 */
static inline bool ring_ack_should_request(struct ring_ack *ack, uint32_t msg_cnt)
{
	bool is_first = msg_cnt == 1 && ack->fresh && ack->grouped;

	ack->grouped = msg_cnt > 1 || (ack->grouped && !ack->fresh);
	return ack->asks && !is_first;
}

/** DEV_EV_ACK. */
void ring_ack_received(struct ring_conn *conn);

/** The peer has answered: did that make asking superfluous? */
void ring_ack_early_cold(struct ring_conn *conn);

/** A batch of the peer was taken in. */
static inline void ring_ack_on_progress(struct ring_conn *conn, uint32_t imm)
{
	if (conn->tx.flow.remote_consumer == conn->ack.last_acked)
		return;
	conn->ack.last_acked = conn->tx.flow.remote_consumer;
	ring_ack_advance(conn);
	if (UTIL_UNLIKELY(conn->ack.asks || conn->ack.need > 1) && imm > 1)
		ring_ack_early_cold(conn);
}

/** A progress call while connections are unsure: asks where nothing was heard for too long. */
void ring_ack_tick_cold(struct ring_transport *transport);

/** Asks wherever it was not done, before somebody sleeps: 0, or -FI_EAGAIN (progress first). */
int ring_ack_request_all(struct ring_transport *transport);

/** Part of each progress call. */
static inline void ring_ack_progress(struct ring_transport *transport)
{
	if (UTIL_UNLIKELY(transport->unacked.next != &transport->unacked))
		ring_ack_tick_cold(transport);
}

#endif
