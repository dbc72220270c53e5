/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Intrusive stack, singly linked.
 *
 * Used instead of a list (list.h) by objects of which there are thousands: a link is half as long,
 * and push touches no other member. Only the last member that was pushed is cheap to remove.
 *
 * A head and a member are the same struct. The last member points at the head. A member that is in
 * no stack points nowhere, as zeroed memory does. Nothing here allocates or locks: the owner of the
 * head owns the links.
 */
#ifndef UTIL_STACK_H
#define UTIL_STACK_H

#include <stdbool.h>
#include <stddef.h>

struct util_stack {
	struct util_stack *next;
};

/** Initializes a head. */
static inline void util_stack_init(struct util_stack *head)
{
	head->next = head;
}

static inline bool util_stack_is_empty(const struct util_stack *head)
{
	return head->next == head;
}

/** Returns true if the member is in a stack. */
static inline bool util_stack_is_on(const struct util_stack *item)
{
	return item->next;
}

/** Pushes a member that is in no stack. */
static inline void util_stack_push(struct util_stack *head, struct util_stack *item)
{
	item->next = head->next;
	head->next = item;
}

/** Removes and returns the member that was pushed last, or NULL. */
static inline struct util_stack *util_stack_pop(struct util_stack *head)
{
	struct util_stack *item = head->next;

	if (item == head)
		return NULL;
	head->next = item->next;
	item->next = NULL;
	return item;
}

/** Removes `item`, if it is in the stack. Passes the members that were pushed later. */
static inline void util_stack_remove(struct util_stack *head, struct util_stack *item)
{
	struct util_stack *before = head;

	if (!util_stack_is_on(item))
		return;
	while (before->next != item)
		before = before->next;
	before->next = item->next;
	item->next = NULL;
}

#endif
