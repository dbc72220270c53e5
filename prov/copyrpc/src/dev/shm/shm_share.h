/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gets that both processes copy at the same time. Called by shm_bulk and shm_poll.
 *
 * The receiver offers its gets in its control page, a round at a time (shm_round.h). Both ends
 * claim parts: the receiver reads its parts (process_vm_readv); a sender that polls writes its
 * parts (process_vm_writev). Two cores copy nearly twice as fast as one. If the sender computes,
 * the receiver takes all parts.
 *
 *   shm_share_get -> waiting -> round, offered: parts claimed by both -> done -> DEV_EV_GET
 *
 *   claim = generation << 32 | next part      one compare-and-swap takes a part
 *
 * A claim names its generation, so a sender that slept past the end of a round cannot take a part
 * of the next one. The word is closed before the parameters change, after every part of the
 * generation was copied. A part that the sender keeps for long (stopped, descheduled) is waited for
 * by polling: other peers go on. If the sender could not write a part, the receiver reads the round
 * by itself.
 *
 * A poll copies one part for a peer and one local part, which bounds how long it keeps the lock.
 *
 * The receiver owns the offer; the sender claims and counts. The sender validates what it reads
 * there. A malicious receiver can only get its own memory overwritten.
 */
#ifndef DEV_SHM_SHM_SHARE_H
#define DEV_SHM_SHM_SHARE_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/shm/shm_round.h"
#include "util/list.h"

struct dev_event;
struct dev_get;
struct shm_dev;
struct shm_link;

/** Offer in the control page of the receiver's segment. */
struct shm_offer {
	alignas(128) uint64_t claim;
	uint32_t failed;            /* the sender could not write a part */
	struct shm_round round;     /* first fields share the line of claim */
	alignas(128) uint32_t done; /* parts that the sender has written */
};

/** Receiver's gets, in shm_link. */
struct shm_share {
	struct util_list link;    /* in shm_dev.pending while there is any get */
	struct util_list waiting; /* gets to begin: dev_get.dev_link */
	struct util_list done;    /* gets that ended and have no event yet: dev_get.dev_link */
	struct dev_get *gets[SHM_ROUND_GETS];
	struct shm_round round; /* of gets */
	bool offered;           /* the sender may copy parts */
	uint32_t gen;
	uint64_t claim; /* last value read */
	uint32_t mine;  /* parts claimed by the receiver */
};

void shm_share_init(struct shm_share *share);

/** Queues a get for later polls, and returns 0. A DEV_EV_GET follows. */
int shm_share_get(struct shm_link *link, struct dev_get *get);

/** Changes the number of exposures that the peer may get by `delta`: poll looks for its offers. */
void shm_share_expose(struct shm_link *link, int delta);

/** Idle poll: copies for peers and for local gets. Returns true with *ev if a get has ended. */
bool shm_share_poll(struct shm_dev *dev, struct dev_event *ev);

/**
 * Drops all gets. On return no process writes into their buffers: waits for a part in progress,
 * however long, unless its writer is dead.
 */
void shm_share_stop(struct shm_link *link);

#endif
