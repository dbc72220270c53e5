/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gets that both processes copy at the same time: the receiver's half. Called by shm_bulk, shm_poll
 * and shm_link. The sender's half is shm_expose.h.
 *
 * The receiver offers its gets in its control page, a round at a time (shm_offer.h). Both ends
 * claim parts: the receiver reads its parts (process_vm_readv); a sender that polls writes its
 * parts (process_vm_writev). Two cores copy nearly twice as fast as one. If the sender computes,
 * the receiver takes all parts.
 *
 *   get -> waiting -> round, offered: parts claimed by both -> done -> DEV_EV_GET
 *                        |  ^
 *              revoked   v  | the sender has finished, or SHM_SHARE_GRACE_NS passed: read again
 *                      revoked
 *
 * A claim names its generation, so a sender that slept past the end of a round cannot take a part
 * of the next one. The word is closed before the parameters change.
 *
 * No wait for a sender is without end. A part that the sender keeps is waited for by polling: other
 * peers go on. After SHM_SHARE_LATE_NS the round is revoked, which makes every call of the sender
 * that begins later write nothing. A call that had begun copies at most SHM_PART_MAX bytes of each
 * get in the kernel, where neither a stop nor a debugger delays it, and gets SHM_SHARE_GRACE_NS.
 * Then the receiver reads the round by itself, and offers nothing more on this link until the
 * sender has reported its part.
 *
 * Every value that the peer could have written is checked; an impossible one ends the link.
 *
 * A poll copies one part for a peer and one local part, which bounds how long it keeps the lock.
 */
#ifndef DEV_SHM_SHM_SHARE_H
#define DEV_SHM_SHM_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/shm/shm_offer.h"
#include "util/clock.h"
#include "util/list.h"

#define SHM_SHARE_YIELD_NS 10000ull               /* then the processor is offered to others */
#define SHM_SHARE_LATE_NS  (100 * UTIL_NS_PER_MS) /* then the round is revoked */
#define SHM_SHARE_GRACE_NS (2 * UTIL_NS_PER_S)    /* for a call that began before it was revoked */
#define SHM_SHARE_PROBE_NS UTIL_NS_PER_MS         /* between two looks whether the sender is dead */

struct dev_event;
struct dev_get;
struct shm_dev;
struct shm_link;

enum shm_share_state {
	SHM_SHARE_LOCAL,   /* the round is not offered */
	SHM_SHARE_OFFERED, /* the sender may copy parts */
	SHM_SHARE_REVOKED, /* a call of the sender may still be in the kernel */
};

/** Receiver's gets, in shm_link. */
struct shm_share {
	struct util_list link;    /* in shm_dev.pending while there is any get */
	struct util_list waiting; /* gets to begin: dev_get.dev_link */
	struct util_list done;    /* gets that ended and have no event yet: dev_get.dev_link */
	struct dev_get *gets[SHM_ROUND_GETS];
	struct shm_round round; /* of gets */
	uint64_t at;            /* offset of the round in a get that takes several */
	enum shm_share_state state;
	uint32_t gen;
	uint64_t claim;     /* last value accepted */
	uint32_t mine;      /* parts claimed by the receiver */
	uint64_t since_ns;  /* start of the wait for the sender in this state; 0: no wait */
	uint64_t probed_ns; /* last look whether the sender is dead */
	uint32_t owed_gen;  /* generation of a part that the sender never reported */
	uint32_t owed;      /* parts not reported of owed_gen; 0: none */
	bool broken;        /* the peer wrote an impossible value */
	bool withdrawn;     /* the engine drops the gets */
};

void shm_share_init(struct shm_share *share);

/** Queues a get for later polls, and returns 0. A DEV_EV_GET follows. */
int shm_share_get(struct shm_link *link, struct dev_get *get);

/**
 * Idle poll: copies for peers and for local gets. Returns true with *ev if a get has ended, a link
 * is withdrawn, or a peer broke the rules.
 */
bool shm_share_poll(struct shm_dev *dev, struct dev_event *ev);

/**
 * Implements dev_link_ops.withdraw: drops all gets. Returns true if no process writes into their
 * buffers any more. Else a DEV_EV_WITHDRAWN follows, SHM_SHARE_GRACE_NS later at the latest.
 */
bool shm_share_withdraw(struct shm_link *link);

/** Withdraws, and waits until no process writes into the buffers: SHM_SHARE_GRACE_NS at most. */
void shm_share_stop(struct shm_link *link);

#endif
