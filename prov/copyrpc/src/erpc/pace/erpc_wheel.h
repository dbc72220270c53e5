/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Timing wheel. Called by tx/ and by the endpoint.
 *
 * An item that is due more than a lap ahead waits in the last slot and is inserted again when that
 * slot expires. Insert, remove and the skip of an empty stretch cost the same at any load. An item
 * never expires early, and at the latest with the first advance one slot after its time.
 *
 * An endpoint has one wheel for paced sessions (slots of half a microsecond, a lap of eight
 * milliseconds) and one for losses (erpc_loss.h).
 *
 * Items are embedded and owned by the caller. Times are nanoseconds and never go back. Pure.
 */
#ifndef ERPC_PACE_ERPC_WHEEL_H
#define ERPC_PACE_ERPC_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

#define ERPC_PACE_SHIFT 9u /* 512 ns a slot */
#define ERPC_PACE_SLOTS (1u << 14)

struct erpc_wheel_item {
	struct util_list link;
	uint64_t due_ns;
};

struct erpc_wheel {
	struct util_list *slots; /* slot_cnt of them */
	uint64_t *used;          /* one bit per slot that may hold an item */
	uint64_t tick;           /* all slots before are empty */
	uint32_t cnt;
	uint32_t slot_cnt; /* a power of two, at least 64 */
	uint32_t shift;    /* a slot is 2^shift ns */
};

/** Returns 0 or -FI_ENOMEM. */
int erpc_wheel_init(struct erpc_wheel *w, uint64_t now_ns, uint32_t shift, uint32_t slot_cnt);
void erpc_wheel_fini(struct erpc_wheel *w);

/** Initializes an item that is in no wheel. */
static inline void erpc_wheel_item_init(struct erpc_wheel_item *item)
{
	util_list_init(&item->link);
}

/** Inserts an item. An empty wheel first moves to `now_ns`. */
void erpc_wheel_insert(struct erpc_wheel *w, struct erpc_wheel_item *item, uint64_t due_ns,
		       uint64_t now_ns);

/** Removes an item, if it is in the wheel. */
void erpc_wheel_remove(struct erpc_wheel *w, struct erpc_wheel_item *item);

/** Returns true if a slot has expired since the last advance. */
static inline bool erpc_wheel_is_due(const struct erpc_wheel *w, uint64_t now_ns)
{
	return now_ns >> w->shift >= w->tick;
}

/** Returns when an item due at due_ns expires, if that is less than a lap ahead. */
static inline uint64_t erpc_wheel_end_ns(const struct erpc_wheel *w, uint64_t due_ns)
{
	return (due_ns + (1ull << w->shift) - 1) >> w->shift << w->shift;
}

/** Returns a lower bound of the next expiry, or UINT64_MAX if the wheel is empty. */
uint64_t erpc_wheel_next_ns(const struct erpc_wheel *w);

/** Returns the item that expires first, or NULL. */
struct erpc_wheel_item *erpc_wheel_first(struct erpc_wheel *w);

/** Appends all expired items to `ready`, in the order of their slots. */
void erpc_wheel_advance(struct erpc_wheel *w, uint64_t now_ns, struct util_list *ready);

#endif
