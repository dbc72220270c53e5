/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Use of a connection's rings, which decides on their size (engine/eng_room.h): whether the peer's
 * ring limits this end, and whether the own ring is worth its memory.
 *
 * Called by the send paths that find no room, by the engine (eng_transport_ops), and by
 * ring_setup.c in the control thread.
 *
 * Tests: test/unit/ring/test_ring_room.c.
 */
#ifndef RING_RING_ROOM_H
#define RING_RING_ROOM_H

#include "ring/ring_conn.h"
#include "ring/ring_transport.h"

/* Half laps of the peer's ring that end without room before the peer is asked, and asked again */
#define RING_ROOM_REFUSALS 128u
#define RING_ROOM_QUIET_NS (60 * UTIL_NS_PER_S) /* without traffic, before a ring shrinks */

/** Returns the size of a ring that is made now; 0: there is no memory. Any thread. */
uint64_t ring_room_len(const struct ring_transport *transport, const struct core_engine *engine,
		       enum eng_size size);

/**
 * Counts a message that found no room. Many attempts may follow each other, so those of one half
 * lap count once.
 */
void ring_room_refused(struct ring_conn *conn);

/** Implement eng_transport_ops.grows and shrinks. */
bool ring_room_grows(const struct eng_conn *eng);
bool ring_room_shrinks(struct eng_conn *eng);

#endif
