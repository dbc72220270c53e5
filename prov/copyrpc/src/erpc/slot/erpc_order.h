/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Delivery order of batches that arrive through different slots. Called by rx/.
 *
 * Slots are independent, so a batch can overtake another; libfabric requires the order in which
 * messages were sent. Each batch has a sequence number, and an early one is kept until its turn. A
 * sender sends nothing that is ERPC_SLOTS ahead of its oldest unacknowledged batch. Sequence
 * numbers wrap. Pure; items are the caller's.
 */
#ifndef ERPC_SLOT_ERPC_ORDER_H
#define ERPC_SLOT_ERPC_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "erpc/slot/erpc_client.h"

enum erpc_turn {
	ERPC_TURN_NOW,    /* next: deliver it, then all that erpc_order_pop returns */
	ERPC_TURN_KEPT,   /* early: kept */
	ERPC_TURN_TWICE,  /* received before */
	ERPC_TURN_BEYOND, /* further ahead than a correct sender can be */
};

struct erpc_order {
	uint32_t next; /* sequence number to be delivered next */
	uint32_t kept_cnt;
	void *early[ERPC_SLOTS];
};

static inline void erpc_order_init(struct erpc_order *o, uint32_t first)
{
	*o = (struct erpc_order){ .next = first };
}

/** Takes batch `seq`. erpc_order_pop returns `item` (not NULL) if it is kept. */
static inline enum erpc_turn erpc_order_take(struct erpc_order *o, uint32_t seq, void *item)
{
	uint32_t ahead = seq - o->next;

	if (ahead >= ERPC_SLOTS)
		return (int32_t)ahead < 0 ? ERPC_TURN_TWICE : ERPC_TURN_BEYOND;
	if (!ahead) {
		o->next++;
		return ERPC_TURN_NOW;
	}
	if (o->early[seq % ERPC_SLOTS])
		return ERPC_TURN_TWICE;
	o->early[seq % ERPC_SLOTS] = item;
	o->kept_cnt++;
	return ERPC_TURN_KEPT;
}

/** Returns the kept item that is next, or NULL. */
static inline void *erpc_order_pop(struct erpc_order *o)
{
	void *item = o->early[o->next % ERPC_SLOTS];

	if (!item)
		return NULL;
	o->early[o->next % ERPC_SLOTS] = NULL;
	o->kept_cnt--;
	o->next++;
	return item;
}

/** Returns the first item kept behind a missing one, or NULL. */
static inline void *erpc_order_first(const struct erpc_order *o)
{
	uint32_t seq;

	for (seq = o->next; o->kept_cnt && seq != o->next + ERPC_SLOTS; seq++)
		if (o->early[seq % ERPC_SLOTS])
			return o->early[seq % ERPC_SLOTS];
	return NULL;
}

#endif
