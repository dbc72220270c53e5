/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Elastic completion queue, behind fi_cq: a power-of-two array that doubles when full. A completion
 * is never lost, and an operation never fails for lack of a slot.
 *
 * The queue starts small whatever the size hint, to stay in the CPU cache. Good and failed
 * completions are in one array, in order. A failed one refers to its record and is read by
 * core_cq_read_err. Progress writes, fi_cq_read* reads; the domain's lock (or its single thread)
 * covers both.
 */
#ifndef CORE_CORE_CQ_H
#define CORE_CORE_CQ_H

#include <copyrpc/stats.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bits.h"
#include "util/probe.h"

/** Completion. fi_cq_read returns a prefix of it. */
struct core_cqe {
	struct fi_cq_tagged_entry e; /* context, flags, len, buf, data, tag */
	fi_addr_t src;
	struct fi_cq_err_entry *err; /* not NULL: failed completion; record owned by the queue */
};

struct core_cq {
	struct core_cqe *ring;
	uint64_t head; /* next to read */
	uint64_t tail; /* next to write */
	/* Tail at which the ring is full, a lower bound; equal to `tail` while `notify` is set. */
	uint64_t full;
	uint64_t mask;       /* ring entries - 1 */
	uint64_t failed_cnt; /* failed completions in the ring */
	bool overrun;        /* memory ran out: entries were lost, each read reports it */
	/*
	 * Entries that are read from another source and also wake threads that wait on this queue.
	 */
	uint32_t intake_cnt;
	/*
	 * Called after each write while a thread waits on the queue's wait object; or NULL. While
	 * set, `full` is `tail`, so that each write takes the cold path.
	 */
	void (*notify)(struct core_cq *cq);
	struct copyrpc_stats_queue *stats; /* row in the statistics page, or NULL */
};

/** Opens the queue. `size_hint` as in fi_cq_attr.size, 0: default. Returns 0 or -FI_ENOMEM. */
int core_cq_init(struct core_cq *cq, size_t size_hint);
void core_cq_fini(struct core_cq *cq);

/** Writes what follows from the state of the queue to its row in the statistics page. */
void core_cq_show(struct core_cq *cq);

/**
 * Returns the slot of the next completion and advances tail, or NULL after an overrun. Grows the
 * ring if it is full.
 */
struct core_cqe *core_cq_next_cold(struct core_cq *cq);

/** Sets or clears `notify`. All changes of it go through this function. */
void core_cq_set_notify(struct core_cq *cq, void (*notify)(struct core_cq *cq));

static inline void core_cqe_fill(struct core_cqe *cqe, void *context, uint64_t flags, size_t len,
				 void *buf, uint64_t data, uint64_t tag, fi_addr_t src)
{
	UTIL_PROBE_OP(completion, context, flags, len, 0);
	cqe->e.op_context = context;
	cqe->e.flags = flags;
	cqe->e.len = len;
	cqe->e.buf = buf;
	cqe->e.data = data;
	cqe->e.tag = tag;
	cqe->src = src;
	cqe->err = NULL;
}

/** Returns true if there is a free slot and `notify` is not set. */
static inline bool core_cq_has_room(const struct core_cq *cq)
{
	return cq->tail != cq->full;
}

/**
 * Returns the number of completions that fit without growing the queue, or 0 while `notify` is set.
 */
static inline uint64_t core_cq_room(struct core_cq *cq)
{
	if (UTIL_LIKELY(!cq->notify))
		cq->full = cq->head + cq->mask + 1;
	return cq->full - cq->tail;
}

/** Returns the slot of the next completion and advances tail. There is a free slot. */
static inline struct core_cqe *core_cq_take(struct core_cq *cq)
{
	return &cq->ring[cq->tail++ & cq->mask];
}

/**
 * Returns the number of good completions before the first failed one among the next `cnt`, which
 * are all written.
 */
uint64_t core_cq_good_cnt_cold(const struct core_cq *cq, uint64_t cnt);

/** Returns the number of good completions that can be read now, at most `most`. */
static inline uint64_t core_cq_good_cnt(const struct core_cq *cq, uint64_t most)
{
	uint64_t cnt = cq->tail - cq->head;

	cnt = cnt < most ? cnt : most;
	return UTIL_LIKELY(!cq->failed_cnt) ? cnt : core_cq_good_cnt_cold(cq, cnt);
}

/** Cold path of core_cq_write: the ring may be full, or `notify` is set. */
void core_cq_write_cold(struct core_cq *cq, void *context, uint64_t flags, size_t len, void *buf,
			uint64_t data, uint64_t tag, fi_addr_t src);

static inline void core_cq_write(struct core_cq *cq, void *context, uint64_t flags, size_t len,
				 void *buf, uint64_t data, uint64_t tag, fi_addr_t src)
{
	if (UTIL_LIKELY(core_cq_has_room(cq)))
		core_cqe_fill(core_cq_take(cq), context, flags, len, buf, data, tag, src);
	else
		core_cq_write_cold(cq, context, flags, len, buf, data, tag, src);
}

/** Writes a failed completion. *err is copied without err_data. err->err is a positive FI_E*. */
void core_cq_write_err(struct core_cq *cq, const struct fi_cq_err_entry *err, fi_addr_t src);

/** Adds `cnt` entries that are read from another source. */
static inline void core_cq_add_intake(struct core_cq *cq, uint32_t cnt)
{
	cq->intake_cnt += cnt;
	if (UTIL_UNLIKELY(cq->notify != NULL))
		cq->notify(cq);
}

static inline bool core_cq_is_empty(const struct core_cq *cq)
{
	return cq->head == cq->tail;
}

/** Returns the oldest completion, left in place, or NULL. */
static inline struct core_cqe *core_cq_front(struct core_cq *cq)
{
	return cq->head == cq->tail ? NULL : &cq->ring[cq->head & cq->mask];
}

/** Reads the oldest completion if it is a failed one. Returns 1 and *err, or -FI_EAGAIN. */
int core_cq_read_err(struct core_cq *cq, struct fi_cq_err_entry *err);

#endif
