/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Maps 31-bit ids that travel on the wire to local pointers.
 *
 * An id is slot | generation << 20. A freed slot is reused under the next generation, so a late,
 * duplicate or forged response finds nothing instead of another object. Slots are reused in FIFO
 * order; an id repeats after its slot has been reused 2048 times. A 32-bit note may be stored with
 * the pointer, so that a response can be checked without loading the object. Not locked: the
 * owner's lock covers the map.
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
	uint32_t next; /* free: next free slot; in use: the note */
};

struct util_idmap {
	struct util_idmap_slot *slots;
	uint32_t slot_cnt;
	uint32_t used_cnt;
	uint32_t free_head; /* UTIL_IDMAP_NONE: no free slot */
	uint32_t free_tail; /* valid while a slot is free */
};

void util_idmap_init(struct util_idmap *map);
void util_idmap_fini(struct util_idmap *map);

/** Adds free slots. Returns 0, -FI_ENOMEM, or -FI_EAGAIN if 2^20 ids are in use. */
int util_idmap_grow_cold(struct util_idmap *map);

/** Takes the first free slot, of which there must be one, and stores its id in *id. */
static inline struct util_idmap_slot *util_idmap_pop_free(struct util_idmap *map, uint32_t *id)
{
	struct util_idmap_slot *slot = &map->slots[map->free_head];

	*id = map->free_head | slot->gen << UTIL_IDMAP_SLOT_BITS;
	map->free_head = slot->next;
	map->used_cnt++;
	return slot;
}

/** Assigns `ptr` (not NULL) an id in *id. Returns 0 or an error of util_idmap_grow_cold. */
static inline int util_idmap_alloc(struct util_idmap *map, void *ptr, uint32_t *id)
{
	int ret = 0;

	if (UTIL_UNLIKELY(map->free_head == UTIL_IDMAP_NONE))
		ret = util_idmap_grow_cold(map);
	if (UTIL_LIKELY(!ret))
		util_idmap_pop_free(map, id)->ptr = ptr;
	return ret;
}

/** Assigns `ptr` an id like util_idmap_alloc and stores `note` with it. */
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

/** Returns the note stored with an id that lookup accepts. */
static inline uint32_t util_idmap_note(const struct util_idmap *map, uint32_t id)
{
	return map->slots[id & (UTIL_IDMAP_MAX - 1)].next;
}

/**
 * Returns the pointer of `id`, or NULL if the id was never assigned, was released, or has bit 31
 * set.
 */
static inline void *util_idmap_lookup(const struct util_idmap *map, uint32_t id)
{
	uint32_t slot = id & (UTIL_IDMAP_MAX - 1);

	if (slot >= map->slot_cnt || map->slots[slot].gen != id >> UTIL_IDMAP_SLOT_BITS)
		return NULL;
	return map->slots[slot].ptr;
}

/** Appends a slot to the free list. */
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

/** Releases `id` and returns its pointer, or NULL if lookup does not find it. */
static inline void *util_idmap_take(struct util_idmap *map, uint32_t id)
{
	void *ptr = util_idmap_lookup(map, id);

	if (UTIL_LIKELY(ptr != NULL))
		util_idmap_release(map, id);
	return ptr;
}

#endif
