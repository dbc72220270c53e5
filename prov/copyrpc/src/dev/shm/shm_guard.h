/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guard of the inbox of the shared-memory device. Called by shm_watch.c.
 *
 * Every peer can write the inbox as often as it likes, and each look at a line that another
 * processor writes costs a cache miss. So surplus posts, those for which no armed link waits, are
 * counted. Many of them in a row close the inbox: polls look at an empty one instead, and at the
 * device's own only once in SHM_GUARD_LOOK ticks. The inbox opens again when it has had no surplus
 * post for SHM_GUARD_TICKS ticks. A post is late meanwhile by at most SHM_GUARD_LOOK ticks.
 *
 * Also keeps which ids have a link: bits of others are dropped, 64 at a time.
 *
 * Used by the polling thread. Tests: test/unit/dev/shm/test_shm_guard.c, test/integ/shm-attacked.
 */
#ifndef DEV_SHM_SHM_GUARD_H
#define DEV_SHM_SHM_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/shm/shm_inbox.h"

#define SHM_GUARD_SURPLUS 32u   /* looks with surplus posts, less others, that close the inbox */
#define SHM_GUARD_LOOK    16u   /* ticks between two looks at a closed inbox */
#define SHM_GUARD_TICKS   1024u /* ticks without a surplus post that open it */

/** Zeroed memory is an open inbox without links. */
struct shm_guard {
	uint64_t leaves;                  /* bit i: ids[i] is not 0 */
	uint64_t ids[SHM_LINKS_MAX / 64]; /* ids of links */
	uint32_t surplus;                 /* looks; at most SHM_GUARD_SURPLUS */
	uint32_t closed;                  /* ticks until the inbox opens; 0: is open */
};

void shm_guard_add(struct shm_guard *guard, uint32_t id);
void shm_guard_remove(struct shm_guard *guard, uint32_t id);

/** Counts a look that found posts. surplus: none of them was for an armed link. */
void shm_guard_count(struct shm_guard *guard, bool surplus);

/** Counts a tick of a closed inbox. Returns true if it is time for a look. */
bool shm_guard_tick(struct shm_guard *guard);

/** Inbox to look at in the place of one that is closed. Is empty. */
extern struct shm_inbox shm_guard_empty;

#endif
