/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simple accesses of a link: one READ or WRITE each, of one buffer. Called by the engine through
 * dev_link_ops.
 *
 * Accesses with DEV_ACCESS_MORE are built without a doorbell: a run. Its last WQE alone is
 * signalled when the run ends, by anything else that is built or rung, so there are one doorbell
 * and one CQE for all. A queue pair ends its WQEs in order: the CQE of the n-th access ends the
 * first n. Their number is the user word of each, so that after an error it is known how many ended
 * before.
 *
 * m5_access_begin_run() reserves blocks for a run, M5_ACCESS_RUN_BB at most: contiguous, free, and
 * counted for the next signal (m5_sq.h). The accesses in them check nothing else.
 *
 * READs are limited by the queue alone. The device holds those back that are more than the peer
 * serves at a time.
 *
 * Tests: test/unit/dev/mlx5/test_m5_access.c.
 */
#ifndef DEV_MLX5_M5_ACCESS_H
#define DEV_MLX5_M5_ACCESS_H

#include "dev/mlx5/m5_link.h"

#define M5_ACCESS_RUN_BB 16u /* blocks of a run */

/** Begins a run with room for `bb` blocks. Returns 0 or -FI_EAGAIN. */
int m5_access_begin_run(struct m5_link *link, uint16_t bb);

UTIL_INLINE int m5_link_access(struct dev_link *base, const void *buf, uint32_t len,
			       uint64_t remote_addr, uint64_t remote_key, const struct dev_mem *mem,
			       unsigned flags)
{
	enum m5_opcode opcode = flags & DEV_ACCESS_WRITE ? M5_OP_WRITE : M5_OP_READ;
	struct m5_link *link = (struct m5_link *)base;
	uint16_t bb = mem ? 1 : (uint16_t)M5_WQE_BLOCKS(36 + len);
	struct m5_sq *sq = &link->sq;
	struct m5_wqe wqe;
	uint16_t pi;

	if (UTIL_UNLIKELY(link->run.left < bb) && m5_access_begin_run(link, bb))
		return -FI_EAGAIN;
	pi = sq->pi;
	m5_wqe_begin(&wqe, m5_sq_at(sq, pi));
	m5_wqe_raddr(&wqe, remote_addr, (uint32_t)remote_key);
	if (mem)
		m5_wqe_data(&wqe, (uintptr_t)buf, len, ((const struct ib_user *)mem)->mr->lkey);
	else
		m5_wqe_inline(&wqe, buf, len);
	m5_wqe_end(&wqe, pi, opcode, sq->qpn, 0, 0);
	m5_sparse_put(&link->users, pi, m5_user_access(++base->access_cnt));
	link->access_last = sq->last = pi;
	sq->pi = (uint16_t)(pi + bb);
	link->run.left -= bb;
	if (!(flags & DEV_ACCESS_SILENT))
		link->run.due = true;
	link->access_quiet = true;
	if (!(flags & DEV_ACCESS_MORE))
		m5_link_ring(link);
	return 0;
}

#endif
