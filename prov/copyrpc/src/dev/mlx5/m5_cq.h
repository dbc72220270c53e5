/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queue: a ring of CQEs that the device writes, read by the owner bit. Called by m5_poll
 * and m5_ud.
 *
 * The device writes the last byte of a CQE last. Its owner bit is the parity of the lap. A CQE is
 * valid when the bit equals the parity of the reader's lap. m5_cq_init sets all owner bits, so that
 * no CQE of the first lap looks written.
 *
 *   while ((cqe = m5_cq_poll(cq))) { ... }       valid until the next poll
 *
 * An empty m5_cq_poll is one load. Errors are CQEs too (m5_cqe_is_error, m5_cqe_err.h). The device
 * compresses no CQEs, because m5_dev_make_cq does not request it.
 *
 * m5_cq_publish stores the consumer index in the doorbell record, so that the device does not
 * overrun the queue. It is due before receive WQEs are given back and after send completions, not
 * for each CQE.
 *
 * In CQEs of 128 bytes the second half is the CQE, the first holds small received data. All
 * functions run in the polling thread.
 */
#ifndef DEV_MLX5_M5_CQ_H
#define DEV_MLX5_M5_CQ_H

#include <endian.h>
#include <stdbool.h>

#include "dev/mlx5/m5_barrier.h"
#include "dev/mlx5/m5_layout.h"
#include "util/bits.h"

struct m5_cq {
	const struct m5_cqe *next; /* CQE of ci */
	uint8_t owner;             /* owner bit of *next once the device has written it */
	uint32_t ci;
	uint8_t *buf; /* first CQE, without the first half if CQEs are 128 bytes */
	uint32_t size;
	uint8_t shift;
	uint32_t *record; /* [0] consumer index, [1] arm */
	void *uar;        /* page of the arm register */
	uint32_t cqn;
	uint32_t arm_sn;
};

/**
 * Starts a queue of `size` CQEs (a power of two) of cqe_len (64 or 128) bytes at buf. `ci` is 0
 * except in tests.
 */
void m5_cq_init(struct m5_cq *cq, void *buf, uint32_t size, uint32_t cqe_len, uint32_t *record,
		uint32_t ci);

static inline struct m5_cqe *m5_cq_at(const struct m5_cq *cq, uint32_t ci)
{
	return (void *)(cq->buf + ((size_t)(ci & (cq->size - 1)) << cq->shift));
}

/** Moves on to the CQE of `ci`. */
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

/** Opcode of the WQE that a requester's CQE completes. */
static inline uint8_t m5_cqe_wqe_opcode(const struct m5_cqe *cqe)
{
	return (uint8_t)(be32toh(cqe->sop_qpn) >> 24);
}

static inline uint16_t m5_cqe_counter(const struct m5_cqe *cqe)
{
	return be16toh(cqe->wqe_counter);
}

/** Returns small received data that the device put into the CQE, or NULL. */
static inline const void *m5_cqe_scattered(const struct m5_cqe *cqe)
{
	if (cqe->op_own & M5_CQE_SCATTER32)
		return cqe;
	if (cqe->op_own & M5_CQE_SCATTER64)
		return cqe - 1;
	return NULL;
}

static inline const struct m5_cqe *m5_cq_poll(struct m5_cq *cq)
{
	const struct m5_cqe *cqe = cq->next;

	if (!m5_cqe_is_ours(cqe, cq->owner))
		return NULL;
	m5_barrier_from_device();
	m5_cq_seek(cq, cq->ci + 1);
	return cqe;
}

/** Returns true if there is nothing to poll. */
static inline bool m5_cq_is_empty(const struct m5_cq *cq)
{
	return !m5_cqe_is_ours(cq->next, cq->owner);
}

/** Lets the device overwrite the CQEs polled so far. The caller has read all it needs of them. */
static inline void m5_cq_publish(struct m5_cq *cq)
{
	m5_barrier_give_back();
	*(volatile uint32_t *)&cq->record[0] = htobe32(cq->ci & 0xffffff);
}

/**
 * Requests one event on the completion channel for the next CQE. CQEs already written give none:
 * the caller polls again afterwards.
 */
void m5_cq_arm(struct m5_cq *cq);

/** Counts an event read from the channel: the next arm is a new one. */
static inline void m5_cq_event(struct m5_cq *cq)
{
	cq->arm_sn++;
}

/**
 * Removes the QP's number from CQEs already written, so that a later QP with that number does not
 * get them. The QP makes no more. Returns their number.
 */
uint32_t m5_cq_forget(struct m5_cq *cq, uint32_t qpn);

/**
 * Takes the QP's CQEs out of those already written, and publishes their room: a QP that was reset
 * may post again before they would have been polled. Returns their number.
 */
uint32_t m5_cq_clean(struct m5_cq *cq, uint32_t qpn);

/**
 * Removes the link id of DC (m5_imm.h) from CQEs of the target `dctn` already written. Returns
 * their number.
 */
uint32_t m5_cq_forget_id(struct m5_cq *cq, uint32_t dctn, uint32_t id);

#endif
