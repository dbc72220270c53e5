/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Table of tagged receives: a user pointer per entry of a device's list. Called by m5_tm.c.
 *
 * Entries complete in any order, each by itself. An entry is free again when the device refers to
 * it no more: when its bytes are there, or a REMOVE has taken it, and no REMOVE is on the way.
 *
 * The device fills entries in an order that software announces: each APPEND names the entry of the
 * next one. So entries are handed out from a queue of free ones, and the last of them never: a
 * table of n entries lists n - 1 receives.
 *
 * A REMOVE and a match race. The device decides, and completions tell in its order:
 *
 *   LISTED --REMOVE posted--> REMOVING --removed--> FREE
 *     | match                   | match
 *   MATCHED --REMOVE fails--- MISSED --bytes--> LATE --REMOVE fails--> FREE
 *     | bytes, or canceled
 *   FREE
 *
 * Pure. Runs in the polling thread. Tests: test/unit/dev/mlx5/test_m5_tags.c.
 */
#ifndef DEV_MLX5_M5_TAGS_H
#define DEV_MLX5_M5_TAGS_H

#include <stdbool.h>
#include <stdint.h>

#define M5_TAGS_MAX 32768u

enum m5_tags_state {
	M5_TAGS_FREE,
	M5_TAGS_LISTED,
	M5_TAGS_REMOVING,
	M5_TAGS_MATCHED, /* bytes are to come */
	M5_TAGS_MISSED,  /* likewise, and a REMOVE was posted, which will fail */
	M5_TAGS_LATE,    /* the bytes are there; the REMOVE has not failed yet */
	M5_TAGS_DROPPED, /* ended by a REMOVE that cannot fail, and that reports */
};

struct m5_tags_entry {
	void *user;
	uint32_t qpn; /* queue pair of the match */
	uint16_t next;
	uint8_t state; /* enum m5_tags_state */
};

struct m5_tags {
	struct m5_tags_entry *entry;
	uint32_t cnt;
	uint32_t free_cnt;
	uint16_t head; /* entry that the next APPEND fills */
	uint16_t tail;
	uint32_t listed_cnt; /* LISTED or REMOVING */
};

/** Starts a table of `cnt` entries, 2 to M5_TAGS_MAX. The array belongs to the caller. */
static inline void m5_tags_init(struct m5_tags *tags, struct m5_tags_entry *entry, uint32_t cnt)
{
	*tags = (struct m5_tags){
		.entry = entry, .cnt = cnt, .free_cnt = cnt, .tail = (uint16_t)(cnt - 1)
	};
	for (uint32_t i = 0; i < cnt; i++)
		entry[i] = (struct m5_tags_entry){ .next = (uint16_t)(i + 1) };
}

static inline bool m5_tags_has_room(const struct m5_tags *tags)
{
	return tags->free_cnt > 1;
}

/**
 * Lists a receive in the entry that the device fills next, and sets *next to the one after it. The
 * caller has checked m5_tags_has_room().
 */
static inline uint16_t m5_tags_list(struct m5_tags *tags, void *user, uint16_t *next)
{
	uint16_t index = tags->head;
	struct m5_tags_entry *entry = &tags->entry[index];

	entry->user = user;
	entry->state = M5_TAGS_LISTED;
	tags->head = entry->next;
	tags->free_cnt--;
	tags->listed_cnt++;
	*next = tags->head;
	return index;
}

static inline void m5_tags_free(struct m5_tags *tags, uint32_t index)
{
	tags->entry[index].state = M5_TAGS_FREE;
	tags->entry[tags->tail].next = (uint16_t)index;
	tags->tail = (uint16_t)index;
	tags->free_cnt++;
}

/** Records a REMOVE that reports. Returns false if the entry has a match, or a REMOVE already. */
static inline bool m5_tags_ask(struct m5_tags *tags, uint32_t index)
{
	if (tags->entry[index].state != M5_TAGS_LISTED)
		return false;
	tags->entry[index].state = M5_TAGS_REMOVING;
	return true;
}

/**
 * Ends a receive whose REMOVE cannot fail. The entry is free at once, or, if the REMOVE `reports`
 * all the same, after m5_tags_removed. Returns false as m5_tags_ask does.
 */
static inline bool m5_tags_drop(struct m5_tags *tags, uint32_t index, bool reports)
{
	if (tags->entry[index].state != M5_TAGS_LISTED)
		return false;
	tags->listed_cnt--;
	if (reports)
		tags->entry[index].state = M5_TAGS_DROPPED;
	else
		m5_tags_free(tags, index);
	return true;
}

/** Records a match, by a message to queue pair qpn. Returns the receive or NULL. */
void *m5_tags_matched(struct m5_tags *tags, uint32_t index, uint32_t qpn);

/** Ends a receive that was matched. Returns it, or NULL if none was. */
void *m5_tags_ended(struct m5_tags *tags, uint32_t index);

/**
 * Ends a REMOVE that reports. Sets *user to the receive, or to NULL if the REMOVE came too late or
 * could not fail. Returns false if there was none, or the device contradicts itself.
 */
bool m5_tags_removed(struct m5_tags *tags, uint32_t index, bool success, void **user);

/**
 * Ends a receive that was matched by a message to queue pair qpn, which is gone. Returns it, or
 * NULL if there is none.
 */
void *m5_tags_abandon(struct m5_tags *tags, uint32_t qpn);

#endif
