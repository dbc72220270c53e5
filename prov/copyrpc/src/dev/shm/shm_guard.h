/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guard of the inbox of the shared-memory device. Called by shm_watch.c.
 *
 * Every peer can write the inbox as often as it likes, and each look at a line that another
 * processor writes costs a cache miss. A post that no writer owed is surplus. SHM_GUARD_SURPLUS
 * more looks with nothing but surplus posts than with others close the inbox: polls look at an
 * empty one instead, and at the device's own once in SHM_GUARD_LOOK ticks. The inbox opens
 * SHM_GUARD_TICKS ticks after the last look with nothing but surplus posts. shm_watch.c closes it,
 * too, when a peer takes its line away. Meanwhile a post is late by at most SHM_GUARD_LOOK ticks.
 *
 * Used by the polling thread. Tests: test/unit/dev/shm/test_shm_guard.c,
 * test/integ/attack/shm-attacked.
 */
#ifndef DEV_SHM_SHM_GUARD_H
#define DEV_SHM_SHM_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/shm/shm_inbox.h"

#define SHM_GUARD_SURPLUS 32u
#define SHM_GUARD_LOOK    16u
#define SHM_GUARD_TICKS   1024u
#define SHM_GUARD_THEFT   16384u /* ticks for which shm_watch.c closes it */

/** Zeroed memory is an open inbox. */
struct shm_guard {
	uint32_t surplus; /* looks with nothing but surplus posts, less others */
	uint32_t closed;  /* ticks until the inbox opens; 0: is open */
};

/** Counts a look that found the inbox set. surplus: no writer owed any of its posts. */
void shm_guard_count(struct shm_guard *guard, bool surplus);

/** Closes the inbox for some ticks. */
void shm_guard_close(struct shm_guard *guard, uint32_t ticks);

/** Counts a tick of a closed inbox. Returns true if it is time for a look. */
bool shm_guard_tick(struct shm_guard *guard);

/** Inbox to look at in the place of one that is closed. */
extern const struct shm_inbox shm_guard_empty;

#endif
