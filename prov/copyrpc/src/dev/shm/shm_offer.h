/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Offer: the round that a receiver publishes so that both ends copy it. Used by shm_share.c (the
 * receiver) and shm_expose.c (the sender).
 *
 * Lies in the control page of the receiver's segment, which the sender maps too. Either end may
 * therefore write anything here. Each word has one owner that follows the rules, and the other end
 * treats its values as a stranger's:
 *
 *   claim         both    generation << 32 | next part; one compare-and-swap takes a part
 *   cnt .. more   receiver    what to copy: keys of the sender's exposures, never addresses of it
 *   dst           receiver    where to: ranges of the receiver's memory
 *   done          sender  generation << 32 | failed << 31 | parts written
 *
 * `dst` has a form that process_vm_writev(2) reads by itself, at the beginning of the call. That
 * makes the sender's right to write revocable: once the receiver has set the lengths to 0, no call
 * that begins later writes a byte, however long the sender was stopped between claim and call.
 */
#ifndef DEV_SHM_SHM_OFFER_H
#define DEV_SHM_SHM_OFFER_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "dev/shm/shm_round.h"

#define SHM_OFFER_DSTS   (SHM_ROUND_PARTS - 1) /* part 0 is the receiver's */
#define SHM_OFFER_CLOSED UINT32_MAX            /* in claim: there is no part */
#define SHM_OFFER_FAILED (1u << 31)            /* in done: a part was not written */

struct shm_link;
struct shm_share;

/** Range of an exposure of the sender. */
struct shm_source {
	uint64_t key; /* dev_mem.remote_key of the exposure */
	uint64_t off; /* from its start */
	uint64_t len;
};

struct shm_offer {
	alignas(128) uint64_t claim;
	uint32_t cnt;   /* gets */
	uint32_t parts; /* parts of each get */
	/* First get and first range share the line of claim: a single get moves one line. */
	struct shm_source first;
	/* Part p of get i of n: dst[(p - 1) * n + i]. */
	struct iovec dst[SHM_OFFER_DSTS];
	struct shm_source more[SHM_ROUND_GETS - 1];
	alignas(128) uint64_t done;
};

static_assert(offsetof(struct shm_offer, dst) + sizeof(struct iovec) <= 64, "one line");
static_assert(SHM_OFFER_DSTS >= SHM_ROUND_GETS, "second parts of a round of several gets");

static inline struct shm_source *shm_offer_source(struct shm_offer *offer, uint32_t i)
{
	return i ? &offer->more[i - 1] : &offer->first;
}

static inline uint64_t shm_offer_word(uint32_t gen, uint32_t value)
{
	return (uint64_t)gen << 32 | value;
}

/* The receiver's half: */

/** Opens a generation for the round of link->share, with part 0 claimed by the receiver. */
void shm_offer_open(struct shm_link *link);

/** Returns the parts that the sender has claimed, as far as the receiver knows. */
uint32_t shm_offer_theirs(const struct shm_share *s);

/** Returns `done` of generation `gen`, or 0 while the sender has reported nothing of it. */
uint32_t shm_offer_done(const struct shm_link *link, uint32_t gen);

/**
 * Claims the next part for the receiver. Returns its index, or the number of parts if there is none
 * now. Sets shm_share.broken if the sender wrote an impossible value.
 */
uint32_t shm_offer_claim(struct shm_link *link);

/**
 * Closes the round to claims and to calls that have not begun. What the sender has claimed is known
 * afterwards. Sets shm_share.broken if the sender wrote an impossible value.
 */
void shm_offer_revoke(struct shm_link *link);

/** Returns true if the sender has reported all parts that it claimed of a revoked round. */
bool shm_offer_is_settled(struct shm_link *link);

#endif
