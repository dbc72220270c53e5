/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rounds: gets that are copied together, and the cut into parts. Called by shm_share and
 * shm_expose.
 *
 * A round is up to SHM_ROUND_MAX bytes of one long get, or several shorter gets that wait anyway: a
 * call of process_vm_readv costs as much as 18 KiB and may have many ranges. Each get is cut into
 * the same number of parts. Part i of the round is part i of each get, so a process that always
 * copies part i finds reused buffers in its cache. SHM_PART_MAX bounds a part, and so the time that
 * a copy keeps the domain's lock.
 *
 * Pure computation. Both ends of a link cut alike.
 */
#ifndef DEV_SHM_SHM_ROUND_H
#define DEV_SHM_SHM_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define SHM_ROUND_GETS 16u /* gets in one round, at most */
/* length of a round of several gets; a longer get is a round by itself */
#define SHM_ROUND_LEN    (256u << 10)
#define SHM_ROUND_MIN    (32u << 10)  /* shorter rounds are one part */
#define SHM_ROUND_HALVES (128u << 10) /* up to here a get has two parts, above four or more */
#define SHM_PART_MAX     (128u << 10)
#define SHM_PART_LOCAL   (512u << 10) /* part of a get that the receiver copies alone */
#define SHM_ROUND_PARTS  128u         /* parts in one round, at most */
#define SHM_ROUND_MAX    ((uint64_t)SHM_ROUND_PARTS * SHM_PART_MAX)

/** Range to copy, from the sender's address space to the receiver's. */
struct shm_stretch {
	uint64_t src;
	uint64_t dst;
	uint64_t len;
};

struct shm_round {
	uint32_t cnt;   /* gets; 0: there is no round */
	uint32_t parts; /* parts of each get */
	struct shm_stretch of[SHM_ROUND_GETS];
};

/** Ranges of one call: local and remote ones, pairwise of equal length. */
struct shm_vec {
	struct iovec local[SHM_ROUND_GETS];
	struct iovec remote[SHM_ROUND_GETS];
	size_t cnt;
	size_t len; /* total bytes */
};

/** Returns the number of parts for `cnt` gets of `len` bytes in all, at most SHM_ROUND_MAX. */
uint32_t shm_round_cut(uint32_t cnt, uint64_t len);

/** Returns the number of parts for one get of `len` bytes that the receiver copies alone. */
uint32_t shm_round_cut_local(uint64_t len);

/** Returns bytes [*from, *to) of a range of `len`, its part `idx` of `parts`; may be empty. */
void shm_part_of(uint64_t len, uint32_t parts, uint32_t idx, uint64_t *from, uint64_t *to);

/**
 * Returns true if a peer that follows the rules could share a round of `cnt` gets in `parts` parts,
 * with `len` bytes in one of them.
 */
bool shm_round_is_sound(uint32_t cnt, uint32_t parts, uint64_t len);

/** Fills vec for part `idx` as the receiver reads it. */
void shm_round_part(const struct shm_round *round, uint32_t idx, struct shm_vec *vec);

#endif
