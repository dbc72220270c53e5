/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whose id is this, and is it still theirs?
 *
 * Maps 31-bit ids that travel on the wire to local pointers. An id is slot | generation << 20: a
 * freed slot comes back under another generation, so an answer that arrives late, twice or from a
 * liar finds nothing instead of somebody else's object (until a slot has been reused 2048 times;
 * freed slots are reused in FIFO order so that this takes as long as possible).
 * A number of 32 bits may be noted with the pointer: what an answer is held against, without a record.
 * Not locked: the owner's lock covers it.
 *
 * Shown by test/unit/util/test_idmap.c.
 */
#ifndef UTIL_IDMAP_H
#define UTIL_IDMAP_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bits.h"

#define UTIL_IDMAP_SLOT_BITS 20
#define UTIL_IDMAP_GEN_BITS  11
#define UTIL_IDMAP_GEN_MASK  ((1u << UTIL_IDMAP_GEN_BITS) - 1)
#define UTIL_IDMAP_MAX       (1u << UTIL_IDMAP_SLOT_BITS)
#define UTIL_IDMAP_NONE      UINT32_MAX

struct util_idmap_slot {
	void *ptr;     /* NULL: free */
	uint32_t gen;  /* 11 bits */
	uint32_t next; /* free list; while it is in use: what was noted */
};

struct util_idmap {
	struct util_idmap_slot *slots;
	uint32_t slot_cnt;
	uint32_t used_cnt;
	uint32_t free_head; /* UTIL_IDMAP_NONE: none */
	uint32_t free_tail; /* while there is a free one */
};

void util_idmap_init(struct util_idmap *map);
void util_idmap_fini(struct util_idmap *map);

/** Makes free slots, of which there are none: 0, -FI_ENOMEM, or -FI_EAGAIN when 2^20 ids are in use. */
int util_idmap_grow_cold(struct util_idmap *map);

/** A slot that is free, of which there are some, is in use: its id. */
static inline struct util_idmap_slot *util_idmap_pop_free(struct util_idmap *map, uint32_t *id)
{
	struct util_idmap_slot *slot = &map->slots[map->free_head];

	*id = map->free_head | slot->gen << UTIL_IDMAP_SLOT_BITS;
	map->free_head = slot->next;
	map->used_cnt++;
	return slot;
}

/** Gives `ptr` (not NULL) an id in *id: 0, or as util_idmap_grow_cold. */
static inline int util_idmap_alloc(struct util_idmap *map, void *ptr, uint32_t *id)
{
	int ret = 0;

	if (UTIL_UNLIKELY(map->free_head == UTIL_IDMAP_NONE))
		ret = util_idmap_grow_cold(map);
	if (UTIL_LIKELY(!ret))
		util_idmap_pop_free(map, id)->ptr = ptr;
	return ret;
}

/** The same, with a note. */
static inline int util_idmap_alloc_noted(struct util_idmap *map, void *ptr, uint32_t note,
					 uint32_t *id)
{
	struct util_idmap_slot *slot;
	int ret = 0;

	if (UTIL_UNLIKELY(map->free_head == UTIL_IDMAP_NONE))
		ret = util_idmap_grow_cold(map);
	if (UTIL_UNLIKELY(ret))
		return ret;
	slot = util_idmap_pop_free(map, id);
	slot->ptr = ptr;
	slot->next = note;
	return 0;
}

/** What was noted with an id that lookup accepts. */
static inline uint32_t util_idmap_note(const struct util_idmap *map, uint32_t id)
{
	return map->slots[id & (UTIL_IDMAP_MAX - 1)].next;
}

/** The pointer behind `id`, or NULL if the id was never given, was released, or has bit 31 set. */
static inline void *util_idmap_lookup(const struct util_idmap *map, uint32_t id)
{
	uint32_t slot = id & (UTIL_IDMAP_MAX - 1);

	if (slot >= map->slot_cnt || map->slots[slot].gen != id >> UTIL_IDMAP_SLOT_BITS)
		return NULL;
	return map->slots[slot].ptr;
}

/** A slot becomes the last free one. */
static inline void util_idmap_push_free(struct util_idmap *map, uint32_t slot)
{
	map->slots[slot].ptr = NULL;
	map->slots[slot].next = UTIL_IDMAP_NONE;
	if (UTIL_UNLIKELY(map->free_head == UTIL_IDMAP_NONE))
		map->free_head = slot;
	else
		map->slots[map->free_tail].next = slot;
	map->free_tail = slot;
}

/** Releases an id that lookup accepts. */
static inline void util_idmap_release(struct util_idmap *map, uint32_t id)
{
	uint32_t slot = id & (UTIL_IDMAP_MAX - 1);

	assert(util_idmap_lookup(map, id));
	map->slots[slot].gen = (map->slots[slot].gen + 1) & UTIL_IDMAP_GEN_MASK;
	util_idmap_push_free(map, slot);
	map->used_cnt--;
}

/** The pointer behind `id`, whose last use this was; or NULL, as lookup. */
static inline void *util_idmap_take(struct util_idmap *map, uint32_t id)
{
	void *ptr = util_idmap_lookup(map, id);

	if (UTIL_LIKELY(ptr != NULL))
		util_idmap_release(map, id);
	return ptr;
}

#endif
