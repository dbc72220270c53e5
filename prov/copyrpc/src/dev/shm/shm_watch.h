/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Set of links that poll looks at. Called by shm_poll.h, shm_link.c and shm_dev.c.
 *
 *            attach, a post, the sweep or the patrol found a word
 *   parked ---------------------------------------------> active
 *          <---------------------------------------------
 *            silent for long, or more than per_poll are active
 *
 * A link is armed from the change of its notify word until a post comes, or a word is found without
 * one: its writer owes one post with its next publish. Parking arms, fences, loads the word once
 * more and stays active if it is set.
 *
 * The writer has no fence between publish and notify, so a parked link may have lost its one
 * notification. It is then unsettled: each tick looks at one unsettled link in turn, so a lost
 * notification is late by at most (unsettled links * polls per tick) polls.
 *
 * Before the device sleeps, membarrier(2) makes every running writer execute the missing fence. A
 * link with a word of 0 after that has a writer that sees the changed notify. It is settled and no
 * longer swept. A surplus post (a stale or a malicious one) disarms a link, which costs another
 * change of notify.
 *
 * Another peer may erase a post. The patrol finds the words of such links: it looks at all attached
 * links in turn, one in SHM_PATROL_TICKS ticks, SHM_PATROL_WAKE more when the bell has woken this
 * process, and all of them when it rang and no post was owed.
 *
 * A peer may write the inbox, or the line of its ring that polls load, without end. Some loads are
 * timed (shm_theft.h): an inbox whose line is taken away is closed for a while, and a link whose
 * line is taken away is distrusted. It is parked then, again after each message, and only posts and
 * the patrol make it active.
 *
 * Runs in the polling thread. Nothing blocks but the membarrier call (microseconds). Tests:
 * test/unit/dev/shm/test_shm_watch.c, test_shm_watch_theft.c, test/stress/stress_shm_link.c.
 */
#ifndef DEV_SHM_SHM_WATCH_H
#define DEV_SHM_SHM_WATCH_H

#include <stdbool.h>

#include "dev/shm/shm_poll.h"
#include "dev/shm/shm_theft.h"

#define SHM_PATROL_TICKS 16u
#define SHM_PATROL_WAKE  16u

#define SHM_TIME_TICKS   32u /* in a row that time loads, at most */
#define SHM_TIME_PATROLS 16u /* from a tick that times loads to the next, in patrols */
#define SHM_TIME_ROUNDS  4u  /* over all links, a link a patrol, after a ring that was suspicious */
#define SHM_TIME_SILENT  32u /* ticks of silence after which the ring of a link is timed */

#define SHM_DISTRUST      1024u /* looks of the patrol, the first time; doubled each time */
#define SHM_DISTRUST_MOST 10u   /* times that it is doubled */

extern const struct shm_tune shm_tune_default;

/** Sets other constants (benchmarks and tests). per_poll must not be 0. */
void shm_watch_tune(struct shm_dev *dev, const struct shm_tune *tune);

/** Makes room for one more active link. Returns 0 or -FI_ENOMEM. */
int shm_watch_reserve(struct shm_dev *dev);

/** Makes a link active, unless it is. */
void shm_watch_add(struct shm_dev *dev, struct shm_link *link);

/** Removes a link from both sets, if it is in one. */
void shm_watch_remove(struct shm_dev *dev, struct shm_link *link);

/** Ends a link whose peer broke the rules. Fills *ev with DEV_EV_DOWN and returns true. */
bool shm_watch_end(struct shm_dev *dev, struct shm_link *link, struct dev_event *ev);

/** Parks an active link, unless its word is set. Returns true if it is parked now. */
bool shm_watch_park(struct shm_dev *dev, struct shm_link *link);

/** Finds what the bell rang for: takes the posts, and looks for links whose post was erased. */
void shm_watch_rung(struct shm_dev *dev);

/**
 * Judges timed loads of the inbox and of the ring of links[timed], and whether they found
 * something: closes the inbox or distrusts the link.
 */
void shm_watch_judge(struct shm_dev *dev, const struct shm_times *times, bool inbox_is_set,
		     bool has_word);

/** Makes every link owe a post before a sleep. Returns 0, or -FI_EAGAIN if a write has arrived. */
int shm_watch_arm_all(struct shm_dev *dev);

#endif
