/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rare operations of a completion queue: init, arming, compressed CQEs, removal of a QP (m5_cq.h).
 */
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

const struct m5_cqe *m5_cq_unzip_cold(struct m5_cq *cq)
{
	struct m5_cqe *cqe = m5_cq_at(cq, cq->ci), *fresh;
	uint8_t owner = cq->owner;

	if (!cq->zip.left && !m5_zip_begin(&cq->zip, cqe, m5_cq_at(cq, cq->ci + 1), cq->size)) {
		/* Malformed: return an error CQE of no QP. */
		cqe->op_own = (uint8_t)(M5_CQE_RESP_ERR << 4 | owner);
		cqe->sop_qpn = 0;
		m5_cq_seek(cq, cq->ci + 1);
		return cqe;
	}
	fresh = m5_zip_next(&cq->zip, cqe);
	/*
	 * The device leaves holes: invalidate this one, so that it looks unwritten in the next lap.
	 */
	cqe->op_own = (uint8_t)(M5_CQE_INVALID << 4 | owner);
	m5_cq_seek(cq, cq->ci + 1);
	if (cq->zip.left) {
		cq->mark.op_own = M5_CQE_ZIPPED | cq->owner;
		cq->next = &cq->mark;
	}
	return fresh;
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

/** Places that a CQE occupies: a compressed one spans several. */
static uint32_t m5_cq_span(const struct m5_cqe *cqe)
{
	uint32_t cnt = be32toh(cqe->len);

	return (cqe->op_own & M5_CQE_ZIPPED) == M5_CQE_ZIPPED && cnt ? cnt : 1;
}

uint32_t m5_cq_forget(struct m5_cq *cq, uint32_t qpn)
{
	uint32_t ci = cq->ci + cq->zip.left, cnt = 0;

	if (cq->zip.left && m5_cqe_qpn(&cq->zip.cqe) == qpn) {
		cq->zip.cqe.sop_qpn |= htobe32(M5_QPN_MASK);
		cnt += cq->zip.left;
	}
	while (ci - cq->ci < cq->size) {
		struct m5_cqe *cqe = m5_cq_at(cq, ci);

		if (!m5_cqe_is_ours(cqe, !!(ci & cq->size)))
			break;
		m5_barrier_from_device();
		ci += m5_cq_span(cqe);
		if (m5_cqe_qpn(cqe) != qpn)
			continue;
		cqe->sop_qpn |= htobe32(M5_QPN_MASK);
		cnt += m5_cq_span(cqe);
	}
	return cnt;
}
