/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How do receive WQEs that many QPs share get back to the device?
 *
 * The device takes them along a linked list: each WQE names the next. Those that are free hang
 * behind the last one posted, so posting is counting: the list already has them. One that is done
 * is appended at the tail. The list always ends in one WQE that is not posted, so that there is a
 * place to append to: a queue of n places takes n - 1.
 *
 *   posted: taken by the device -> [a] -> [b] -> [c] | free: -> [d] -> [e]  <- tail
 *
 * Refill is in bulk, one record for all (a record of a receive queue needs no register). It is due
 * when fewer than two thirds are posted. Before it, the CQ's consumer index is published, so that
 * posted WQEs and unread CQEs together never exceed the queue's size.
 *
 * Owner: whoever polls. Shown by test/unit/dev/mlx5/test_m5_srq.c.
 */
#ifndef M5_M5_SRQ_H
#define M5_M5_SRQ_H

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
	uint16_t tail;   /* place that ends the list */
	uint32_t free;   /* WQEs in the list behind the last posted, the tail not counted */
	uint32_t refill; /* post when so many are free */
	struct m5_recv recv;
};

/**
 * `places`: a power of two, 4 to 32768, of stride bytes (room for one gather entry). Writes all
 * WQEs: zero-length, linked 0, 1, 2 ... Nothing is posted yet. Counter: 0 for the device.
 */
void m5_srq_init(struct m5_srq *srq, void *buf, uint32_t places, uint32_t stride, uint32_t *record,
		 uint16_t counter);

static inline struct m5_srq_next *m5_srq_at(const struct m5_srq *srq, uint16_t idx)
{
	return (void *)(srq->buf + (size_t)(idx & srq->mask) * srq->stride);
}

/** The WQE of place idx is done. False: nothing is posted. */
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

/** Posts all that are free. */
static inline void m5_srq_post(struct m5_srq *srq)
{
	srq->recv.posted += (uint16_t)srq->free;
	srq->free = 0;
	m5_barrier_to_device();
	*(volatile uint32_t *)srq->record = htobe32(srq->recv.posted);
}

#endif
