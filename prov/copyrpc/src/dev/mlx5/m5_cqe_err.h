/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decodes error CQEs into an error, a name and a remedy. Called by m5_poll and m5_ud, at most once
 * per link.
 */
#ifndef DEV_MLX5_M5_CQE_ERR_H
#define DEV_MLX5_M5_CQE_ERR_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/mlx5/m5_layout.h"

struct m5_err {
	int status; /* -FI_E* */
	uint8_t syndrome;
	uint8_t vendor;
	uint32_t qpn;
	uint16_t wqe_counter;
	uint8_t wqe_opcode; /* of a requester's WQE */
	bool requester;
	bool flushed;       /* follows an earlier error and is not logged */
	const char *name;   /* name in the manual */
	const char *advice; /* remedy for the user */
};

/** Fills err. An unknown syndrome gets a text of its own. */
void m5_cqe_err_decode(const struct m5_cqe *cqe, struct m5_err *err);

#endif
