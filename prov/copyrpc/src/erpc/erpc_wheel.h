/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is to leave, and when?
 *
 * A timing wheel: slots of half a microsecond, one lap of some eight milliseconds. What is due later
 * than a lap from now waits in the last slot and is put in again when that comes round. Inserting,
 * removing and passing an empty stretch cost the same however much waits. An item leaves never
 * before its time, and at the latest with the first advance a slot after it.
 *
 * Items are embedded and owned by the caller. Times are nanoseconds and never go back. Pure.
 *
 * Shown by test/unit/erpc/test_erpc_wheel.c.
 */
#ifndef ERPC_WHEEL_H
#define ERPC_WHEEL_H

#include <stdint.h>

#include "util/list.h"

#define ERPC_WHEEL_SHIFT 9u /* 512 ns a slot */
#define ERPC_WHEEL_SLOTS (1u << 14)

struct erpc_wheel_item {
	struct util_list link;
	uint64_t due_ns;
};

struct erpc_wheel {
	struct util_list *slots; /* ERPC_WHEEL_SLOTS of them */
	uint64_t *used;          /* a bit for each slot that holds something */
	uint64_t tick;           /* every slot before this one has been emptied */
	uint32_t cnt;
};

/** 0 or -FI_ENOMEM. */
int erpc_wheel_init(struct erpc_wheel *w, uint64_t now_ns);
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

/** Moves all that is due to the end of `ready`, in the order of their slots. */
void erpc_wheel_advance(struct erpc_wheel *w, uint64_t now_ns, struct util_list *ready);

/** It holds something: before this time nothing leaves, and at this time perhaps nothing either. */
uint64_t erpc_wheel_next_ns(const struct erpc_wheel *w);

#endif
