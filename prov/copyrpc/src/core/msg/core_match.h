/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which receive does this message belong to?
 *
 * Matching in MPI order: a message takes the oldest posted receive that accepts it; a receive
 * takes the oldest unexpected message that it accepts. A receive accepts a message when
 *
 *	((recv.tag ^ msg.tag) & ~recv.ignore) == 0  and  (recv.src == CORE_MATCH_ANY or == msg.src)
 *
 * The cost does not grow with either queue. Real programs use very few shapes of receive: a shape
 * is an ignore mask together with "any source or one source" (MPI has four). Per shape in use,
 * receives and unexpected messages are hashed by what the shape fixes (tag & ~ignore, src); equal
 * keys stand in one FIFO. An arrival probes each live shape once and takes the oldest. More than
 * CORE_MATCH_SHAPES shapes at a time: the excess stands in one list that is searched in order.
 * Most queues are short and most matches take the oldest, so both are tried first: receives are
 * hashed only when an arrival does not take the oldest and more than CORE_MATCH_LAZY wait unhashed,
 * messages only when a search finds more than CORE_MATCH_SCAN of them. So receives that are used in
 * the order of posting cost the same however many there are. That half is inline, here; the hashed
 * half is core_match.c, its tables core_match_table.h.
 *
 * Objects embed the structs below; nothing is allocated per message except when a table grows.
 * A table that cannot grow only gets slower. Not locked: the domain's lock covers it.
 *
 * Shown by test/unit/core/msg/test_core_match.c (a list scan is the oracle) and match_bench.
 */
#ifndef CORE_MATCH_H
#define CORE_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/msg/core_match_table.h"
#include "util/bits.h"
#include "util/list.h"

#define CORE_MATCH_ANY    UINT64_MAX /* no message's source */
#define CORE_MATCH_SHAPES 8
#define CORE_MATCH_LAZY   16 /* receives that are searched in order; match_bench has the figures */
#define CORE_MATCH_SCAN   16 /* messages that are searched in order */

/** Where a posted receive stands besides the order list: a shape's number, or one of these. */
enum core_match_location {
	CORE_MATCH_UNHASHED = -1, /* nowhere: nobody had to look past the oldest since */
	CORE_MATCH_EXCESS = -2,   /* in core_match.excess: its shape has no table */
};

/** A receive, embedded in its request. Set tag, ignore, src; the rest is core_match's. */
struct core_match_recv {
	uint64_t tag;
	uint64_t ignore;
	uint64_t src;
	uint64_t seq;            /* lower (modulo 2^64) is older; given by core_match_post */
	struct util_list order;  /* all posted receives, oldest first */
	int shape;               /* or enum core_match_location */
	struct util_list bucket; /* others with the same key, oldest first */
};

/** An unexpected message, embedded in its record. Set tag, src; the rest is core_match's. */
struct core_match_msg {
	uint64_t tag;
	uint64_t src;
	struct util_list order; /* all unexpected messages, oldest first */
	struct util_list bucket[CORE_MATCH_SHAPES];
};

struct core_match_shape {
	uint64_t ignore;
	uint64_t used; /* messages: core_match.search_cnt at the last use */
	size_t cnt;    /* receives: how many are in the table */
	bool any;
	struct core_match_table table;
};

struct core_match {
	struct util_list posted;     /* core_match_recv.order */
	struct util_list unexpected; /* core_match_msg.order */
	uint64_t seq;                /* of the next receive */
	size_t hashed_cnt;           /* posted receives in a table or in excess */
	size_t fresh_cnt;            /* the others, which are younger */
	uint8_t live;                /* bit per recv_shapes[]: it has receives */
	uint8_t indexed;             /* bit per msg_shapes[]: it has every unexpected message */
	/* From here on cold. */
	struct util_list excess; /* core_match_recv.bucket, oldest first */
	uint64_t search_cnt;     /* searches for a message that an index could have helped */
	size_t unexpected_cnt;
	struct core_match_shape recv_shapes[CORE_MATCH_SHAPES];
	struct core_match_shape msg_shapes[CORE_MATCH_SHAPES];
};

struct core_match *core_match_open(void);    /* NULL: no memory */
void core_match_close(struct core_match *m); /* queues are walked and emptied by the caller */

