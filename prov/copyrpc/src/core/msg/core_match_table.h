/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hash table from (tag, source) to objects. Called by core_match.c.
 *
 * The objects with one key form a circular list, oldest first, through a link that they embed.
 * Memory is allocated only when the table grows; one that cannot grow takes no more keys.
 * Erasing closes the gap instead of leaving a tombstone, so probes stay short.
 */
#ifndef CORE_MSG_CORE_MATCH_TABLE_H
#define CORE_MSG_CORE_MATCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/list.h"

/** Key and the objects that have it. */
struct core_match_slot {
	uint64_t tag;
	uint64_t src;
	uint64_t hash;
	struct util_list *first; /* oldest of a circular list; NULL: the slot is free */
};

/** Open addressing, linear probing, at most half full. */
struct core_match_table {
	struct core_match_slot *slots; /* NULL until the first push */
	size_t mask;                   /* slots - 1 */
	size_t key_cnt;
};

/** Removes a link from its list without resetting it. */
static inline void core_match_unlink(struct util_list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
}

/** Folds the halves of a 128-bit product: one multiplication mixes every bit downwards. */
static inline uint64_t core_match_hash(uint64_t tag, uint64_t src)
{
	unsigned __int128 p =
		(unsigned __int128)(tag ^ 0x9E3779B97F4A7C15ull) * (src ^ 0xD1B54A32D192ED03ull);

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/** Returns the slot of the key, or the free one to put it in. At least one slot is free. */
static inline struct core_match_slot *core_match_table_probe(const struct core_match_table *t,
							     uint64_t hash, uint64_t tag,
							     uint64_t src)
{
	size_t i = hash & t->mask;

	while (t->slots[i].first && (t->slots[i].tag != tag || t->slots[i].src != src))
		i = (i + 1) & t->mask;
	return &t->slots[i];
}

/** Returns the oldest object with the key, or NULL. */
static inline struct util_list *core_match_table_first(const struct core_match_table *t,
						       uint64_t tag, uint64_t src)
{
	if (!t->key_cnt)
		return NULL;
	return core_match_table_probe(t, core_match_hash(tag, src), tag, src)->first;
}

/** Adds `link` as the youngest with its key. Returns false if the table is full for good. */
bool core_match_table_push(struct core_match_table *t, uint64_t tag, uint64_t src,
			   struct util_list *link);
/** Removes `link`, which need not be the oldest with its key. */
void core_match_table_remove(struct core_match_table *t, uint64_t tag, uint64_t src,
			     struct util_list *link);

/** Empties the table and frees its memory. */
void core_match_table_free(struct core_match_table *t);
/** Frees the memory of an empty table if it is large. */
void core_match_table_trim(struct core_match_table *t);

#endif
