/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What has completed? A ring of CQEs that the device writes, read by their owner bit.
 *
 * The device writes a CQE's last byte last; its owner bit is the parity of the lap. A CQE is ours
 * when its bit is the parity of our own lap. All owner bits are set at the start (m5_cq_init), so
 * that nothing of the first lap looks written.
 *
 *   while ((cqe = m5_cq_poll(cq))) { ... }       valid until the next poll
 *
 * m5_cq_poll is the inline consumer: one load when there is nothing. Compressed CQEs are expanded
 * one by one (m5_cqe_zip.h); what comes out looks like any other. Errors are CQEs too
 * (m5_cqe_is_error, m5_cqe_err.h).
 *
 * The device must know how far we read, so that it does not overrun us: m5_cq_publish stores that
 * in the doorbell record. It is due before receive WQEs are given back, and after send
 * completions; not for each CQE.
 *
 * CQEs of 128 bytes have theirs in the second half, small data that was received in the first.
 * Owner: whoever polls. Shown by test/unit/dev/mlx5/test_m5_cq.c.
 */
#ifndef M5_M5_CQ_H
#define M5_M5_CQ_H

#include <endian.h>
#include <stdbool.h>

#include "dev/mlx5/m5_barrier.h"
#include "dev/mlx5/m5_cqe_zip.h"
#include "dev/mlx5/m5_layout.h"
#include "util/bits.h"

struct m5_cq {
	/* What m5_cq_poll looks at: the CQE of ci, or mark while a compressed one is expanded. */
	const struct m5_cqe *next;
	uint8_t owner; /* its owner bit once it is ours */
	uint32_t ci;
	uint8_t *buf; /* of the first CQE's 64 bytes: behind its first half if they are 128 */
	uint32_t size;
	uint8_t shift;
	struct m5_zip zip;
	struct m5_cqe mark; /* always ours, and compressed */
	uint32_t *record;   /* [0] consumer index, [1] arm */
	void *uar;          /* page of the arm register */
	uint32_t cqn;
	uint32_t arm_sn;
};

/** `size` CQEs (a power of two) of cqe_len (64 or 128) bytes at buf. ci: 0 for the device. */
void m5_cq_init(struct m5_cq *cq, void *buf, uint32_t size, uint32_t cqe_len, uint32_t *record,
		uint32_t ci);

static inline struct m5_cqe *m5_cq_at(const struct m5_cq *cq, uint32_t ci)
{
	return (void *)(cq->buf + ((size_t)(ci & (cq->size - 1)) << cq->shift));
}

/** The next one is that of `ci`. */
static inline void m5_cq_seek(struct m5_cq *cq, uint32_t ci)
{
	cq->ci = ci;
	cq->next = m5_cq_at(cq, ci);
	cq->owner = !!(ci & cq->size);
}

static inline bool m5_cqe_is_ours(const struct m5_cqe *cqe, uint8_t owner)
{
	return ((*(const volatile uint8_t *)&cqe->op_own ^ owner) & M5_CQE_OWNER) == 0;
}

static inline enum m5_cqe_opcode m5_cqe_opcode(const struct m5_cqe *cqe)
{
	return (enum m5_cqe_opcode)(cqe->op_own >> 4);
}

static inline bool m5_cqe_is_error(const struct m5_cqe *cqe)
{
	return cqe->op_own >= M5_CQE_REQ_ERR << 4;
}

static inline uint32_t m5_cqe_qpn(const struct m5_cqe *cqe)
{
	return be32toh(cqe->sop_qpn) & M5_QPN_MASK;
}

/** Opcode of the WQE that a requester's CQE is about. */
static inline uint8_t m5_cqe_wqe_opcode(const struct m5_cqe *cqe)
{
	return (uint8_t)(be32toh(cqe->sop_qpn) >> 24);
}

static inline uint16_t m5_cqe_counter(const struct m5_cqe *cqe)
{
	return be16toh(cqe->wqe_counter);
}

/** Small data that did not go to the buffer but into the CQE: where it is, or NULL. */
static inline const void *m5_cqe_scattered(const struct m5_cqe *cqe)
{
	if (cqe->op_own & M5_CQE_SCATTER32)
		return cqe;
	if (cqe->op_own & M5_CQE_SCATTER64)
		return cqe - 1;
	return NULL;
}

/** The rest of a compressed CQE, or its beginning. */
const struct m5_cqe *m5_cq_unzip_cold(struct m5_cq *cq);

static inline const struct m5_cqe *m5_cq_poll(struct m5_cq *cq)
{
	const struct m5_cqe *cqe = cq->next;

	if (!m5_cqe_is_ours(cqe, cq->owner))
		return NULL;
	m5_barrier_from_device();
	if (UTIL_UNLIKELY((cqe->op_own & M5_CQE_ZIPPED) == M5_CQE_ZIPPED))
		return m5_cq_unzip_cold(cq);
	m5_cq_seek(cq, cq->ci + 1);
	return cqe;
}

/** Is there something to poll? */
static inline bool m5_cq_is_empty(const struct m5_cq *cq)
{
	return !m5_cqe_is_ours(cq->next, cq->owner);
}

/** What was polled may be overwritten from now on: all that was needed of it has been read. */
static inline void m5_cq_publish(struct m5_cq *cq)
{
	m5_barrier_give_back();
	*(volatile uint32_t *)&cq->record[0] = htobe32(cq->ci & 0xffffff);
}

/**
 * Asks for one event on the completion channel for the next CQE. What is there already gives none:
 * look again afterwards.
 */
void m5_cq_arm(struct m5_cq *cq);

/** An event of the channel was read: the next arm is a new one. */
static inline void m5_cq_event(struct m5_cq *cq)
{
	cq->arm_sn++;
}

/**
 * Takes the QP's number out of CQEs that are there already, so that they cannot be taken for a
 * later QP of that number. The QP makes no more. Returns how many. By whoever polls.
 */
uint32_t m5_cq_forget(struct m5_cq *cq, uint32_t qpn);

#endif
