/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Can both processes copy large messages at the same time?
 *
 * The receiver of fetches offers them in its control page, a round at a time (shm_round.h), and both ends
 * claim parts of it: the receiver reads them (process_vm_readv), the sender, if it is polling
 * anyway, writes them (process_vm_writev). Two cores copy nearly twice as fast as one; a sender that
 * computes costs nothing, the receiver takes all parts.
 *
 *   shm_share_get -> waiting -> round, offered: parts claimed by both -> done -> DEV_EV_GET
 *
 *   claim = generation << 32 | next part      one compare-and-swap takes a part
 *
 * A claim names the generation it was read in, so a sender that slept over the end of a round
 * cannot take a part of the next one: the word is closed before the parameters change, and they
 * change only after every part of their generation was copied. What the sender holds for long (stopped,
 * descheduled) is waited for by polling: other peers go on. A sender that dies cannot write any more;
 * where it could not write a part, the receiver reads the round by itself.
 *
 * A poll copies a part for a peer and one for us, and no more: whoever waits for the domain's lock
 * waits that long.
 *
 * Owner: the offer is the receiver's; the sender claims and counts, nothing else. What the sender
 * reads there is validated: the worst a liar gets is his own memory overwritten.
 *
 * Shown by test/unit/dev/shm/test_shm_share.c.
 */
#ifndef SHM_SHARE_H
#define SHM_SHARE_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/shm/shm_round.h"
#include "util/list.h"

struct dev_event;
struct dev_get;
struct shm_dev;
struct shm_link;

/** In the control page of the receiver's segment. */
struct shm_offer {
	alignas(128) uint64_t claim;
	uint32_t failed;            /* the sender could not write a part */
	struct shm_round round;     /* what of it comes first is in the line of the claim */
	alignas(128) uint32_t done; /* parts the sender has written */
};

/** The receiver's side. In shm_link. */
struct shm_share {
	struct util_list link;    /* shm_dev.pending, while there is any of these: */
	struct util_list waiting; /* dev_get.dev_link */
	struct util_list done;    /* the same: ended, to be told */
	struct dev_get *gets[SHM_ROUND_FETCHES];
	struct shm_round round; /* of gets */
	bool offered;           /* the sender may take part in it */
	uint32_t gen;
	uint64_t claim; /* as we last saw it */
	uint32_t mine;  /* parts that we claimed */
};

void shm_share_init(struct shm_share *share);

/** Takes a fetch, which polls will carry out: 0, and an event when it has ended. */
int shm_share_get(struct shm_link *link, struct dev_get *get);

/** `delta` more announcements of memory that the peer may fetch: we look for its offers. */
void shm_share_expose(struct shm_link *link, int delta);

/** Idle poll: copies for peers and for us, tells what has ended. True: *ev. */
bool shm_share_poll(struct shm_dev *dev, struct dev_event *ev);

/**
 * Drops all fetches. Afterwards nobody writes into their buffers: a part that is being
 * written is waited for, however long, unless its writer is gone.
 */
void shm_share_stop(struct shm_link *link);

#endif
