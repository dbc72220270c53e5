/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching of messages with posted receives, in MPI order. Called by core_post.h, core_rx.c,
 * core_rx_post.c and core_unexp.c.
 *
 * A message takes the oldest posted receive that accepts it. A receive takes the oldest unexpected
 * message that it accepts. A receive accepts a message when
 *
 *	((recv.tag ^ msg.tag) & ~recv.ignore) == 0  and  (recv.src == CORE_MATCH_ANY or == msg.src)
 *
 * The cost does not grow with either queue. A shape is an ignore mask plus "any source" or "one
 * source"; programs use few of them (MPI four). Per shape in use, receives and messages are hashed
 * by (tag & ~ignore, src), and equal keys share a FIFO. An arrival probes each live shape once.
 * Shapes beyond CORE_MATCH_SHAPES share one list (excess) that is searched in order.
 *
 * Most matches take the oldest entry, so this header tries it inline before core_match.c hashes:
 * receives when more than CORE_MATCH_LAZY are unhashed, messages when a search finds more than
 * CORE_MATCH_SCAN. Memory is allocated only when a table grows. The domain's lock covers all.
 *
 * Shown by test/unit/core/msg/test_core_match.c (a list scan is the oracle) and match_bench.
 */
#ifndef CORE_MSG_CORE_MATCH_H
#define CORE_MSG_CORE_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/msg/core_match_table.h"
#include "util/bits.h"
#include "util/list.h"

#define CORE_MATCH_ANY    UINT64_MAX /* source of a receive only, never of a message */
#define CORE_MATCH_SHAPES 8
#define CORE_MATCH_LAZY   16 /* receives that are searched in order; match_bench has the figures */
#define CORE_MATCH_SCAN   16 /* messages that are searched in order */

/** Values of core_match_recv.shape besides the index of a shape. */
enum core_match_location {
	CORE_MATCH_UNHASHED = -1, /* only in the order list */
	CORE_MATCH_EXCESS = -2,   /* in core_match.excess: no table is free for its shape */
};

/** Receive, embedded in its request. The caller sets tag, ignore, src; core_match sets the rest. */
struct core_match_recv {
	uint64_t tag;
	uint64_t ignore;
	uint64_t src;
	uint64_t seq;            /* lower (modulo 2^64) is older; set by core_match_post */
	struct util_list order;  /* all posted receives, oldest first */
	int16_t shape;           /* index in recv_shapes, or enum core_match_location */
	uint16_t listed;         /* in a device's list (core_offload.h), hashed: entry + 1; or 0 */
	struct util_list bucket; /* receives with the same key, oldest first */
};

/** Unexpected message, embedded in its record. The caller sets tag, src; core_match the rest. */
struct core_match_msg {
	uint64_t tag;
	uint64_t src;
	struct util_list order; /* all unexpected messages, oldest first */
	struct util_list bucket[CORE_MATCH_SHAPES];
};

struct core_match_shape {
	uint64_t ignore;
	uint64_t used; /* messages: core_match.search_cnt at the last use */
	size_t cnt;    /* receives: entries of the table */
	bool any;
	struct core_match_table table;
};

struct core_match {
	struct util_list posted;     /* core_match_recv.order */
	struct util_list unexpected; /* core_match_msg.order */
	uint64_t seq;                /* of the next receive */
	size_t hashed_cnt;           /* posted receives in a table or in excess */
	uint64_t past_cnt;           /* posted receives of all time that are hashed or gone */
	uint8_t live;                /* bit per recv_shapes[]: the table has receives */
	uint8_t indexed;             /* bit per msg_shapes[]: has every unexpected message */
	/* Fields of the cold half. */
	struct util_list excess; /* core_match_recv.bucket, oldest first */
	uint64_t search_cnt;     /* searches that went past the oldest message */
	size_t unexpected_cnt;
	struct core_match_shape recv_shapes[CORE_MATCH_SHAPES];
	struct core_match_shape msg_shapes[CORE_MATCH_SHAPES];
};

