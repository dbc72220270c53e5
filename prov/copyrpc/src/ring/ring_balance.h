/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Moves of connections to queue pairs of their own, and back. Called by ring_life.c and, every
 * FI_COPYRPC_RC_INTERVAL, by the engine (eng_transport_ops.tick).
 *
 * The control thread sets the pace; progress, which owns the connections and their counts, decides
 * (ring_moves.h). Messages count as the bytes that they take on the two rings, which are positions
 * anyway, and simple accesses as RING_BALANCE_ACCESS bytes: the data path counts nothing for this.
 *
 * Owner: the thread that holds the domain. Tests: test/unit/ring/test_ring_balance.c.
 */
#ifndef RING_RING_BALANCE_H
#define RING_RING_BALANCE_H

#include "ring/ring_transport.h"

#define RING_BALANCE_ACCESS 64u

/** Adds a connection that was attached, if its link moves. */
void ring_balance_add(struct ring_conn *conn);

/** Removes a connection. Any number of times. */
static inline void ring_balance_remove(struct ring_conn *conn)
{
	util_list_remove(&conn->balance_link);
}

/** Implements eng_transport_ops.tick. */
void ring_balance_look(struct eng_transport *transport);

/** Likewise at `now_ns`, by util_clock_ns. */
void ring_balance_look_at(struct ring_transport *transport, uint64_t now_ns);

#endif
