/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arrival of sent messages at the peer, over devices that move the bytes (docs/ring-protocol.md,
 * section 8). Called by core through core_chan_ops.await, by the send side and by progress.
 *
 * Three sources report arrival:
 *
 *   consumer   the consumer position in the peer's batches: free, enough for ping-pong traffic
 *   ack        the batch is posted with write_imm_ack: one completion per batch
 *   fence      a READ posted behind the batch: its completion means that all of it is placed
 *
 * A batch is watched if its arrival is awaited. If no acknowledgement came within two ticks
 * (RING_ACK_TICK_*), a fence is posted, and later batches of the connection are posted with an ack.
 * The connection stops requesting acks when the peer acknowledges everything right after an ack:
 * the consumer position would have been as early. After a miss, more such cases are required. A
 * stream thus costs a completion per batch, a ping-pong none. Where acks are free, the connection
 * goes on to request them. A batch that waits for room in the device gets its ack when it leaves.
 *
 * Reports to core by on_acked. Owner: the thread that holds the domain; the list `unacked` belongs
 * to the transport.
 */
#ifndef RING_RING_ACK_H
#define RING_RING_ACK_H

#include "ring/ring_conn.h"
#include "ring/ring_transport.h"

/*
 * Length of a tick: POLLS progress calls and NS nanoseconds, or LEAST calls and RARE nanoseconds
 * where progress calls are rare.
 */
#define RING_ACK_TICK_POLLS 32u
#define RING_ACK_TICK_NS    5000u
#define RING_ACK_TICK_LEAST 4u
#define RING_ACK_TICK_RARE  200000u
/* Largest number of progress calls between an ack and an acknowledgement that counts as early. */
#define RING_ACK_EARLY_POLLS    256u
#define RING_ACK_EARLY_NEED_MAX 1024u

void ring_ack_init(struct ring_conn *conn);

/** Returns the position up to which everything is known to have arrived at the peer. */
static inline uint64_t ring_ack_arrived(const struct ring_tx *tx)
{
	int64_t ahead = (int64_t)(tx->placed - tx->flow.remote_consumer);

	return ahead > 0 ? tx->placed : tx->flow.remote_consumer;
}

/** Returns true if the arrival of everything that core awaits is known. */
static inline bool ring_ack_is_idle(const struct ring_conn *conn)
{
	return (int64_t)(conn->eng.chan.awaited - ring_ack_arrived(&conn->tx)) <= 0;
}

/** Reports to core how far messages have arrived, if that advanced. */
void ring_ack_advance(struct ring_conn *conn);

/** Watches the batch just posted: its arrival is awaited and no ack was requested for it. */
void ring_ack_watch(struct ring_conn *conn);

/** Implements core_chan_ops.await. */
void ring_ack_await(struct core_chan *chan);

/**
 * Decides whether the batch that leaves now is posted with an ack. The first message of a burst
 * that leaves at once, ahead of the others, is not: their ack covers it. This holds once; if the
 * others do not come, a fence reports the arrival. A deferred single message is the rest of a
 * burst, if there was one.
 */
static inline bool ring_ack_should_request(struct ring_ack *ack, uint32_t msg_cnt)
{
	bool is_first = msg_cnt == 1 && ack->last_is_new && ack->in_burst;

	ack->in_burst = msg_cnt > 1 || (ack->in_burst && !ack->last_is_new);
	return ack->requests_acks && !is_first;
}

/** Handles DEV_EV_ACK. */
void ring_ack_received(struct ring_conn *conn);

/** Handles an acknowledgement from the peer: decides whether acks are still worth requesting. */
void ring_ack_early_cold(struct ring_conn *conn);

/** Handles the acknowledgement that a received batch carried. */
static inline void ring_ack_on_progress(struct ring_conn *conn, uint32_t imm)
{
	if (conn->tx.flow.remote_consumer == conn->ack.seen_consumer)
		return;
	conn->ack.seen_consumer = conn->tx.flow.remote_consumer;
	ring_ack_advance(conn);
	if (UTIL_UNLIKELY(conn->ack.requests_acks || conn->ack.early_need > 1) && imm > 1)
		ring_ack_early_cold(conn);
}

/** Runs one progress call's check of the watched connections: posts fences for the overdue ones. */
void ring_ack_tick_cold(struct ring_transport *transport);

/**
 * Requests acknowledgement of everything awaited, before a thread sleeps. Returns 0, or -FI_EAGAIN
 * if progress must be called first.
 */
int ring_ack_request_all(struct ring_transport *transport);

/** Runs in each progress call. */
static inline void ring_ack_progress(struct ring_transport *transport)
{
	if (UTIL_UNLIKELY(transport->unacked.next != &transport->unacked))
		ring_ack_tick_cold(transport);
}

#endif
