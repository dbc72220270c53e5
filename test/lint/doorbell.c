/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Code that a doorbell becomes. Compiled by test/suite.d/31-doorbell, never run: one function per
 * barrier and per way to ring, for test/lint/doorbell to read. For an architecture that is not this
 * machine's the barriers alone (-DBARRIERS_ONLY), which need no headers of its libc.
 */
#include "dev/mlx5/m5_barrier.h"

void doorbell_to_device(void);
void doorbell_from_device(void);
void doorbell_give_back(void);
void doorbell_start(void);
void doorbell_flush(void);

void doorbell_to_device(void)
{
	m5_barrier_to_device();
}

void doorbell_from_device(void)
{
	m5_barrier_from_device();
}

void doorbell_give_back(void)
{
	m5_barrier_give_back();
}

void doorbell_start(void)
{
	m5_barrier_mmio_start();
}

void doorbell_flush(void)
{
	m5_barrier_mmio_flush();
}

#ifndef BARRIERS_ONLY
#include "dev/mlx5/m5_uar.h"

void doorbell_ring8(struct m5_uar *uar, uint32_t *record, const struct m5_ctrl *last);
void doorbell_ring_bf(struct m5_uar *uar, uint32_t *record, const void *wqe);

void doorbell_ring8(struct m5_uar *uar, uint32_t *record, const struct m5_ctrl *last)
{
	m5_uar_ring8(uar, record, 1, last);
}

void doorbell_ring_bf(struct m5_uar *uar, uint32_t *record, const void *wqe)
{
	m5_uar_ring_bf(uar, record, 1, wqe, 4);
}
#endif
