/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Compressed CQEs: expanded one at a time by m5_cq.
 *
 * The title is a CQE with format 3 and a count n in place of the length: it stands for n CQEs,
 * itself included. All are like the title, save for the length and, for a requester, WQE counter
 * and opcode. Those are in mini CQEs of 8 bytes, eight to an array. The arrays lie in the places of
 * the n CQEs:
 *
 *     place   c       c+1          c+2 ... c+7   c+8           c+9 ... c+n-1
 *             title   mini 0..7    (holes)       mini 8..15    (holes)
 *
 * CQE i is at c+i and has mini i. The array at c+8k has mini 8k to 8k+7, except the first array,
 * which is one behind the title. A responder's counters continue from the title's.
 *
 * CQs made by verbs use this layout, like Linux' mlx5 Ethernet driver and UCX before 1.14. The
 * other layout (7 mini CQEs and a count in one CQE) is requested at creation by DevX, which copyrpc
 * does not use. Compression and data in a CQE (scatter) use the same format bits and exclude one
 * another.
 *
 * Runs in the polling thread.
 */
#ifndef DEV_MLX5_M5_CQE_ZIP_H
#define DEV_MLX5_M5_CQE_ZIP_H

#include <stdbool.h>

#include "dev/mlx5/m5_layout.h"

#define M5_ZIP_MINIS 8u

struct m5_zip {
	uint32_t left; /* CQEs still to expand; 0: no expansion is open */
	uint32_t idx;  /* of the next one */
	uint16_t counter;
	struct m5_cqe cqe; /* the title, then the expanded CQE */
	struct m5_mini_cqe mini[M5_ZIP_MINIS];
};

/** Takes over title and first array. Returns false if the count is 0 or exceeds the queue. */
bool m5_zip_begin(struct m5_zip *zip, const struct m5_cqe *title, const void *minis,
		  uint32_t cq_size);

/**
 * Returns the next CQE (left > 0). `place` is its place in the queue; reads an array from there if
 * due.
 */
struct m5_cqe *m5_zip_next(struct m5_zip *zip, const struct m5_cqe *place);

#endif
