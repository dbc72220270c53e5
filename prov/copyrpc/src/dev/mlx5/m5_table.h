/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables with a user word per WQE. Used by the queues of this directory.
 *
 * A table has as many entries as the queue has places, a power of two; index = counter & mask.
 * Counters are the device's 16 bits, compared so that they may wrap. Arrays belong to the caller.
 *
 * Runs in the polling thread. Does not block or allocate.
 */
#ifndef DEV_MLX5_M5_TABLE_H
#define DEV_MLX5_M5_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/** Send queue, few WQEs of which report. A CQE frees the room of all up to its own (m5_sq.h). */
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

/** Receive queue, completed in order: a word each; the exact free count by counters. */
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
