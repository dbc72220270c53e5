/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whose id is this, and is it still theirs?
 *
 * Maps 31-bit ids that travel on the wire to local pointers. An id is slot | generation << 20: a
 * freed slot comes back under another generation, so an answer that arrives late, twice or from a
 * liar finds nothing instead of somebody else's object (until a slot has been reused 2048 times;
 * freed slots are reused in FIFO order so that this takes as long as possible).
 * Not locked: the owner's lock covers it.
 *
 * Shown by test/unit/util/test_idmap.c.
 */
#ifndef UTIL_IDMAP_H
#define UTIL_IDMAP_H

#include <stddef.h>
#include <stdint.h>

#define UTIL_IDMAP_SLOT_BITS 20
#define UTIL_IDMAP_GEN_BITS  11
#define UTIL_IDMAP_MAX       (1u << UTIL_IDMAP_SLOT_BITS)

struct util_idmap_slot {
	void *ptr;     /* NULL: free */
	uint32_t gen;  /* 11 bits */
	uint32_t next; /* free list */
};

struct util_idmap {
	struct util_idmap_slot *slots;
	uint32_t slot_cnt;
	uint32_t used_cnt;
	uint32_t free_head; /* UINT32_MAX: none */
	uint32_t free_tail;
};

void util_idmap_init(struct util_idmap *map);
void util_idmap_fini(struct util_idmap *map);

/** Gives `ptr` (not NULL) an id in *id: 0, -FI_ENOMEM, or -FI_EAGAIN when 2^20 ids are in use. */
int util_idmap_alloc(struct util_idmap *map, void *ptr, uint32_t *id);

/** The pointer behind `id`, or NULL if the id was never given, was released, or has bit 31 set. */
static inline void *util_idmap_lookup(const struct util_idmap *map, uint32_t id)
{
	uint32_t slot = id & (UTIL_IDMAP_MAX - 1);

	if (slot >= map->slot_cnt || map->slots[slot].gen != id >> UTIL_IDMAP_SLOT_BITS)
		return NULL;
	return map->slots[slot].ptr;
}

/** Releases an id that lookup accepts. */
void util_idmap_release(struct util_idmap *map, uint32_t id);

#endif
