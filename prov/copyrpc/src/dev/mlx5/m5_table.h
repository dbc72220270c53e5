/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables with a user word per WQE. Used by the queues of this directory.
 *
 *   queue                        order      table
 *   SQ, DCI; every WQE matters   ordered    m5_dense:  all registered; a CQE ends (last, current]
 *   SQ, DCI; few matter          ordered    m5_sparse: signalled ones registered; the range still
 *                                           frees the queue's room (m5_sq.h)
 *   DCI with streams             unordered  m5_slots:  every WQE signalled, its own slot
 *   RQ, SRQ                      ordered    m5_recv:   a slot each; exact free count by counters
 *   SRQ with tag matching        unordered  m5_slots:  a slot each; no exact free count
 *
 * m5_sparse and m5_recv are in use. The others are for queues where each WQE reports by itself.
 *
 * A table has as many entries as the queue has places, a power of two; index = counter & mask.
 * Counters are the device's 16 bits, compared so that they may wrap. Arrays belong to the caller.
 *
 * A slot has a generation of 32 bits: a completion for an earlier use of the slot is refused.
 *
 * Runs in the polling thread. Does not block or allocate. Tests:
 * test/unit/dev/mlx5/test_m5_table.c.
 */
#ifndef DEV_MLX5_M5_TABLE_H
#define DEV_MLX5_M5_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* 1. Ordered, dense. */

struct m5_dense {
	uint64_t *user;
	uint16_t mask;
	uint16_t next; /* first counter not completed */
	uint16_t end;  /* counter behind the last registered one */
};

static inline void m5_dense_init(struct m5_dense *t, uint64_t *user, uint32_t cnt, uint16_t start)
{
	*t = (struct m5_dense){ user, (uint16_t)(cnt - 1), start, start };
}

/** Registers WQE `counter`, behind all registered ones. Blocks between them belong to no WQE. */
static inline void m5_dense_put(struct m5_dense *t, uint16_t counter, uint64_t user)
{
	t->user[counter & t->mask] = user;
	t->end = (uint16_t)(counter + 1);
}

/**
 * Ends all counters up to `counter`: *cnt of them from *first on. Returns false if no such WQE is
 * open.
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

/** Stores the word of the signalled WQE that begins at block `counter`. */
static inline void m5_sparse_put(struct m5_sparse *t, uint16_t counter, uint64_t user)
{
	t->user[counter & t->mask] = user;
}

/** Returns the word and clears it, so that a second completion finds 0. */
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
	uint32_t gen; /* generation of the present or last use */
	enum m5_slot_state state;
};

struct m5_slots {
	struct m5_slot *slot;
	uint16_t mask;
};

/** Starts a table with all slots free. */
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

/** Takes the free slot of `counter` and returns its generation. Returns false if it is in use. */
static inline bool m5_slots_put(struct m5_slots *t, uint16_t counter, uint64_t user, uint32_t *gen)
{
	struct m5_slot *slot = &t->slot[counter & t->mask];

	if (slot->state != M5_SLOT_FREE)
		return false;
	*slot = (struct m5_slot){ user, slot->gen + 1, M5_SLOT_OPEN };
	*gen = slot->gen;
	return true;
}

/** Frees the slot if it is still in the use of that generation. */
static inline bool m5_slots_take(struct m5_slots *t, uint16_t counter, uint32_t gen, uint64_t *user)
{
	struct m5_slot *slot = &t->slot[counter & t->mask];

	if (slot->state != M5_SLOT_OPEN || slot->gen != gen)
		return false;
	*user = slot->user;
	slot->state = M5_SLOT_FREE;
	return true;
}

/** Counts free slots by reading every one. */
static inline uint32_t m5_slots_count_free(const struct m5_slots *t)
{
	uint32_t i, cnt = 0;

	for (i = 0; i <= t->mask; i++)
		cnt += t->slot[i].state == M5_SLOT_FREE;
	return cnt;
}

/* 4. Ordered receive queue. */

struct m5_recv {
	uint64_t *user; /* NULL: no words (zero-length buffers) */
	uint16_t mask;
	uint16_t posted; /* counter of posts */
	uint16_t done;   /* counter of completions */
};

static inline void m5_recv_init(struct m5_recv *t, uint64_t *user, uint32_t cnt, uint16_t start)
{
	*t = (struct m5_recv){ user, (uint16_t)(cnt - 1), start, start };
}

static inline uint32_t m5_recv_posted(const struct m5_recv *t)
{
	return (uint16_t)(t->posted - t->done);
}

/** Returns the exact number. At most 32768 places: 65536 would be full where it looks empty. */
static inline uint32_t m5_recv_free(const struct m5_recv *t)
{
	return (uint32_t)t->mask + 1 - m5_recv_posted(t);
}

/** Posts to place `idx` (of a linked list, or posted & mask). */
static inline void m5_recv_put(struct m5_recv *t, uint16_t idx, uint64_t user)
{
	if (t->user)
		t->user[idx & t->mask] = user;
	t->posted++;
}

/** Ends place `idx`. Returns false if nothing is posted. */
static inline bool m5_recv_take(struct m5_recv *t, uint16_t idx, uint64_t *user)
{
	if (!m5_recv_posted(t))
		return false;
	t->done++;
	*user = t->user ? t->user[idx & t->mask] : 0;
	return true;
}

#endif
