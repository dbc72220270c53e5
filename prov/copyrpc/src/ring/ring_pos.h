/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where on the ring is position p, and does a span fit before the end?
 * (docs/ring-protocol.md, sections 2 and 6)
 *
 * Positions are 64-bit, only grow, and are multiples of 32; the offset is the position modulo the
 * ring's size, a power of two. The wrap rule is strict: a span that would end exactly at the ring's
 * end wraps as well, so that 32 bytes always remain there for the marker. Pure.
 *
 * Shown by test/unit/ring/test_ring_pos.c.
 */
#ifndef RING_POS_H
#define RING_POS_H

#include <stdbool.h>
#include <stdint.h>

#define RING_LEN_MIN 1024u        /* below, credit-only batches alone cannot keep a ring alive */
#define RING_LEN_MAX (1ull << 31) /* far below what an immediate can express */

static inline uint64_t ring_off(uint64_t pos, uint64_t ring_len)
{
	return pos & (ring_len - 1);
}

/** Must a span of `span` bytes at `pos` go to the next lap? */
static inline bool ring_must_wrap(uint64_t pos, uint64_t span, uint64_t ring_len)
{
	return ring_off(pos, ring_len) + span >= ring_len;
}

/** Bytes from `pos` to the next lap; 0 if `pos` is the start of a lap. */
static inline uint64_t ring_skip(uint64_t pos, uint64_t ring_len)
{
	return -pos & (ring_len - 1);
}

/** What moving `span` bytes from `pos` costs when it must not be split: the skip and the span. */
static inline uint64_t ring_move(uint64_t pos, uint64_t span, uint64_t ring_len)
{
	return (ring_must_wrap(pos, span, ring_len) ? ring_skip(pos, ring_len) : 0) + span;
}

#endif
