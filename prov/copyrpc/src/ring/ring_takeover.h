/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Takeover: the rail of a connection takes the place of its first link, and nothing is lost
 * (docs/rails.md, section 4). Called by ring_rail.c, and where a link fails.
 *
 * Both links use the same rings. All bytes that the peer has not released are in the local send
 * ring, so what did not arrive can be written again, over the rail.
 *
 *   BESIDE --the first link fails, or the peer's position arrives--> LEFT --own position sent-->
 *   SENT --the peer's position has arrived--> TAKEN
 *
 * LEFT: the first link is detached: the device writes nothing more into the local ring, and what
 * has been received of the peer is final. The position is that number, rx.producer, as the
 * immediate of a write over the rail. It is sent once. Its receiver writes all batches from there
 * on again, with their metadata, and goes on behind them. Gets that were in progress on the first
 * link are posted again, with the second device's key.
 *
 * Meanwhile the first link is dead: it accepts nothing, so batches wait in ring_tx.posts, and gets
 * are held. Leases name keys of the first device: from then on remote memory access goes by calls.
 * The connection fails if a direct access is in progress, which cannot be done again, or if the
 * rail fails meanwhile.
 *
 * Owner: the thread that holds the domain. Tests: test/unit/ring/test_ring_takeover.c; on the
 * device model test/integ/peer/outage.
 */
#ifndef RING_RING_TAKEOVER_H
#define RING_RING_TAKEOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring_bulk.h"
#include "ring/ring_rail.h"

/** Begins the takeover of a first link that has failed. Returns false if the connection fails. */
bool ring_takeover_begin(struct ring_conn *conn);
/** Handles an immediate over a rail that has not taken over: the peer's position. */
void ring_takeover_received(struct ring_conn *conn, uint32_t imm);
/**
 * Takes the next steps of takeovers, as far as there is room. `is_drained`: the poll of the first
 * device has found no more events, before the second one was polled.
 */
void ring_takeover_work(struct ring_rails *rails, bool is_drained);

/** Returns true if a thread must not sleep: there was no room for all of ring_takeover_work. */
bool ring_takeover_is_due(const struct ring_rails *rails);

/** Returns true while the first link is dead, and the rail has not taken over. */
static inline bool ring_takeover_is_on(const struct ring_conn *conn)
{
	return conn->rail &&
	       (conn->rail->phase == RING_RAIL_LEFT || conn->rail->phase == RING_RAIL_SENT);
}

/** Holds a get back until the rail has taken over. The buffers are not registered. */
void ring_takeover_hold(struct ring_get *rget);

/**
 * Returns the key of exposed memory for the link of the connection: that of the second device, in
 * the upper half, once the rail has taken over, unless the peer exposed it later than that.
 */
static inline uint64_t ring_takeover_key(const struct ring_conn *conn, uint64_t key)
{
	bool is_second = conn->rail->phase == RING_RAIL_TAKEN && key >> 32;

	return is_second ? key >> 32 : (uint32_t)key;
}

/**
 * Returns true with the next batch that is written again in *post, and advances; false behind the
 * last one, and if the ring does not contain batches: then the connection has failed.
 */
bool ring_takeover_next(struct ring_conn *conn, struct ring_post *post);

#endif