struct core_match *core_match_open(void);    /* NULL: no memory */
void core_match_close(struct core_match *m); /* queues are walked and emptied by the caller */

/** Hashes all posted receives. */
void core_match_hash_all(struct core_match *m);

/** Directs receives at another source, and lets messages come from it: two sources are one. */
void core_match_rename(struct core_match *m, uint64_t from, uint64_t to);

/** Cold halves of the functions below: hash or search. */
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

/** Returns true if a post needs only core_match_queue. */
static inline bool core_match_has_no_unexp(struct core_match *m)
{
	return util_list_is_empty(&m->unexpected);
}

/** Returns the number of receives that are not hashed: the youngest ones. */
static inline size_t core_match_fresh_cnt(const struct core_match *m)
{
	return m->seq - m->past_cnt;
}

static inline size_t core_match_posted_cnt(const struct core_match *m)
{
	return m->hashed_cnt + core_match_fresh_cnt(m);
}

/** Appends `recv` as the youngest posted receive. */
static inline void core_match_queue(struct core_match *m, struct core_match_recv *recv)
{
	recv->seq = m->seq++;
	recv->shape = CORE_MATCH_UNHASHED;
	recv->listed = 0;
	util_list_push_back(&m->posted, &recv->order);
}

/** Removes and returns the oldest unexpected message that `recv` accepts, or NULL and queues it. */
static inline struct core_match_msg *core_match_post(struct core_match *m,
						     struct core_match_recv *recv)
{
	if (UTIL_UNLIKELY(!core_match_has_no_unexp(m)))
		return core_match_post_cold(m, recv);
	core_match_queue(m, recv);
	return NULL;
}

/** Returns the oldest posted receive of all, left queued, if it accepts (tag, src); or NULL. */
static inline struct core_match_recv *core_match_oldest(struct core_match *m, uint64_t tag,
							uint64_t src)
{
	struct core_match_recv *recv;

	if (util_list_is_empty(&m->posted))
		return NULL;
	recv = UTIL_CONTAINER_OF(m->posted.next, struct core_match_recv, order);
	UTIL_OPAQUE(recv);
	return core_match_accepts(recv, tag, src) ? recv : NULL;
}

/** Returns the oldest posted receive that accepts (tag, src), left queued, or NULL. */
static inline struct core_match_recv *core_match_find(struct core_match *m, uint64_t tag,
						      uint64_t src)
{
	struct core_match_recv *recv = core_match_oldest(m, tag, src);

	if (recv || util_list_is_empty(&m->posted))
		return recv;
	return core_match_find_cold(m, tag, src);
}

/** Removes a queued receive that is not hashed. */
static inline void core_match_unqueue(struct core_match *m, struct core_match_recv *recv)
{
	m->past_cnt++;
	core_match_unlink(&recv->order);
}

/** Removes a queued receive (cancel, close, peer death, a full multi-receive buffer). */
static inline void core_match_cancel(struct core_match *m, struct core_match_recv *recv)
{
	if (UTIL_UNLIKELY(recv->shape != CORE_MATCH_UNHASHED))
		core_match_cancel_cold(m, recv);
	else
		core_match_unqueue(m, recv);
}

/** Removes and returns the oldest posted receive that accepts (tag, src), or NULL. */
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

/** Removes a queued message (FI_CLAIM, FI_DISCARD, peer death). */
static inline void core_match_take(struct core_match *m, struct core_match_msg *msg)
{
	m->unexpected_cnt--;
	core_match_unlink(&msg->order);
	if (UTIL_UNLIKELY(m->indexed))
		core_match_take_cold(m, msg);
}

/** Returns the oldest unexpected message that such a receive accepts, left queued, or NULL. */
struct core_match_msg *core_match_peek(struct core_match *m, uint64_t tag, uint64_t ignore,
				       uint64_t src);

/** Heads of the `order` lists, oldest first. A walk may remove the current entry only. */
static inline struct util_list *core_match_posted(struct core_match *m)
{
	return &m->posted;
}

static inline struct util_list *core_match_unexpected(struct core_match *m)
{
	return &m->unexpected;
}

#endif