/** The halves below that hash or search. */
struct core_match_msg *core_match_post_cold(struct core_match *m, struct core_match_recv *recv);
struct core_match_recv *core_match_find_cold(struct core_match *m, uint64_t tag, uint64_t src);
void core_match_cancel_cold(struct core_match *m, struct core_match_recv *recv);
void core_match_keep_cold(struct core_match *m, struct core_match_msg *msg);
void core_match_take_cold(struct core_match *m, struct core_match_msg *msg);

static inline bool core_match_accepts(const struct core_match_recv *recv, uint64_t tag,
				      uint64_t src)
{
	return !((recv->tag ^ tag) & ~recv->ignore) &&
	       (recv->src == src || recv->src == CORE_MATCH_ANY);
}

/** Nothing is unexpected: core_match_queue is all of a post. */
static inline bool core_match_has_no_unexp(struct core_match *m)
{
	return util_list_is_empty(&m->unexpected);
}

/** `recv` becomes the youngest posted receive. */
static inline void core_match_queue(struct core_match *m, struct core_match_recv *recv)
{
	m->fresh_cnt++;
	recv->seq = m->seq++;
	recv->shape = CORE_MATCH_UNHASHED;
	util_list_push_back(&m->posted, &recv->order);
}

/** The oldest unexpected message that `recv` accepts, taken out; or NULL and `recv` is queued. */
static inline struct core_match_msg *core_match_post(struct core_match *m,
						     struct core_match_recv *recv)
{
	if (UTIL_UNLIKELY(!core_match_has_no_unexp(m)))
		return core_match_post_cold(m, recv);
	core_match_queue(m, recv);
	return NULL;
}

/** The oldest posted receive of all, left in the queue, if it accepts (tag, src); or NULL. */
static inline struct core_match_recv *core_match_oldest(struct core_match *m, uint64_t tag,
							uint64_t src)
{
	struct core_match_recv *recv;

	if (util_list_is_empty(&m->posted))
		return NULL;
	recv = UTIL_CONTAINER_OF(m->posted.next, struct core_match_recv, order);
	return core_match_accepts(recv, tag, src) ? recv : NULL;
}

/** The oldest posted receive that accepts (tag, src), left in the queue, or NULL. */
static inline struct core_match_recv *core_match_find(struct core_match *m, uint64_t tag,
						      uint64_t src)
{
	struct core_match_recv *recv = core_match_oldest(m, tag, src);

	if (recv || util_list_is_empty(&m->posted))
		return recv;
	return core_match_find_cold(m, tag, src);
}

/** Takes a queued receive out that is not hashed. */
static inline void core_match_unqueue(struct core_match *m, struct core_match_recv *recv)
{
	m->fresh_cnt--;
	core_match_unlink(&recv->order);
}

/** Takes a queued receive out (cancel, close, peer death, a spent multi-receive buffer). */
static inline void core_match_cancel(struct core_match *m, struct core_match_recv *recv)
{
	if (UTIL_UNLIKELY(recv->shape != CORE_MATCH_UNHASHED))
		core_match_cancel_cold(m, recv);
	else
		core_match_unqueue(m, recv);
}

/** The oldest posted receive that accepts (tag, src), taken out, or NULL. Hot. */
static inline struct core_match_recv *core_match_arrive(struct core_match *m, uint64_t tag,
							uint64_t src)
{
	struct core_match_recv *recv = core_match_find(m, tag, src);

	if (recv)
		core_match_cancel(m, recv);
	return recv;
}

/** Queues an unexpected message; core_match_arrive has just returned NULL for it. */
static inline void core_match_keep(struct core_match *m, struct core_match_msg *msg)
{
	m->unexpected_cnt++;
	util_list_push_back(&m->unexpected, &msg->order);
	if (UTIL_UNLIKELY(m->indexed))
		core_match_keep_cold(m, msg);
}

/** Takes a queued message out (FI_CLAIM, FI_DISCARD, peer death). */
static inline void core_match_take(struct core_match *m, struct core_match_msg *msg)
{
	m->unexpected_cnt--;
	core_match_unlink(&msg->order);
	if (UTIL_UNLIKELY(m->indexed))
		core_match_take_cold(m, msg);
}

/** The oldest unexpected message that such a receive would take, left where it is, or NULL. */
struct core_match_msg *core_match_peek(struct core_match *m, uint64_t tag, uint64_t ignore,
				       uint64_t src);

/** Heads of `order`, oldest first, for walking (only the visited object may be taken out). */
static inline struct util_list *core_match_posted(struct core_match *m)
{
	return &m->posted;
}

static inline struct util_list *core_match_unexpected(struct core_match *m)
{
	return &m->unexpected;
}

#endif
