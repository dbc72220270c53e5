/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device's side of a completion queue, in memory: writes CQEs of 64 bytes with the owner bit of its
 * lap in the last byte.
 */
#ifndef UNIT_MLX5_CQ_DEVICE_H
#define UNIT_MLX5_CQ_DEVICE_H

#include <endian.h>
#include <string.h>

#include "dev/mlx5/m5_cq.h"
#include "support/guard.h"

struct cq_device {
	struct m5_cq cq;
	uint8_t *buf;
	uint32_t size, cqe_len;
	uint32_t pi;
	uint32_t record[2];
	uint64_t page[8]; /* the arm register is at byte 0x20 */
};

static inline void cq_device_init(struct cq_device *d, uint32_t size, uint32_t cqe_len, uint32_t ci)
{
	memset(d, 0, sizeof(*d));
	d->size = size;
	d->cqe_len = cqe_len;
	d->pi = ci;
	d->buf = guard_alloc((size_t)size * cqe_len);
	m5_cq_init(&d->cq, d->buf, size, cqe_len, d->record, ci);
	d->cq.uar = d->page;
	d->cq.cqn = 0x00abcd;
}

static inline void cq_device_fini(struct cq_device *d)
{
	guard_free(d->buf, (size_t)d->size * d->cqe_len);
}

/** Returns place `pi` of the ring. */
static inline uint8_t *cq_device_at(struct cq_device *d, uint32_t pi)
{
	return d->buf + (size_t)(pi % d->size) * d->cqe_len + d->cqe_len - 64;
}

static inline uint8_t cq_device_owner(const struct cq_device *d)
{
	return (uint8_t)(d->pi / d->size & 1);
}

/** Writes one CQE: opcode in the upper half of op, format bits in the lower. */
static inline void cq_device_write(struct cq_device *d, uint8_t op, uint32_t qpn, uint16_t counter,
				   uint32_t imm)
{
	uint32_t v;
	uint8_t *cqe = cq_device_at(d, d->pi);

	memset(cqe, 0, 63);
	v = htobe32(imm);
	memcpy(cqe + 36, &v, 4);
	v = htobe32(qpn);
	memcpy(cqe + 56, &v, 4);
	cqe[60] = (uint8_t)(counter >> 8);
	cqe[61] = (uint8_t)counter;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	cqe[63] = op | cq_device_owner(d);
	d->pi++;
}

#endif
