/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Timers in a pairing heap: see cm_timer.h. */
#include "cm/base/cm_timer.h"

#include <stddef.h>

void cm_timer_init(struct cm_timer *timer, void (*fire)(struct cm_timer *timer))
{
	*timer = (struct cm_timer){ .fire = fire };
}

/* Makes the later of two roots the first child of the earlier. Returns the earlier. */
static struct cm_timer *cm_timer_meld(struct cm_timer *a, struct cm_timer *b)
{
	struct cm_timer *top, *sub;

	if (!a || !b)
		return a ? a : b;
	top = a->at_ns <= b->at_ns ? a : b;
	sub = top == a ? b : a;
	sub->prev = top;
	sub->next = top->child;
	if (top->child)
		top->child->prev = sub;
	top->child = sub;
	return top;
}

/* Merges a list of siblings into one heap: in pairs, then the pairs from last to first. */
static struct cm_timer *cm_timer_meld_siblings(struct cm_timer *first)
{
	struct cm_timer *pairs = NULL, *root = NULL;

	while (first) {
		struct cm_timer *a = first, *b = a->next;

		first = b ? b->next : NULL;
		a->next = NULL;
		if (b)
			b->next = NULL;
		a = cm_timer_meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct cm_timer *pair = pairs;

		pairs = pair->next;
		pair->next = NULL;
		root = cm_timer_meld(root, pair);
	}
	if (root)
		root->prev = NULL;
	return root;
}

static void cm_timer_cut(struct cm_timer *timer)
{
	if (timer->prev->child == timer)
		timer->prev->child = timer->next;
	else
		timer->prev->next = timer->next;
	if (timer->next)
		timer->next->prev = timer->prev;
}

void cm_timer_cancel(struct cm_timers *timers, struct cm_timer *timer)
{
	struct cm_timer *rest;

	if (!timer->is_armed)
		return;
	rest = cm_timer_meld_siblings(timer->child);
	if (timers->root == timer) {
		timers->root = rest;
	} else {
		cm_timer_cut(timer);
		timers->root = cm_timer_meld(timers->root, rest);
	}
	cm_timer_init(timer, timer->fire);
}

void cm_timer_arm(struct cm_timers *timers, struct cm_timer *timer, uint64_t at_ns)
{
	cm_timer_cancel(timers, timer);
	timer->at_ns = at_ns;
	timer->is_armed = true;
	timers->root = cm_timer_meld(timers->root, timer);
}

void cm_timers_run(struct cm_timers *timers, uint64_t now_ns)
{
	struct cm_timer *timer;

	while ((timer = timers->root) && timer->at_ns <= now_ns) {
		cm_timer_cancel(timers, timer);
		timer->fire(timer);
	}
}
