/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Can both processes copy one large message at the same time?
 *
 * The receiver of a fetch offers it in its control page, cut into pieces, and both ends claim
 * pieces: the receiver reads them (process_vm_readv), the sender, if it is polling anyway, writes
 * them (process_vm_writev). Two cores copy nearly twice as fast as one; a sender that computes
 * costs nothing, the receiver takes all pieces.
 *
 *   claim = generation << 32 | next piece      one compare-and-swap takes a piece
 *
 * A claim names the generation it was read in, so a sender that slept over the end of a fetch
 * cannot take a piece of the next one: the word is closed before the parameters change, and they
 * change only after every piece of their generation was copied. The fetch ends when all pieces are
 * copied. One that the sender holds for long (stopped, descheduled) is waited for by polling, not
 * by spinning: other peers go on. A sender that dies cannot write any more; a piece it could not
 * write is read again by the receiver.
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

#include "util/list.h"

struct dev_event;
struct dev_get;
struct shm_dev;
struct shm_link;

#define SHM_SHARE_MIN       (32u << 10)  /* shorter ones are fetched alone: shm_link_bench */
#define SHM_SHARE_HALVES    (128u << 10) /* up to here there are two pieces, then four and more */
#define SHM_SHARE_PIECE_MIN (16u << 10)
#define SHM_SHARE_PIECE_MAX (128u << 10)

/** In the control page of the receiver's segment. */
struct shm_offer {
	alignas(128) uint64_t claim;
	uint64_t src; /* in the sender's address space */
	uint64_t dst; /* in the receiver's */
	uint64_t len;
	uint32_t piece_len;
	uint32_t failed;            /* the sender could not write a piece */
	alignas(128) uint32_t done; /* pieces the sender has written */
};

/** The receiver's side of the fetch that a link shares at the moment. In shm_link. */
struct shm_share {
	struct dev_get *get; /* NULL: none */
	int status;
	uint32_t gen;
	uint32_t theirs;       /* pieces the sender claimed; known when all are */
	struct util_list link; /* shm_dev.pending: waits for the sender */
};

/** Offers and copies: 1 ended (get->status set), 0 the sender still holds pieces (poll goes on). */
int shm_share_get(struct shm_link *link, struct dev_get *get);

/** May this fetch be shared now? */
bool shm_share_fits(const struct shm_link *link, const struct dev_get *get);

/** `delta` more announcements of memory that the peer may fetch: we look for its offers. */
void shm_share_lend(struct shm_link *link, int delta);

/** Idle poll: helps peers, ends what their senders have finished. True: *ev. */
bool shm_share_poll(struct shm_dev *dev, struct dev_event *ev);

/**
 * Withdraws what is offered. Afterwards nobody writes into its buffer: a piece that is being
 * written is waited for, however long, unless its writer is gone.
 */
void shm_share_stop(struct shm_link *link);

#endif
