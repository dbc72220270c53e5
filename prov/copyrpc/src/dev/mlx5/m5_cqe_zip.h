/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which CQEs does a compressed one stand for?
 *
 * The title is a CQE with format 3 whose length field is not a length but how many CQEs it stands
 * for, n, the first included. All are like it, save for length and, for a requester, WQE counter
 * and opcode: those are in mini CQEs of 8 bytes, eight to an array, and arrays lie in the places
 * that the n CQEs would have taken:
 *
 *     place   c       c+1          c+2 ... c+7   c+8           c+9 ... c+n-1
 *             title   mini 0..7    (holes)       mini 8..15    (holes)
 *
 * so CQE i is at c+i and has mini i; the array at c+8k has mini 8k to 8k+7, the first one excepted,
 * which is one behind the title. A responder's counters follow one another from the title's.
 * This is the layout of CQs that are made by verbs (as Linux' mlx5 Ethernet driver and UCX before
 * 1.14 read it). The other one, of 7 mini CQEs and a count in the same CQE, has to be asked for at
 * creation, by DevX; we never do.
 *
 * Data in a CQE (scatter) and compression exclude one another: the format's bits are the same.
 *
 * Owner: the CQ's. Shown by test/unit/dev/mlx5/test_m5_cqe_zip.c.
 */
#ifndef M5_M5_CQE_ZIP_H
#define M5_M5_CQE_ZIP_H

#include <stdbool.h>

#include "dev/mlx5/m5_layout.h"

#define M5_ZIP_MINIS 8u

struct m5_zip {
	uint32_t left; /* CQEs still to come; 0: none is being expanded */
	uint32_t idx;  /* of the next one */
	uint16_t counter;
	struct m5_cqe cqe; /* the title, and then what is handed out */
	struct m5_mini_cqe mini[M5_ZIP_MINIS];
};

/** Takes title and first array over. False: no count, or more than the CQ has. */
bool m5_zip_begin(struct m5_zip *zip, const struct m5_cqe *title, const void *minis,
		  uint32_t cq_size);

/** The next one (left > 0). `place` is where it would lie: an array is taken from there if due. */
struct m5_cqe *m5_zip_next(struct m5_zip *zip, const struct m5_cqe *place);

#endif
