/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device's side of a send queue, in memory. Reads from its own index to the doorbell record, WQE by
 * WQE, and checks that each begins where the last one ended, has its own counter and does not cross
 * the end.
 */
#ifndef UNIT_MLX5_SQ_DEVICE_H
#define UNIT_MLX5_SQ_DEVICE_H

#include <criterion/criterion.h>
#include <endian.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "dev/mlx5/m5_sq.h"
#include "support/guard.h"

#define SQ_DEVICE_MAX 1024u

struct sq_device {
	struct m5_sq sq;
	struct m5_uar uar;
	uint8_t *buf;
	uint32_t blocks;
	uint32_t record[2];
	alignas(64) uint8_t reg[2 * 256];
	/* State of the device. */
	uint16_t idx;
	uint16_t nops, wqes;
	uint16_t done[SQ_DEVICE_MAX]; /* counters of signalled WQEs, not reported yet */
	uint32_t head, tail;
};

static inline void sq_device_init(struct sq_device *d, uint32_t blocks, uint32_t half,
				  uint16_t start)
{
	memset(d, 0, sizeof(*d));
	d->blocks = blocks;
	d->buf = guard_alloc((size_t)blocks * M5_BB);
	m5_uar_init(&d->uar, d->reg, half);
	d->uar.wide = false;
	m5_sq_init(&d->sq, d->buf, blocks, &d->record[M5_DBR_SEND], &d->uar, 0x123456, start);
	d->record[M5_DBR_SEND] = htobe32(start);
	d->idx = start;
}

static inline void sq_device_fini(struct sq_device *d)
{
	guard_free(d->buf, (size_t)d->blocks * M5_BB);
}

/** Returns the number of doorbells, at most 2: each writes the next half of the register. */
static inline unsigned sq_device_rings(const struct sq_device *d)
{
	uint64_t half[2];
	unsigned cnt;

	memcpy(&half[0], d->reg, sizeof(half[0]));
	memcpy(&half[1], d->reg + d->uar.half, sizeof(half[1]));
	cnt = !!half[0] + !!half[1];
	cr_assert_eq(d->uar.off, cnt % 2 ? d->uar.half : 0, "more than two doorbells");
	return cnt;
}

/** Reads all WQEs up to the doorbell record. */
static inline void sq_device_run(struct sq_device *d)
{
	uint16_t end = (uint16_t)be32toh(d->record[M5_DBR_SEND]);

	while (d->idx != end) {
		uint32_t place = d->idx % d->blocks;
		const uint8_t *wqe = d->buf + (size_t)place * 64;
		uint32_t ds = wqe[7] & 0x3f, bb = (ds * 16 + 63) / 64;

		cr_assert_geq(ds, 1);
		cr_assert_leq(place + bb, d->blocks, "a WQE of %u blocks at %u of %u", bb, place,
			      d->blocks);
		cr_assert_eq((uint16_t)(wqe[1] << 8 | wqe[2]), d->idx, "counter of a WQE");
		cr_assert_eq(wqe[4] << 16 | wqe[5] << 8 | wqe[6], 0x123456);
		if (wqe[3] == 0)
			d->nops++;
		else
			d->wqes++;
		if (wqe[11] & 0x08)
			d->done[d->tail++ % SQ_DEVICE_MAX] = d->idx;
		d->idx = (uint16_t)(d->idx + bb);
		cr_assert_leq((uint16_t)(d->idx - d->sq.ci), d->blocks, "overwritten");
	}
}

/** Completes one signalled WQE, if there is one. */
static inline bool sq_device_complete(struct sq_device *d)
{
	if (d->head == d->tail)
		return false;
	cr_assert(m5_sq_retire(&d->sq, d->done[d->head++ % SQ_DEVICE_MAX]));
	return true;
}

/**
 * Builds and commits a WRITE_IMM of bb blocks, without ringing. Returns false if there is no room.
 */
static inline bool sq_device_post(struct sq_device *d, uint16_t bb)
{
	static const uint8_t bytes[M5_INLINE_MAX];
	uint32_t len = bb * M5_BB - 36;
	uint8_t flags = 0;
	struct m5_wqe w;

	if (!m5_sq_has_room(&d->sq, bb))
		return false;
	m5_wqe_begin(&w, m5_sq_reserve(&d->sq, bb));
	m5_wqe_raddr(&w, 0x1000, 7);
	m5_wqe_inline(&w, bytes, len);
	flags = m5_sq_signal(&d->sq, bb);
	cr_assert_eq(m5_wqe_end(&w, d->sq.pi, M5_OP_WRITE_IMM, d->sq.qpn, flags, 1), bb);
	m5_sq_commit(&d->sq, bb, flags);
	return true;
}

#endif
