/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of a whole WQE into the device's BlueFlame register. Called by m5_uar.h.
 *
 * A copy consists of 64-byte pieces, each written by streaming stores of a vector width, first to
 * last. The register's page is write-combining: 64 bytes written without a pause leave as one bus
 * packet. Ordinary, overlapping or backward stores (memmove) work most of the time and lose the
 * speed, so test/lint/doorbell disassembles these functions.
 *
 *   x86      four 16-byte movntdq; with AVX-512F one 64-byte vmovntdq
 *   aarch64  two stnp of a pair of 16-byte registers
 *
 * Both addresses are multiples of 64. The caller executes the fences (m5_uar.h). Tests:
 * test/unit/dev/mlx5/test_m5_bf.c and test/lint/doorbell.
 */
#ifndef DEV_MLX5_M5_BF_H
#define DEV_MLX5_M5_BF_H

#include <stdbool.h>

/** Copies `blocks` (1 to 4) pieces of 64 bytes into the register. */
void m5_bf_copy(void *reg, const void *wqe, unsigned blocks);

/** Like m5_bf_copy, by 64-byte stores. Requires m5_bf_has_wide(). */
void m5_bf_copy_wide(void *reg, const void *wqe, unsigned blocks);

/** Returns true if this processor stores 64 bytes at a time. */
bool m5_bf_has_wide(void);

#endif
