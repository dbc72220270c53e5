/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rare operations of a completion queue: init, arming, removal of a QP (m5_cq.h). */
#include "dev/mlx5/m5_cq.h"

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

uint32_t m5_cq_forget(struct m5_cq *cq, uint32_t qpn)
{
	uint32_t ci, cnt = 0;

	for (ci = cq->ci; ci - cq->ci < cq->size; ci++) {
		struct m5_cqe *cqe = m5_cq_at(cq, ci);

		if (!m5_cqe_is_ours(cqe, !!(ci & cq->size)))
			break;
		m5_barrier_from_device();
		if (m5_cqe_qpn(cqe) != qpn)
			continue;
		cqe->sop_qpn |= htobe32(M5_QPN_MASK);
		cnt++;
	}
	return cnt;
}
