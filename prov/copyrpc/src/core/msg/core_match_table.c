/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hash table of matching: see core_match_table.h. */
#include "core/msg/core_match_table.h"

#include <stdlib.h>

#include "util/bits.h"

#define CORE_MATCH_TABLE_MIN  64u
#define CORE_MATCH_TABLE_KEEP 32768u /* slots (1 MiB) from which an empty table is freed */

void core_match_table_free(struct core_match_table *t)
{
	free(t->slots);
	*t = (struct core_match_table){ 0 };
}

void core_match_table_trim(struct core_match_table *t)
{
	if (t->mask >= CORE_MATCH_TABLE_KEEP)
		core_match_table_free(t);
}

static bool core_match_table_grow_cold(struct core_match_table *t)
{
	size_t cnt = t->slots ? 2 * (t->mask + 1) : CORE_MATCH_TABLE_MIN;
	struct core_match_table bigger = { .mask = cnt - 1, .key_cnt = t->key_cnt };

	bigger.slots = calloc(cnt, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; t->slots && i <= t->mask; i++) {
		const struct core_match_slot *s = &t->slots[i];

		if (s->first)
			*core_match_table_probe(&bigger, s->hash, s->tag, s->src) = *s;
	}
	free(t->slots);
	*t = bigger;
	return true;
}

/* Makes room for a key. Grows a table that is half full; without memory one free slot suffices. */
static bool core_match_table_reserve(struct core_match_table *t)
{
	if (UTIL_LIKELY(t->slots && 2 * (t->key_cnt + 1) <= t->mask + 1))
		return true;
	return core_match_table_grow_cold(t) || (t->slots && t->key_cnt < t->mask);
}

bool core_match_table_push(struct core_match_table *t, uint64_t tag, uint64_t src,
			   struct util_list *link)
{
	uint64_t hash = core_match_hash(tag, src);
	struct core_match_slot *s;

	if (!core_match_table_reserve(t))
		return false;
	s = core_match_table_probe(t, hash, tag, src);
	if (s->first) {
		util_list_push_back(s->first, link);
		return true;
	}
	util_list_init(link);
	*s = (struct core_match_slot){ .tag = tag, .src = src, .hash = hash, .first = link };
	t->key_cnt++;
	return true;
}

/* Frees a slot and moves later ones up, so that no probe stops before its key. */
static void core_match_table_erase(struct core_match_table *t, struct core_match_slot *s)
{
	size_t gap = (size_t)(s - t->slots);
	size_t i = (gap + 1) & t->mask;

	for (; t->slots[i].first; i = (i + 1) & t->mask) {
		size_t from_home = (i - (t->slots[i].hash & t->mask)) & t->mask;

		if (from_home < ((i - gap) & t->mask))
			continue;
		t->slots[gap] = t->slots[i];
		gap = i;
	}
	t->slots[gap].first = NULL;
	t->key_cnt--;
}

void core_match_table_remove(struct core_match_table *t, uint64_t tag, uint64_t src,
			     struct util_list *link)
{
	struct core_match_slot *s = core_match_table_probe(t, core_match_hash(tag, src), tag, src);

	if (link->next == link) {
		core_match_table_erase(t, s);
		return;
	}
	if (s->first == link)
		s->first = link->next;
	core_match_unlink(link);
}
