/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Evidence that a peer takes a shared line away from polls. Called by shm_watch.c.
 *
 * A peer can write a line that polls load without end, so that each load is a cache miss. The
 * values say nothing: the line holds 0, as it does while nothing has come. So some loads of lines
 * that the last tick has loaded, too, are timed by the processor's counter, and compared with a
 * load from private memory and with the time of a tick's polls. A load that takes longer than
 * allowed adds to a sum, a shorter one reduces it.
 *
 * The limit of one load grows with the time between polls. Where the program does other work
 * between them, its lines leave the cache without a peer's help, and a miss costs it little.
 *
 * Where there is no such counter (util_tick_count), no load is timed. Pure. Tests:
 * test/unit/dev/shm/test_shm_theft.c.
 */
#ifndef DEV_SHM_SHM_THEFT_H
#define DEV_SHM_SHM_THEFT_H

#include <stdbool.h>
#include <stdint.h>

#define SHM_THEFT_ALLOWED 24u  /* counts that a load may take more than a private one */
#define SHM_THEFT_SHARE   256u /* part of a tick's time that it may take more, if that is longer */
#define SHM_THEFT_MOST    128u /* counts of one load that are added, at most */
#define SHM_THEFT_DOUBT   24u  /* sum from which on another look is worth its time */
#define SHM_THEFT_SUM     256u

/** Times of loads, in counts. */
struct shm_times {
	uint64_t tick;  /* of the last tick with its polls */
	uint64_t own;   /* of a load from private memory */
	uint64_t inbox; /* of the inbox */
	uint64_t ring;  /* of a ring */
};

/**
 * Adds a load that took `counts` and found nothing to *sum. Returns true if the sum is reached,
 * which begins again then.
 */
bool shm_theft_add(uint32_t *sum, const struct shm_times *times, uint64_t counts);

#endif
