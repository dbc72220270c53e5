/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which links does poll look at, and why is none forgotten?
 *
 *            attach, a post, the sweep found something
 *   parked ---------------------------------------------> active
 *          <---------------------------------------------
 *            silent for long, while others want the place
 *
 * A link is ARMED from the change of its notify word until a post comes: its writer owes one post
 * with its next publish. Parking arms, fences, looks at the word once more and stays active if it
 * is set.
 *
 * The writer has no fence between publish and notify, so a parked link may have lost its one
 * notification. It is then UNSETTLED: each tick looks at one of those in turn, and a tick comes
 * every few polls, so that a lost notification is late by (unsettled links * polls per tick) polls
 * at most. Before the device sleeps, membarrier(2) makes every writer that runs execute the missing
 * fence; a word that is 0 after that has a writer that sees the changed notify, the link is SETTLED
 * and no longer swept.
 * A spare post (an old one, a liar's) disarms a link that was armed: it costs another change of
 * notify.
 *
 * Owner: whoever holds the domain. Nothing here blocks but the membarrier call (microseconds).
 *
 * Shown by test/unit/dev/shm/test_shm_watch.c, test/stress/stress_shm_link.c.
 */
#ifndef SHM_WATCH_H
#define SHM_WATCH_H

#include <stdbool.h>

#include "dev/shm/shm_poll.h"

extern const struct shm_tune shm_tune_default;

/** Uses these constants from now on (benchmarks and tests; 0 visits is not allowed). */
void shm_watch_tune(struct shm_dev *dev, const struct shm_tune *tune);

/** Room for one more active link: 0 or -FI_ENOMEM. */
int shm_watch_reserve(struct shm_dev *dev);

/** Parked, or just attached -> active. Harmless when active. */
void shm_watch_add(struct shm_dev *dev, struct shm_link *link);

/** Out of both. Harmless when in neither. */
void shm_watch_remove(struct shm_dev *dev, struct shm_link *link);

/** Active -> parked, unless something has come: true if it is parked now. */
bool shm_watch_park(struct shm_dev *dev, struct shm_link *link);

/** Makes every link owe a post, for a sleep: 0, or -FI_EAGAIN if something has come already. */
int shm_watch_arm_all(struct shm_dev *dev);

/** May this process use membarrier(2)? Registers it; call once per device. */
bool shm_membarrier_register(void);

#endif
