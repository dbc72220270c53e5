/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who has this tag and source?
 *
 * A hash table of circles: the objects of a key stand in one, oldest first, linked by a link of their own, so
 * nothing is allocated but when the table grows. A table that cannot grow takes no more keys.
 *
 * Why no tombstones: erasing closes the gap, so a table that was once full probes as a new one.
 *
 * Shown by test/unit/core/msg/test_core_match_table.c.
 */
#ifndef CORE_MATCH_TABLE_H
#define CORE_MATCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/list.h"

/** One key of a table and the objects that have it. */
struct core_match_slot {
	uint64_t tag;
	uint64_t src;
	uint64_t hash;
	struct util_list *first; /* oldest of a circle of buckets; NULL: the slot is free */
};

/** Open addressing, linear probing, at most half full. */
struct core_match_table {
	struct core_match_slot *slots; /* NULL: none yet */
	size_t mask;                   /* slots - 1 */
	size_t key_cnt;
};

/** As util_list_remove, for a link whose content nobody reads again. */
static inline void core_match_unlink(struct util_list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
}

/** The halves of a 64 by 64 bit product, folded: one multiplication mixes every bit downwards. */
static inline uint64_t core_match_hash(uint64_t tag, uint64_t src)
{
	unsigned __int128 p =
		(unsigned __int128)(tag ^ 0x9E3779B97F4A7C15ull) * (src ^ 0xD1B54A32D192ED03ull);

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/** The slot of the key, or the free one where it would go. There is at least one free slot. */
static inline struct core_match_slot *core_match_table_probe(const struct core_match_table *t,
							     uint64_t hash, uint64_t tag,
							     uint64_t src)
{
	size_t i = hash & t->mask;

	while (t->slots[i].first && (t->slots[i].tag != tag || t->slots[i].src != src))
		i = (i + 1) & t->mask;
	return &t->slots[i];
}

/** The oldest object with the key, or NULL. */
static inline struct util_list *core_match_table_first(const struct core_match_table *t,
						       uint64_t tag, uint64_t src)
{
	if (!t->key_cnt)
		return NULL;
	return core_match_table_probe(t, core_match_hash(tag, src), tag, src)->first;
}

/** Adds `link` as the youngest with its key: false if the table is full and cannot grow. */
bool core_match_table_push(struct core_match_table *t, uint64_t tag, uint64_t src,
			   struct util_list *link);
/** Takes it out again, from whatever place in its circle. */
void core_match_table_remove(struct core_match_table *t, uint64_t tag, uint64_t src,
			     struct util_list *link);

/** Forgets all, and its memory. */
void core_match_table_free(struct core_match_table *t);
/** An empty table gives its memory back if it has grown large. */
void core_match_table_trim(struct core_match_table *t);

#endif
