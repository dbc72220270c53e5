/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is copied together, and which bytes are a part of it?
 *
 * A round: one long fetch, or several shorter ones that wait anyway, because a call of
 * process_vm_readv costs as much as 18 KiB and may name many stretches. Each fetch is cut into the same
 * number of parts, and part i of the round is part i of each of its fetches: whoever copies part i
 * of round after round finds the same places of buffers that are used again in its cache. No part is
 * longer than SHM_PART_MAX: so long at most does a copy keep others waiting for the domain.
 *
 * Pure: no memory of the peer is touched here. Both ends of a link cut alike.
 * Shown by test/unit/dev/shm/test_shm_round.c.
 */
#ifndef SHM_ROUND_H
#define SHM_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define SHM_ROUND_FETCHES 16u          /* at most, in one round */
#define SHM_ROUND_LEN     (256u << 10) /* of several; one that is longer is a round by itself */
#define SHM_ROUND_MIN     (32u << 10)  /* shorter rounds are one part */
#define SHM_ROUND_HALVES  (128u << 10) /* up to here a fetch has two parts, then four and more */
#define SHM_PART_MAX      (128u << 10)

/** What a fetch copies: from the sender's address space to the receiver's. */
struct shm_stretch {
	uint64_t src;
	uint64_t dst;
	uint64_t len;
};

struct shm_round {
	uint32_t cnt;   /* fetches; 0: there is no round */
	uint32_t parts; /* of each */
	struct shm_stretch of[SHM_ROUND_FETCHES];
};

/** One call's worth: local and remote stretches, pairwise as long. */
struct shm_vec {
	struct iovec local[SHM_ROUND_FETCHES];
	struct iovec remote[SHM_ROUND_FETCHES];
	size_t cnt;
	size_t len; /* bytes in all */
};

/** Into how many parts `cnt` fetches of `len` bytes in all are cut. */
uint32_t shm_round_cut(uint32_t cnt, uint64_t len);

/** Bytes [*from, *to) of a stretch of `len` are its part `idx` of `parts`; they may be none. */
void shm_part_of(uint64_t len, uint32_t parts, uint32_t idx, uint64_t *from, uint64_t *to);

/** Could a peer that follows the rules have offered it? */
bool shm_round_is_sound(const struct shm_round *round);

/** Part `idx`, as the receiver reads it, or (`sends`) as the sender writes it. */
void shm_round_part(const struct shm_round *round, uint32_t idx, bool sends, struct shm_vec *vec);

#endif
