/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ids of the attached links of a device, in the shape of its inbox. Called by shm_watch.c, which
 * drops the inbox's other bits 64 at a time and looks at links in turn, and by shm_link.c.
 *
 * Used by the polling thread. Tests: test/unit/dev/shm/test_shm_attached.c.
 */
#ifndef DEV_SHM_SHM_ATTACHED_H
#define DEV_SHM_SHM_ATTACHED_H

#include <assert.h>
#include <stdint.h>

#include "dev/shm/shm_inbox.h"

/** Zeroed memory has no ids. */
struct shm_attached {
	uint64_t leaves; /* bit i: ids[i] is not 0 */
	uint64_t ids[SHM_LINKS_MAX / 64];
};

static inline void shm_attached_add(struct shm_attached *attached, uint32_t id)
{
	attached->ids[id / 64] |= 1ull << (id % 64);
	attached->leaves |= 1ull << (id / 64);
}

static inline void shm_attached_remove(struct shm_attached *attached, uint32_t id)
{
	attached->ids[id / 64] &= ~(1ull << (id % 64));
	if (!attached->ids[id / 64])
		attached->leaves &= ~(1ull << (id / 64));
}

/** Returns the id that follows `id`, which need not be attached, in turn. There must be one. */
static inline uint32_t shm_attached_next(const struct shm_attached *attached, uint32_t id)
{
	uint32_t leaf = id / 64;
	uint64_t bits = attached->ids[leaf] & ~1ull << (id % 64), leaves;

	assert(attached->leaves);
	if (!bits) {
		leaves = attached->leaves & ~1ull << leaf;
		leaf = (uint32_t)__builtin_ctzll(leaves ? leaves : attached->leaves);
		bits = attached->ids[leaf];
	}
	return 64 * leaf + (uint32_t)__builtin_ctzll(bits);
}

#endif
