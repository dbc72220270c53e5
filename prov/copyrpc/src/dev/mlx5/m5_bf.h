/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a whole WQE get into the device's register?
 *
 * In 64-byte pieces, each by streaming stores of a vector width, first to last. The register's
 * page is write-combining: 64 bytes written without a pause leave as one packet on the bus. A copy
 * that became memmove (rep movsb, overlapping or backward stores, ordinary ones) still works on
 * most days and costs its point: so test/lint/doorbell disassembles these functions.
 *
 *   x86      four 16-byte movntdq; with AVX-512F one 64-byte vmovntdq
 *   aarch64  two stnp of a pair of 16-byte registers
 *
 * Both addresses are multiples of 64. No fence: who rings has the order (m5_uar.h).
 * Shown by test/unit/dev/mlx5/test_m5_bf.c and test/lint/doorbell.
 */
#ifndef M5_M5_BF_H
#define M5_M5_BF_H

#include <stdbool.h>
#include <stdint.h>

/** Copies `blocks` (1 to 4) pieces of 64 bytes into the register. */
void m5_bf_copy(void *reg, const void *wqe, unsigned blocks);

/** The same by 64-byte stores: only where m5_bf_has_wide() says so. */
void m5_bf_copy_wide(void *reg, const void *wqe, unsigned blocks);

/** Does this processor store 64 bytes at a time? */
bool m5_bf_has_wide(void);

#endif
