/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whose WQE was that? Five ways to keep a word of the user's per WQE, by what the queue promises.
 *
 *   queue                        order      table
 *   SQ, DCI; every WQE matters   ordered    m5_dense:  all registered; a CQE ends (last, current]
 *   SQ, DCI; few matter          ordered    m5_sparse: signalled ones registered; the range still
 *                                           frees the queue's room (m5_sq.h)
 *   DCI with streams             unordered  m5_slots:  every WQE signalled, its own slot
 *   RQ, SRQ                      ordered    m5_recv:   a slot each; exact free count by counters
 *   SRQ with tag matching        unordered  m5_slots:  a slot each; no exact free count
 *
 * A table has as many entries as the queue has places, a power of two; index = counter & mask.
 * Counters are the device's 16 bits, compared so that they may wrap. A CQE with an error advances
 * them and gives the user's word back like any other: nothing is tried again silently.
 *
 * An unordered slot carries a generation of 32 bits: a completion that names a slot which was given
 * back, or given to somebody else since, is refused.
 *
 * Arrays are the caller's. Owner: the queue's. Does not block or allocate.
 * Shown by test/unit/dev/mlx5/test_m5_table.c.
 */
#ifndef M5_M5_TABLE_H
#define M5_M5_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* 1. Ordered, dense. */

struct m5_dense {
	uint64_t *user;
	uint16_t mask;
	uint16_t next; /* first counter not completed */
	uint16_t end;  /* one behind the last registered */
};

static inline void m5_dense_init(struct m5_dense *t, uint64_t *user, uint32_t cnt, uint16_t start)
{
	*t = (struct m5_dense){ user, (uint16_t)(cnt - 1), start, start };
}

/** WQE `counter`, behind all that are registered; blocks between them belong to no WQE. */
static inline void m5_dense_put(struct m5_dense *t, uint16_t counter, uint64_t user)
{
	t->user[counter & t->mask] = user;
	t->end = (uint16_t)(counter + 1);
}

/**
 * A CQE for `counter`: *cnt counters from *first on have ended, `counter` the last of them. False:
 * no such WQE is open.
 */
static inline bool m5_dense_complete(struct m5_dense *t, uint16_t counter, uint16_t *first,
				     uint16_t *cnt)
{
	uint16_t n = (uint16_t)(counter - t->next + 1);

	if (!n || n > (uint16_t)(t->end - t->next))
		return false;
	*first = t->next;
	*cnt = n;
	t->next = (uint16_t)(counter + 1);
	return true;
}

static inline uint64_t m5_dense_get(const struct m5_dense *t, uint16_t counter)
{
	return t->user[counter & t->mask];
}

/* 2. Ordered, sparse. */

struct m5_sparse {
	uint64_t *user;
	uint16_t mask;
};

static inline void m5_sparse_init(struct m5_sparse *t, uint64_t *user, uint32_t cnt)
{
	*t = (struct m5_sparse){ user, (uint16_t)(cnt - 1) };
}

/** The signalled WQE that begins at block `counter`. */
static inline void m5_sparse_put(struct m5_sparse *t, uint16_t counter, uint64_t user)
{
	t->user[counter & t->mask] = user;
}

/** Its word; 0 afterwards, so that a second completion finds nothing. */
static inline uint64_t m5_sparse_take(struct m5_sparse *t, uint16_t counter)
{
	uint64_t user = t->user[counter & t->mask];

	t->user[counter & t->mask] = 0;
	return user;
}

/* 3. and 5. Unordered. */

enum m5_slot_state { M5_SLOT_FREE, M5_SLOT_OPEN };

struct m5_slot {
	uint64_t user;
	uint32_t gen; /* of its present or last use */
	enum m5_slot_state state;
};

struct m5_slots {
	struct m5_slot *slot;
	uint16_t mask;
};

/** All free. */
static inline void m5_slots_init(struct m5_slots *t, struct m5_slot *slot, uint32_t cnt)
{
	*t = (struct m5_slots){ slot, (uint16_t)(cnt - 1) };
	while (cnt--)
		slot[cnt] = (struct m5_slot){ .state = M5_SLOT_FREE };
}

static inline bool m5_slots_is_free(const struct m5_slots *t, uint16_t counter)
{
	return t->slot[counter & t->mask].state == M5_SLOT_FREE;
}

/** Takes the free slot of `counter`; its generation goes into *gen. False: it is in use. */
static inline bool m5_slots_put(struct m5_slots *t, uint16_t counter, uint64_t user, uint32_t *gen)
{
	struct m5_slot *slot = &t->slot[counter & t->mask];

	if (slot->state != M5_SLOT_FREE)
		return false;
	*slot = (struct m5_slot){ user, slot->gen + 1, M5_SLOT_OPEN };
	*gen = slot->gen;
	return true;
}

/** Gives it back, if it is still that use of it. */
static inline bool m5_slots_take(struct m5_slots *t, uint16_t counter, uint32_t gen, uint64_t *user)
{
	struct m5_slot *slot = &t->slot[counter & t->mask];

	if (slot->state != M5_SLOT_OPEN || slot->gen != gen)
		return false;
	*user = slot->user;
	slot->state = M5_SLOT_FREE;
	return true;
}

/** A look at every slot: for when it must be known, not for every post. */
static inline uint32_t m5_slots_count_free(const struct m5_slots *t)
{
	uint32_t i, cnt = 0;

	for (i = 0; i <= t->mask; i++)
		cnt += t->slot[i].state == M5_SLOT_FREE;
	return cnt;
}

/* 4. Ordered receive queue. */

struct m5_recv {
	uint64_t *user; /* NULL: buffers need no word (zero-length ones) */
	uint16_t mask;
	uint16_t posted; /* counter of posts ... */
	uint16_t done;   /* ... and of completions */
};

static inline void m5_recv_init(struct m5_recv *t, uint64_t *user, uint32_t cnt, uint16_t start)
{
	*t = (struct m5_recv){ user, (uint16_t)(cnt - 1), start, start };
}

static inline uint32_t m5_recv_posted(const struct m5_recv *t)
{
	return (uint16_t)(t->posted - t->done);
}

/** Exact. A queue of 65536 places would be full where it looks empty: 32768 is the largest. */
static inline uint32_t m5_recv_free(const struct m5_recv *t)
{
	return (uint32_t)t->mask + 1 - m5_recv_posted(t);
}

/** The next post goes to place `idx` (of a linked list, or posted & mask). */
static inline void m5_recv_put(struct m5_recv *t, uint16_t idx, uint64_t user)
{
	if (t->user)
		t->user[idx & t->mask] = user;
	t->posted++;
}

/** A completion names place `idx`. False: nothing is posted. */
static inline bool m5_recv_take(struct m5_recv *t, uint16_t idx, uint64_t *user)
{
	if (!m5_recv_posted(t))
		return false;
	t->done++;
	*user = t->user ? t->user[idx & t->mask] : 0;
	return true;
}

#endif
