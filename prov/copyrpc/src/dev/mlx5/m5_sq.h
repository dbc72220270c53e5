/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Send queue: room, selective signals, doorbell. Called by m5_link.h, m5_bulk.c and m5_ud.h.
 *
 * A ring of 64-byte blocks, a power of two of them, counted by 16 bits that wrap:
 *
 *        ci            rung          pi
 *   ......#############+++++++++++++++..........     # the device has, + built, not yet rung
 *
 * Room is counted in blocks, never in WQEs: a WQE takes 1 to M5_WQE_MAX_BB. A WQE that would cross
 * the end is preceded by one NOP that takes the rest.
 *
 * m5_sq_signal() selects the WQEs that report: one per sig_limit blocks or M5_SQ_SIG_WQES WQEs.
 * sig_limit is a quarter of the ring. So a ring without room for the largest WQE always has a WQE
 * outstanding that will report. A completion of a WQE retires all before it.
 *
 * Runs in the polling thread. Does not block or allocate.
 */
#ifndef DEV_MLX5_M5_SQ_H
#define DEV_MLX5_M5_SQ_H

#include "dev/mlx5/m5_uar.h"
#include "dev/mlx5/m5_wqe.h"

#define M5_SQ_MIN_BB   8u
#define M5_SQ_SIG_WQES 64u

struct m5_sq {
	uint8_t *buf;
	uint32_t *record; /* M5_DBR_SEND word */
	struct m5_uar *uar;
	uint32_t qpn;
	uint16_t mask; /* blocks - 1 */
	uint16_t pi;   /* next block to build */
	uint16_t rung; /* end of the blocks that the device has */
	uint16_t ci;   /* first block not yet retired */
	uint16_t last; /* first block of the last WQE built */
	uint16_t sig_limit;
	uint16_t since_bb; /* blocks since the last WQE that reports */
	uint16_t since_wqes;
};

/**
 * Starts a queue of `blocks`: a power of two, M5_SQ_MIN_BB to M5_SQ_MAX_BB, at buf. `start` is 0
 * except in tests.
 */
static inline void m5_sq_init(struct m5_sq *sq, void *buf, uint32_t blocks, uint32_t *record,
			      struct m5_uar *uar, uint32_t qpn, uint16_t start)
{
	*sq = (struct m5_sq){
		.buf = buf,
		.record = record,
		.uar = uar,
		.qpn = qpn,
		.mask = (uint16_t)(blocks - 1),
		.pi = start,
		.rung = start,
		.ci = start,
		.last = start,
		.sig_limit = (uint16_t)(blocks / 4),
	};
}

static inline void *m5_sq_at(const struct m5_sq *sq, uint16_t counter)
{
	return sq->buf + (size_t)(counter & sq->mask) * M5_BB;
}

static inline uint32_t m5_sq_in_flight(const struct m5_sq *sq)
{
	return (uint16_t)(sq->pi - sq->ci);
}

/** Returns the blocks that a NOP must take first, so that `bb` are contiguous. */
static inline uint16_t m5_sq_tail(const struct m5_sq *sq, uint16_t bb)
{
	uint32_t left = (uint32_t)sq->mask + 1 - (sq->pi & sq->mask);

	return bb > left ? (uint16_t)left : 0;
}

static inline bool m5_sq_has_room(const struct m5_sq *sq, uint16_t bb)
{
	return m5_sq_in_flight(sq) + bb + m5_sq_tail(sq, bb) <= (uint32_t)sq->mask + 1;
}

/** Returns contiguous room for `bb` blocks. The caller has checked m5_sq_has_room(). */
static inline void *m5_sq_reserve(struct m5_sq *sq, uint16_t bb)
{
	uint16_t tail = m5_sq_tail(sq, bb);

	if (UTIL_UNLIKELY(tail)) {
		m5_wqe_nop(m5_sq_at(sq, sq->pi), tail, sq->pi, sq->qpn);
		sq->pi += tail;
		sq->since_bb += tail;
	}
	return m5_sq_at(sq, sq->pi);
}

/** Returns M5_CTRL_SIGNAL if the next WQE, of `bb` blocks, must report, otherwise 0. */
static inline uint8_t m5_sq_signal(const struct m5_sq *sq, uint16_t bb)
{
	bool due = sq->since_bb + bb >= sq->sig_limit || sq->since_wqes + 1u >= M5_SQ_SIG_WQES;

	return due ? M5_CTRL_SIGNAL : 0;
}

/** Commits the WQE built at pi: `bb` blocks, with these flags. */
static inline void m5_sq_commit(struct m5_sq *sq, uint16_t bb, uint8_t flags)
{
	sq->last = sq->pi;
	sq->pi += bb;
	sq->since_bb = flags & M5_CTRL_SIGNAL ? 0 : (uint16_t)(sq->since_bb + bb);
	sq->since_wqes = flags & M5_CTRL_SIGNAL ? 0 : (uint16_t)(sq->since_wqes + 1);
}

/** Rings one doorbell for what is built, and something is: BlueFlame if it fits, else 8 bytes. */
static inline void m5_sq_ring_built(struct m5_sq *sq)
{
	uint16_t blocks = (uint16_t)(sq->pi - sq->rung);
	bool contiguous = (uint32_t)(sq->rung & sq->mask) + blocks <= (uint32_t)sq->mask + 1;

	if (contiguous && m5_uar_fits(sq->uar, blocks))
		m5_uar_ring_bf(sq->uar, sq->record, sq->pi, m5_sq_at(sq, sq->rung), blocks);
	else
		m5_uar_ring8(sq->uar, sq->record, sq->pi, m5_sq_at(sq, sq->last));
	sq->rung = sq->pi;
}

/** Rings one doorbell for all that is built, if anything is. */
static inline void m5_sq_ring(struct m5_sq *sq)
{
	if (sq->pi != sq->rung)
		m5_sq_ring_built(sq);
}

/** Returns true if the device has the block `counter` and it is not retired. */
static inline bool m5_sq_is_open(const struct m5_sq *sq, uint16_t counter)
{
	return (uint16_t)(counter - sq->ci) < (uint16_t)(sq->rung - sq->ci);
}

/** Retires the WQE at `counter` and all before it. Returns false if there is no such WQE. */
static inline bool m5_sq_retire(struct m5_sq *sq, uint16_t counter)
{
	if (UTIL_UNLIKELY(!m5_sq_is_open(sq, counter)))
		return false;
	sq->ci = (uint16_t)(counter + m5_wqe_blocks(m5_sq_at(sq, counter)));
	return true;
}

#endif
