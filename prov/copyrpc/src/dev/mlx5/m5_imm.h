/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Immediates of writes over DC. Called by m5_dlink.c and m5_poll.c.
 *
 * A DC target receives the writes of all peers, and its completion does not name the peer. So the
 * upper half of the immediate is the id that the receiver gave to the link (m5_ids.h), and the
 * lower half is the engine's immediate (dev.h) in brief:
 *
 *   15  14           0
 *   |0|  units        |      long form, up to M5_IMM_UNITS_MAX
 *   |1| advance |units|      short form: 8 bits of advance, 7 of units
 *   |1|  byte   |  0  |      a byte of a message between the links (m5_move.h), and no write
 *   0                        as for the engine: the immediate is in the link word (dev.h)
 *
 * Pure. Tests: test/unit/dev/mlx5/test_m5_imm.c.
 */
#ifndef DEV_MLX5_M5_IMM_H
#define DEV_MLX5_M5_IMM_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"

#define M5_IMM_UNITS_MAX   0x7fffu
#define M5_IMM_SHORT       0x8000u
#define M5_IMM_SHORT_UNITS 7 /* bits */
#define M5_IMM_UNITS_MASK  ((1u << M5_IMM_SHORT_UNITS) - 1)
#define M5_IMM_ADVANCE_MAX 255u
#define M5_IMM_IN_WORD     0u

/** Returns the brief form of the engine's immediate, or M5_IMM_IN_WORD. */
static inline uint32_t m5_imm_pack(uint32_t imm)
{
	uint32_t units = imm & 0xffff, advance = imm >> 16 & 0x7fff;

	if (!(imm & DEV_IMM_SHORT))
		return imm <= M5_IMM_UNITS_MAX ? imm : M5_IMM_IN_WORD;
	if (units > M5_IMM_UNITS_MASK || advance > M5_IMM_ADVANCE_MAX)
		return M5_IMM_IN_WORD;
	return M5_IMM_SHORT | advance << M5_IMM_SHORT_UNITS | units;
}

/** Returns the brief form of a byte of a message. */
static inline uint32_t m5_imm_of_byte(uint8_t byte)
{
	return M5_IMM_SHORT | (uint32_t)byte << M5_IMM_SHORT_UNITS;
}

/** Returns true if the brief form is a byte of a message, and no immediate of the engine. */
static inline bool m5_imm_is_byte(uint32_t brief)
{
	return (brief & (M5_IMM_SHORT | M5_IMM_UNITS_MASK)) == M5_IMM_SHORT;
}

static inline uint8_t m5_imm_byte(uint32_t brief)
{
	return (uint8_t)(brief >> M5_IMM_SHORT_UNITS);
}

/** Returns the engine's immediate, 0 for M5_IMM_IN_WORD. A byte becomes none that is legal. */
static inline uint32_t m5_imm_unpack(uint32_t brief)
{
	if (!(brief & M5_IMM_SHORT))
		return brief;
	return DEV_IMM_SHORT | (brief >> M5_IMM_SHORT_UNITS & M5_IMM_ADVANCE_MAX) << 16 |
	       (brief & M5_IMM_UNITS_MASK);
}

#endif
