/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Doorbells of a send queue. Called by m5_sq_ring.
 *
 *   1. all WQEs are in the queue                                          (the caller)
 *   2. barrier to_device
 *   3. the doorbell record gets the producer index
 *   4. barrier mmio_start
 *   5. the register gets
 *        8 bytes: the head of the last WQE's control segment, or
 *        BlueFlame: one or more whole WQEs, so that the device need not fetch them
 *   6. barrier mmio_flush; the next doorbell uses the register's other half
 *
 * A register has two halves of `half` bytes, used in turn, so that the processor never merges two
 * doorbells in one write-combining buffer. Queue pairs on one register share this struct. half ==
 * 0: a page that is not write-combining, 8 bytes at one place.
 *
 * Runs in the polling thread.
 */
#ifndef DEV_MLX5_M5_UAR_H
#define DEV_MLX5_M5_UAR_H

#include <endian.h>
#include <string.h>

#include "dev/mlx5/m5_barrier.h"
#include "dev/mlx5/m5_bf.h"
#include "dev/mlx5/m5_layout.h"
#include "util/bits.h"

struct m5_uar {
	uint8_t *reg;
	uint32_t half; /* bytes of a BlueFlame copy; 0: none */
	uint32_t off;  /* offset of the half to use next */
	bool wide;     /* use m5_bf_copy_wide */
	uint32_t user_cnt;
};

/** Starts a register. `half`: size reported by mlx5dv; 0: no BlueFlame. */
static inline void m5_uar_init(struct m5_uar *uar, void *reg, uint32_t half)
{
	*uar = (struct m5_uar){ .reg = reg, .half = half, .wide = m5_bf_has_wide() };
}

/** Performs steps 2 to 4. */
static inline void m5_uar_record(uint32_t *record, uint16_t pi)
{
	m5_barrier_to_device();
	*(volatile uint32_t *)record = htobe32(pi);
	m5_barrier_mmio_start();
}

static inline void m5_uar_turn(struct m5_uar *uar)
{
	m5_barrier_mmio_flush();
	uar->off ^= uar->half;
}

/** Performs steps 2 to 6 with 8 bytes of the last WQE. */
static inline void m5_uar_ring8(struct m5_uar *uar, uint32_t *record, uint16_t pi,
				const struct m5_ctrl *last)
{
	uint64_t head;

	memcpy(&head, last, sizeof(head));
	m5_uar_record(record, pi);
	*(volatile uint64_t *)(void *)(uar->reg + uar->off) = head;
	m5_uar_turn(uar);
}

/** Performs steps 2 to 6 with `blocks` (1 or more) from `first` on. m5_uar_fits() was checked. */
static inline void m5_uar_ring_bf(struct m5_uar *uar, uint32_t *record, uint16_t pi,
				  const void *first, unsigned blocks)
{
	m5_uar_record(record, pi);
	if (UTIL_UNLIKELY(uar->wide))
		m5_bf_copy_wide(uar->reg + uar->off, first, blocks);
	else
		m5_bf_copy(uar->reg + uar->off, first, blocks);
	m5_uar_turn(uar);
}

static inline bool m5_uar_fits(const struct m5_uar *uar, unsigned blocks)
{
	return blocks * M5_BB <= uar->half;
}

#endif
