/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is to leave, and when?
 *
 * A timing wheel: what is due later than a lap from now waits in the last slot and is put in again
 * when that comes round. Inserting, removing and passing an empty stretch cost the same however much
 * waits. An item leaves never before its time, and at the latest with the first advance a slot after it.
 *
 * An endpoint has one for packets that are to leave in their time (slots of half a microsecond, a lap of some
 * eight milliseconds), and one for answers that may not come (erpc_loss.h).
 *
 * Items are embedded and owned by the caller. Times are nanoseconds and never go back. Pure.
 *
 * Shown by test/unit/erpc/pace/test_erpc_wheel.c.
 */
#ifndef ERPC_WHEEL_H
#define ERPC_WHEEL_H

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
	uint64_t *used;          /* a bit for each slot that holds something */
	uint64_t tick;           /* every slot before this one has been emptied */
	uint32_t cnt;
	uint32_t slot_cnt; /* a power of two, at least 64 */
	uint32_t shift;    /* 2^shift ns a slot */
};

/** 0 or -FI_ENOMEM. */
int erpc_wheel_init(struct erpc_wheel *w, uint64_t now_ns, uint32_t shift, uint32_t slot_cnt);
void erpc_wheel_fini(struct erpc_wheel *w);

/** An item that is in no wheel. */
static inline void erpc_wheel_item_init(struct erpc_wheel_item *item)
{
	util_list_init(&item->link);
}

/** An empty wheel begins at `now_ns`, however long nobody looked at it. */
void erpc_wheel_insert(struct erpc_wheel *w, struct erpc_wheel_item *item, uint64_t due_ns,
		       uint64_t now_ns);

/** Harmless if it is not in. */
void erpc_wheel_remove(struct erpc_wheel *w, struct erpc_wheel_item *item);

/** Has a slot passed since the last advance? */
static inline bool erpc_wheel_is_due(const struct erpc_wheel *w, uint64_t now_ns)
{
	return now_ns >> w->shift >= w->tick;
}

/** What is due then leaves at this time, if it is less than a lap away. */
static inline uint64_t erpc_wheel_end_ns(const struct erpc_wheel *w, uint64_t due_ns)
{
	return (due_ns + (1ull << w->shift) - 1) >> w->shift << w->shift;
}

/** Before this time nothing leaves, and at this time perhaps nothing either; UINT64_MAX: it is empty. */
uint64_t erpc_wheel_next_ns(const struct erpc_wheel *w);

/** The first that will leave, or NULL. */
struct erpc_wheel_item *erpc_wheel_first(struct erpc_wheel *w);

/** Moves all that is due to the end of `ready`, in the order of their slots. */
void erpc_wheel_advance(struct erpc_wheel *w, uint64_t now_ns, struct util_list *ready);

#endif
