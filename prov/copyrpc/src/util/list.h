/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Intrusive, circular, doubly linked list.
 *
 * A head and a member are the same struct. A member that is in no list points at itself, so
 * removing it twice is harmless. Nothing here allocates or locks: the owner of the head owns the
 * links.
 */
#ifndef UTIL_LIST_H
#define UTIL_LIST_H

#include <stdbool.h>

#include "util/bits.h"

struct util_list {
	struct util_list *next;
	struct util_list *prev;
};

static inline void util_list_init(struct util_list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool util_list_is_empty(const struct util_list *l)
{
	return l->next == l;
}

static inline void util_list_insert(struct util_list *prev, struct util_list *item)
{
	item->prev = prev;
	item->next = prev->next;
	prev->next->prev = item;
	prev->next = item;
}

static inline void util_list_push_back(struct util_list *head, struct util_list *item)
{
	struct util_list *last = head->prev;

	item->prev = last;
	item->next = head;
	last->next = item;
	head->prev = item;
}

static inline void util_list_push_front(struct util_list *head, struct util_list *item)
{
	util_list_insert(head, item);
}

/** Removes `item` from its list, if any. */
static inline void util_list_remove(struct util_list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	util_list_init(item);
}

/** Returns the first member, or NULL. */
static inline struct util_list *util_list_first(struct util_list *head)
{
	return util_list_is_empty(head) ? NULL : head->next;
}

/** Removes and returns the first member, or NULL. */
static inline struct util_list *util_list_pop(struct util_list *head)
{
	struct util_list *item = util_list_first(head);

	if (item)
		util_list_remove(item);
	return item;
}

/**
 * Moves all members of `from` to `to`, which need not be initialised. `from` is empty afterwards.
 */
static inline void util_list_move(struct util_list *from, struct util_list *to)
{
	util_list_insert(from, to);
	util_list_remove(from);
}

/** Iterates over the list. The body may remove `it` and no other member. */
#define UTIL_LIST_FOREACH_SAFE(it, tmp, head)                                                      \
	for ((it) = (head)->next, (tmp) = (it)->next; (it) != (head);                              \
	     (it) = (tmp), (tmp) = (it)->next)

#endif
