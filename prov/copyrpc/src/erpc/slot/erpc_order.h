/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whose turn is it? Messages that went through different slots, put in order again.
 *
 * The slots of a session are independent, so a message can overtake another; libfabric wants them in
 * the order they were sent. Each carries a sequence number; one that comes too early is kept until
 * its turn. A sender lets nothing go that is ERPC_SLOTS ahead of its oldest unanswered message, so
 * nothing honest is ever further ahead here. Sequence numbers wrap. Pure; items are the caller's.
 *
 * Shown by test/unit/erpc/slot/test_erpc_order.c.
 */
#ifndef ERPC_ORDER_H
#define ERPC_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "erpc/slot/erpc_client.h"

enum erpc_turn {
	ERPC_TURN_NOW,    /* it is next: deliver it, then whatever erpc_order_pop gives */
	ERPC_TURN_KEPT,   /* too early: kept */
	ERPC_TURN_TWICE,  /* was here before */
	ERPC_TURN_BEYOND, /* further ahead than any honest sender can be */
};

struct erpc_order {
	uint32_t next; /* sequence number whose turn it is */
	uint32_t kept_cnt;
	void *early[ERPC_SLOTS];
};

static inline void erpc_order_init(struct erpc_order *o, uint32_t first)
{
	*o = (struct erpc_order){ .next = first };
}

/** Message `seq`; `item` (not NULL) is what pop will give back if it is kept. */
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

/** The kept message whose turn it is now, or NULL. */
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

/** The first of those that wait behind one that is missing, or NULL. */
static inline void *erpc_order_first(const struct erpc_order *o)
{
	uint32_t seq;

	for (seq = o->next; o->kept_cnt && seq != o->next + ERPC_SLOTS; seq++)
		if (o->early[seq % ERPC_SLOTS])
			return o->early[seq % ERPC_SLOTS];
	return NULL;
}

#endif
