/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decodes send WQEs that tests wrote by hand, from the field layouts of the programmer's manual;
 * none is recorded from a run.
 */
#ifndef UNIT_MODEL_WQE_BENCH_H
#define UNIT_MODEL_WQE_BENCH_H

#include <stdint.h>
#include <string.h>

#include "model/nic/nic_wqe.h"

static struct nic_wqe wqe; /* the last one that was decoded */

/** Decodes into `wqe`; nothing of the last one is left. Returns NULL, or what is wrong. */
static inline const char *decode(const uint8_t *bytes, enum nic_transport transport)
{
	memset(&wqe, 0xee, sizeof(wqe));
	return nic_wqe_decode(&wqe, bytes, transport);
}

#endif
