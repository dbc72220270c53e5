/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ids of the attached links of a device, in the shape of its inbox. Called by shm_watch.c, which
 * drops the inbox's other bits 64 at a time, and by shm_link.c.
 *
 * Used by the polling thread. Tests: test/unit/dev/shm/test_shm_attached.c.
 */
#ifndef DEV_SHM_SHM_ATTACHED_H
#define DEV_SHM_SHM_ATTACHED_H

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

#endif
