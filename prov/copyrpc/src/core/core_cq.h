/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What has ended?
 *
 * An elastic completion queue: a power-of-two array that doubles when full, so that a completion
 * is never lost and an operation never fails for lack of a slot that it did not have. It starts
 * small whatever the hint says: the fewer lines it walks through, the longer they stay in the
 * cache. The array holds good and failed completions in one order; a failed one refers to its
 * record and is read by core_cq_read_err. Written by whoever makes progress, read by fi_cq_read*:
 * the domain's lock (or its single thread) covers both.
 *
 * Shown by test/unit/core/test_core_cq.c.
 */
#ifndef CORE_CQ_H
#define CORE_CQ_H

#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bits.h"

/** One good completion; a prefix of it is what fi_cq_read hands out. */
struct core_cqe {
	struct fi_cq_tagged_entry e; /* context, flags, len, buf, data, tag */
	fi_addr_t src;
	struct fi_cq_err_entry *err; /* not NULL: this is a failed completion, owned by the queue */
};

struct core_cq {
	struct core_cqe *ring;
	uint64_t head; /* next to read */
	uint64_t tail; /* next to write */
	uint64_t
		full; /* tail at which the ring is full, as far as the last look told; or see notify */
	uint64_t mask;       /* ring entries - 1 */
	uint64_t failed_cnt; /* failed completions in the ring */
	bool overrun;        /* memory ran out once: entries were lost, every read says so */
	uint32_t
		intake_cnt; /* things that are read elsewhere, and wake who sleeps here all the same */
	/*
	 * Called after each write while somebody waits on the queue's wait object; or NULL. While it
	 * is set, `full` is `tail`, so that each write takes the way that looks.
	 */
	void (*notify)(struct core_cq *cq);
};

/** `size_hint` as in fi_cq_attr.size; 0: a default. 0 or -FI_ENOMEM. */
int core_cq_init(struct core_cq *cq, size_t size_hint);
void core_cq_fini(struct core_cq *cq);

/**
 * The slot of the next completion, counted as written, or NULL after an overrun. Looks whether the
 * ring is really full, makes it larger if it is.
 */
struct core_cqe *core_cq_next_cold(struct core_cq *cq);

/** Asks for a call after the next write. `notify` must be set this way only. */
void core_cq_set_notify(struct core_cq *cq, void (*notify)(struct core_cq *cq));

static inline void core_cqe_fill(struct core_cqe *cqe, void *context, uint64_t flags, size_t len,
				 void *buf, uint64_t data, uint64_t tag, fi_addr_t src)
{
	cqe->e.op_context = context;
	cqe->e.flags = flags;
	cqe->e.len = len;
	cqe->e.buf = buf;
	cqe->e.data = data;
	cqe->e.tag = tag;
	cqe->src = src;
	cqe->err = NULL;
}

/** Room at once, and nobody to be called. */
static inline bool core_cq_has_room(const struct core_cq *cq)
{
	return cq->tail != cq->full;
}

/** For how many there is room at once: looks how far it was read, unless somebody is to be called. */
static inline uint64_t core_cq_room(struct core_cq *cq)
{
	if (UTIL_LIKELY(!cq->notify))
		cq->full = cq->head + cq->mask + 1;
	return cq->full - cq->tail;
}

/** The slot of the next completion, counted as written: there is room. */
static inline struct core_cqe *core_cq_take(struct core_cq *cq)
{
	return &cq->ring[cq->tail++ & cq->mask];
}

/** How many of the next `cnt` completions, all of them written, come before a failed one. */
uint64_t core_cq_good_cnt_cold(const struct core_cq *cq, uint64_t cnt);

/** Good completions that can be read now, at most `most`. */
static inline uint64_t core_cq_good_cnt(const struct core_cq *cq, uint64_t most)
{
	uint64_t cnt = cq->tail - cq->head;

	cnt = cnt < most ? cnt : most;
	return UTIL_LIKELY(!cq->failed_cnt) ? cnt : core_cq_good_cnt_cold(cq, cnt);
}

/** A write for which core_cq_write finds no room at once, or after which somebody is called. */
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

/** A failed completion; *err is copied (err_data is dropped). err->err is a positive FI_E*. */
void core_cq_write_err(struct core_cq *cq, const struct fi_cq_err_entry *err, fi_addr_t src);

/** `cnt` more to be read elsewhere. */
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

/** The oldest completion, left in place, or NULL. */
static inline struct core_cqe *core_cq_front(struct core_cq *cq)
{
	return cq->head == cq->tail ? NULL : &cq->ring[cq->head & cq->mask];
}

/** Takes the oldest completion, a failed one: 1 and *err, or -FI_EAGAIN if it is not one. */
int core_cq_read_err(struct core_cq *cq, struct fi_cq_err_entry *err);

#endif
