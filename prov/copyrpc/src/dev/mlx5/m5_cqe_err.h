/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does an error CQE mean, and what can the user do?
 *
 * Cold: a link has one in its life. Shown by test/unit/dev/mlx5/test_m5_cqe_err.c.
 */
#ifndef M5_M5_CQE_ERR_H
#define M5_M5_CQE_ERR_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/mlx5/m5_layout.h"

struct m5_err {
	int status; /* -FI_E* */
	uint8_t syndrome;
	uint8_t vendor;
	uint32_t qpn;
	uint16_t wqe_counter;
	uint8_t wqe_opcode; /* of a requester's */
	bool requester;
	bool flushed;       /* follows an earlier error: not worth a line */
	const char *name;   /* what happened, in the manual's words */
	const char *advice; /* a sentence a user can act on */
};

/** Never fails: a syndrome that is not known is said to be. */
void m5_cqe_err_decode(const struct m5_cqe *cqe, struct m5_err *err);

#endif
