/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive queue: receive WQEs for many QPs. Called by m5_poll.
 *
 * The device takes WQEs along a linked list: each names the next. Free WQEs are already linked
 * behind the last one posted, so posting only advances a counter. A completed WQE is appended at
 * the tail. The last WQE of the list stays unposted as a place to append to: a queue of n places
 * takes n - 1.
 *
 *   posted: taken by the device -> [a] -> [b] -> [c] | free: -> [d] -> [e]  <- tail
 *
 * Posting is in bulk, one store to the doorbell record (a receive queue needs no register), when
 * fewer than two thirds are posted. The CQ's consumer index is published before, so that posted
 * WQEs and unread CQEs together never exceed the queue's size.
 *
 * Runs in the polling thread.
 */
#ifndef DEV_MLX5_M5_SRQ_H
#define DEV_MLX5_M5_SRQ_H

#include <endian.h>

#include "dev/mlx5/m5_barrier.h"
#include "dev/mlx5/m5_layout.h"
#include "dev/mlx5/m5_table.h"
#include "util/bits.h"

struct m5_srq {
	uint8_t *buf;
	uint32_t *record;
	uint32_t stride;
	uint16_t mask;
	uint16_t tail;   /* place at the end of the list */
	uint32_t free;   /* WQEs behind the last posted one, without the tail */
	uint32_t refill; /* number of free WQEs at which they are posted */
	struct m5_recv recv;
};

/**
 * Starts a queue of `places`: a power of two, 4 to 32768, of stride bytes (room for one gather
 * entry). Writes all WQEs: zero-length, linked 0, 1, 2 ... Posts none. `counter` is 0 except in
 * tests.
 */
void m5_srq_init(struct m5_srq *srq, void *buf, uint32_t places, uint32_t stride, uint32_t *record,
		 uint16_t counter);

static inline struct m5_srq_next *m5_srq_at(const struct m5_srq *srq, uint16_t idx)
{
	return (void *)(srq->buf + (size_t)(idx & srq->mask) * srq->stride);
}

/** Frees the WQE of place idx. Returns false if none is posted. */
static inline bool m5_srq_give(struct m5_srq *srq, uint16_t idx)
{
	uint64_t user;

	if (UTIL_UNLIKELY(idx > srq->mask || !m5_recv_take(&srq->recv, idx, &user)))
		return false;
	m5_srq_at(srq, srq->tail)->next = htobe16(idx);
	srq->tail = idx;
	srq->free++;
	return true;
}

static inline bool m5_srq_is_due(const struct m5_srq *srq)
{
	return srq->free >= srq->refill;
}

/** Posts all free WQEs. */
static inline void m5_srq_post(struct m5_srq *srq)
{
	srq->recv.posted += (uint16_t)srq->free;
	srq->free = 0;
	m5_barrier_to_device();
	*(volatile uint32_t *)srq->record = htobe32(srq->recv.posted);
}

#endif
