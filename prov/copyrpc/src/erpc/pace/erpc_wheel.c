/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_wheel.h. */
#include "erpc/pace/erpc_wheel.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

int erpc_wheel_init(struct erpc_wheel *w, uint64_t now_ns, uint32_t shift, uint32_t slot_cnt)
{
	uint32_t i;

	w->slots = malloc(slot_cnt * sizeof(*w->slots));
	w->used = calloc(slot_cnt / 64, sizeof(*w->used));
	if (!w->slots || !w->used) {
		erpc_wheel_fini(w);
		return -FI_ENOMEM;
	}
	for (i = 0; i < slot_cnt; i++)
		util_list_init(&w->slots[i]);
	w->slot_cnt = slot_cnt;
	w->shift = shift;
	w->tick = now_ns >> shift;
	w->cnt = 0;
	return 0;
}

void erpc_wheel_fini(struct erpc_wheel *w)
{
	free(w->slots);
	free(w->used);
	w->slots = NULL;
	w->used = NULL;
}

/** Returns the first tick that ends at or after `due_ns`, within the current lap. */
static uint64_t erpc_wheel_tick_of(const struct erpc_wheel *w, uint64_t due_ns)
{
	uint64_t tick = (due_ns + (1ull << w->shift) - 1) >> w->shift;

	if (tick < w->tick)
		return w->tick;
	return tick - w->tick < w->slot_cnt ? tick : w->tick + w->slot_cnt - 1;
}

/** Inserts the item into its slot of the lap that begins with w->tick. */
static void erpc_wheel_put(struct erpc_wheel *w, struct erpc_wheel_item *item, uint64_t due_ns)
{
	uint64_t slot = erpc_wheel_tick_of(w, due_ns) & (w->slot_cnt - 1);

	item->due_ns = due_ns;
	util_list_push_back(&w->slots[slot], &item->link);
	w->used[slot / 64] |= 1ull << slot % 64;
	w->cnt++;
}

void erpc_wheel_insert(struct erpc_wheel *w, struct erpc_wheel_item *item, uint64_t due_ns,
		       uint64_t now_ns)
{
	uint64_t tick = now_ns >> w->shift;

	if (!w->cnt && tick > w->tick)
		w->tick = tick;
	erpc_wheel_put(w, item, due_ns);
}

void erpc_wheel_remove(struct erpc_wheel *w, struct erpc_wheel_item *item)
{
	if (util_list_is_empty(&item->link))
		return;
	util_list_remove(&item->link); /* the slot's bit may stay: a hint only */
	w->cnt--;
}

/** Empties the slot of w->tick, which has passed. */
static void erpc_wheel_reap(struct erpc_wheel *w, uint64_t now_ns, struct util_list *ready)
{
	uint64_t slot = w->tick & (w->slot_cnt - 1);
	struct erpc_wheel_item *item;
	struct util_list late, *first;

	util_list_init(&late);
	while ((first = util_list_pop(&w->slots[slot]))) {
		item = UTIL_CONTAINER_OF(first, struct erpc_wheel_item, link);
		util_list_push_back(item->due_ns <= now_ns ? ready : &late, first);
		w->cnt--;
	}
	w->used[slot / 64] &= ~(1ull << slot % 64);
	w->tick++;
	while ((first = util_list_pop(&late))) {
		item = UTIL_CONTAINER_OF(first, struct erpc_wheel_item, link);
		erpc_wheel_put(w, item, item->due_ns);
	}
}

/** Returns the first tick from `tick` to `end` with a slot that may hold an item, else end + 1. */
static uint64_t erpc_wheel_skip_from(const struct erpc_wheel *w, uint64_t tick, uint64_t end)
{
	uint64_t word;

	while (tick <= end) {
		word = w->used[(tick & (w->slot_cnt - 1)) / 64] >> tick % 64;
		if (word) {
			tick += (uint64_t)__builtin_ctzll(word);
			break;
		}
		tick += 64 - tick % 64;
		if (tick - w->tick >= w->slot_cnt)
			return end + 1;
	}
	return tick <= end ? tick : end + 1;
}

static uint64_t erpc_wheel_skip(const struct erpc_wheel *w, uint64_t end)
{
	return erpc_wheel_skip_from(w, w->tick, end);
}

uint64_t erpc_wheel_next_ns(const struct erpc_wheel *w)
{
	if (!w->cnt)
		return UINT64_MAX;
	return erpc_wheel_skip(w, w->tick + w->slot_cnt - 1) << w->shift;
}

struct erpc_wheel_item *erpc_wheel_first(struct erpc_wheel *w)
{
	uint64_t end = w->tick + w->slot_cnt - 1, tick, slot;

	for (tick = w->tick; w->cnt; tick++) {
		tick = erpc_wheel_skip_from(w, tick, end);
		slot = tick & (w->slot_cnt - 1);
		if (!util_list_is_empty(&w->slots[slot]))
			return UTIL_CONTAINER_OF(w->slots[slot].next, struct erpc_wheel_item, link);
		w->used[slot / 64] &= ~(1ull << slot % 64);
	}
	return NULL;
}

void erpc_wheel_advance(struct erpc_wheel *w, uint64_t now_ns, struct util_list *ready)
{
	uint64_t end = now_ns >> w->shift;

	while (w->tick <= end) {
		w->tick = erpc_wheel_skip(w, end);
		if (w->tick <= end)
			erpc_wheel_reap(w, now_ns, ready);
	}
}
