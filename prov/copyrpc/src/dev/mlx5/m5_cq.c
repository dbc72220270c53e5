/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rare operations of a completion queue: init, arming, removal of a QP (m5_cq.h). */
#include "dev/mlx5/m5_cq.h"

#include <string.h>

#define M5_CQ_ARM_REG  0x20u      /* byte offset in the UAR page */
#define M5_CQ_ARM_NEXT (0u << 24) /* any CQE, not only solicited ones */

void m5_cq_init(struct m5_cq *cq, void *buf, uint32_t size, uint32_t cqe_len, uint32_t *record,
		uint32_t ci)
{
	uint32_t i;

	*cq = (struct m5_cq){
		.buf = (uint8_t *)buf + cqe_len - sizeof(struct m5_cqe),
		.size = size,
		.shift = (uint8_t)__builtin_ctz(cqe_len),
		.record = record,
	};
	m5_cq_seek(cq, ci);
	for (i = 0; i < size; i++)
		m5_cq_at(cq, ci + i)->op_own = M5_CQE_INVALID << 4 | !((ci + i) & size);
}

void m5_cq_arm(struct m5_cq *cq)
{
	uint32_t head = (cq->arm_sn & 3) << 28 | M5_CQ_ARM_NEXT | (cq->ci & 0xffffff);
	uint64_t doorbell = htobe64((uint64_t)head << 32 | cq->cqn);

	m5_cq_publish(cq);
	m5_barrier_to_device();
	*(volatile uint32_t *)&cq->record[1] = htobe32(head);
	m5_barrier_mmio_start();
	*(volatile uint64_t *)(void *)((uint8_t *)cq->uar + M5_CQ_ARM_REG) = doorbell;
	m5_barrier_mmio_flush();
}

/* Returns the next CQE of this QP at or behind *ci, or NULL. */
static struct m5_cqe *m5_cq_next(const struct m5_cq *cq, uint32_t *ci, uint32_t qpn)
{
	for (; *ci - cq->ci < cq->size; ++*ci) {
		struct m5_cqe *cqe = m5_cq_at(cq, *ci);

		if (!m5_cqe_is_ours(cqe, !!(*ci & cq->size)))
			return NULL;
		m5_barrier_from_device();
		if (m5_cqe_qpn(cqe) == qpn)
			return cqe;
	}
	return NULL;
}

uint32_t m5_cq_forget(struct m5_cq *cq, uint32_t qpn)
{
	uint32_t ci = cq->ci, cnt = 0;
	struct m5_cqe *cqe;

	for (; (cqe = m5_cq_next(cq, &ci, qpn)); ci++, cnt++)
		cqe->sop_qpn |= htobe32(M5_QPN_MASK);
	return cnt;
}

/* Moves a CQE, whole, to a later place, which keeps its owner bit. */
static void m5_cq_move(const struct m5_cq *cq, uint32_t to, uint32_t from)
{
	size_t len = (size_t)1 << cq->shift, head = len - sizeof(struct m5_cqe);
	struct m5_cqe *dst = m5_cq_at(cq, to);
	uint8_t owner = dst->op_own & M5_CQE_OWNER;

	memcpy((uint8_t *)dst - head, (uint8_t *)m5_cq_at(cq, from) - head, len);
	dst->op_own = (uint8_t)((dst->op_own & ~M5_CQE_OWNER) | owner);
}

uint32_t m5_cq_clean(struct m5_cq *cq, uint32_t qpn)
{
	uint32_t end = cq->ci, at, cnt = 0;

	while (end - cq->ci < cq->size && m5_cqe_is_ours(m5_cq_at(cq, end), !!(end & cq->size)))
		end++;
	m5_barrier_from_device();
	for (at = end; at != cq->ci;) {
		at--;
		if (m5_cqe_qpn(m5_cq_at(cq, at)) == qpn)
			cnt++;
		else if (cnt)
			m5_cq_move(cq, at + cnt, at);
	}
	m5_cq_seek(cq, cq->ci + cnt);
	m5_cq_publish(cq);
	return cnt;
}

uint32_t m5_cq_forget_id(struct m5_cq *cq, uint32_t dctn, uint32_t id)
{
	uint32_t ci = cq->ci, cnt = 0;
	struct m5_cqe *cqe;

	for (; (cqe = m5_cq_next(cq, &ci, dctn)); ci++) {
		if (be32toh(cqe->imm) >> 16 != id)
			continue;
		cqe->sop_qpn |= htobe32(M5_QPN_MASK);
		cnt++;
	}
	return cnt;
}
