/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive queue of one queue pair, a ring of WQEs with one gather entry each. Called by m5_ud.
 *
 * Buffers return in any order, so a place of the ring gets the next free buffer. The table m5_recv
 * (m5_table.h) records the buffer of each place, and its counters are the exact number outstanding.
 *
 *         done            published       posted
 *   .......##################++++++++++++++.......    # the device has, + written, not published
 *
 * Publishing is in bulk: one store to the doorbell record (a receive queue needs no register) for
 * M5_RQ_BULK buffers, or for fewer when the device is about to run out. The CQ's consumer index is
 * published before (reason in m5_srq.h).
 *
 * Runs in the polling thread. Does not block or allocate.
 */
#ifndef DEV_MLX5_M5_RQ_H
#define DEV_MLX5_M5_RQ_H

#include <endian.h>
#include <string.h>

#include "dev/mlx5/m5_barrier.h"
#include "dev/mlx5/m5_layout.h"
#include "dev/mlx5/m5_table.h"
#include "util/bits.h"

#define M5_RQ_BULK 32u

struct m5_rq {
	uint8_t *buf;
	uint32_t *record; /* M5_DBR_RECV word */
	uint32_t stride;
	uint32_t lkey_be;
	uint32_t len_be; /* of each buffer */
	uint16_t published;
	uint16_t bulk;
	struct m5_recv recv;
};

/**
 * Starts a queue of `places`: a power of two, at most 32768, of stride bytes (16, or more if there
 * is room for more entries). `user` has a word for each place. All buffers have len bytes under
 * lkey. `counter` is 0 except in tests.
 */
static inline void m5_rq_init(struct m5_rq *rq, void *buf, uint32_t places, uint32_t stride,
			      uint32_t *record, uint64_t *user, uint32_t len, uint32_t lkey,
			      uint16_t counter)
{
	*rq = (struct m5_rq){
		.buf = buf,
		.record = record,
		.stride = stride,
		.lkey_be = htobe32(lkey),
		.len_be = htobe32(len),
		.published = counter,
		.bulk = (uint16_t)(places / 4 < M5_RQ_BULK ? (places + 3) / 4 : M5_RQ_BULK),
	};
	memset(buf, 0, (size_t)places * stride);
	m5_recv_init(&rq->recv, user, places, counter);
}

/** Posts the free buffer at addr under the word `user`. There are no more buffers than places. */
static inline void m5_rq_put(struct m5_rq *rq, const void *addr, uint64_t user)
{
	uint16_t idx = rq->recv.posted & rq->recv.mask;
	struct m5_data *data = (void *)(rq->buf + (size_t)idx * rq->stride);

	data->len = rq->len_be;
	data->lkey = rq->lkey_be;
	data->addr = htobe64((uintptr_t)addr);
	if (rq->stride > sizeof(*data)) /* end of the list of entries */
		data[1].lkey = htobe32(M5_LKEY_NONE);
	m5_recv_put(&rq->recv, idx, user);
}

/** Ends the WQE posted as `counter`. Returns its word, or false if the device has no WQE. */
static inline bool m5_rq_take(struct m5_rq *rq, uint16_t counter, uint64_t *user)
{
	if (UTIL_UNLIKELY((uint16_t)(rq->published - rq->recv.done) == 0))
		return false;
	return m5_recv_take(&rq->recv, counter & rq->recv.mask, user);
}

/** Returns true if it is time to publish. */
static inline bool m5_rq_is_due(const struct m5_rq *rq)
{
	uint16_t unpublished = (uint16_t)(rq->recv.posted - rq->published);

	return unpublished >= rq->bulk ||
	       (unpublished && (uint16_t)(rq->published - rq->recv.done) < rq->bulk);
}

/** Gives all posted buffers to the device. */
static inline void m5_rq_publish(struct m5_rq *rq)
{
	rq->published = rq->recv.posted;
	m5_barrier_give_back();
	m5_barrier_to_device();
	*(volatile uint32_t *)rq->record = htobe32(rq->published);
}

#endif
