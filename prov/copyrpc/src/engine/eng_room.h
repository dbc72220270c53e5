/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rings that follow use: a connection whose ring is too small, or larger than its use, is replaced
 * (core/core_failback.h) by one with a ring of another size.
 *
 *   writer of a ring                             owner of its memory
 *   waits for room again and again
 *   eng_room_want   --FAILBACK {ASK, ROOM}-----> has memory (grows)
 *                   <--FAILBACK {YES}----------- notes the peer (eng_chan_resize)
 *                   <===== next connection ====> prepared as ENG_SIZE_LARGE
 *
 *                                                is short of memory: eng_room_note_short
 *                   <--FAILBACK {ASK, QUIET}---- has a large ring that is idle (shrinks)
 *                   ---FAILBACK {YES}----------> notes the peer
 *                   <===== next connection ====> prepared as ENG_SIZE_SMALL
 *
 * Both ends connect again, and either may be the one that begins, more than once if both do. So the
 * note is of the peer's incarnation, and valid for a time. The writer asks again while it waits for
 * room; each attempt that follows soon comes after a longer pause.
 *
 * Runs in the domain's thread; eng_room_note_short and eng_room_size in the control thread.
 *
 * Tests: test/unit/engine/test_eng_room.c; test/integ/peer/rooms.
 */
#ifndef ENGINE_ENG_ROOM_H
#define ENGINE_ENG_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/eng_conn.h"
#include "engine/eng_engine.h"

#define ENG_ROOM_NOTE_NS (10 * UTIL_NS_PER_S) /* validity of a note: a handshake and its retries */
#define ENG_ROOM_SHORT_NS                                                                          \
	(150 * UTIL_NS_PER_S) /* after the last small ring: beyond twice RING_ROOM_QUIET_NS */

/** Notes that the peer's ring limits this end: the peer is asked for a larger one. */
void eng_room_want(struct eng_conn *conn);

/** Notes that a connection gets a small ring: idle large ones are looked for, for a time. */
void eng_room_note_short(struct core_engine *engine);
/** Returns true during that time. Any thread. */
bool eng_room_is_short(const struct core_engine *engine);

/** Implements core_chan_ops.resize. */
void eng_chan_resize(struct core_chan *chan, bool is_larger);

/** Returns the size of the next connection to the peer with this incarnation. */
enum eng_size eng_room_size(struct core_engine *engine, uint64_t incarnation);

/** Returns true if connections of the engine may be replaced for their size. */
bool eng_room_is_due(const struct core_engine *engine);

/**
 * Returns the reasons (CORE_BETTER_*) for which this end asks for a replacement, or with
 * `asks` false those for which it agrees to one.
 */
uint32_t eng_room_reasons(struct eng_conn *conn, bool asks);

/** The connection ends. */
void eng_room_forget(struct eng_conn *conn);

#endif
