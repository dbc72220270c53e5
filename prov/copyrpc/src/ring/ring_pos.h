/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Positions on the ring, wrap and skip (docs/ring-protocol.md, sections 2 and 6). Used by the send
 * and the receive side. Pure functions.
 *
 * Positions have 64 bits, only grow, and are multiples of 32. The offset is the position modulo the
 * ring's size, a power of two. The wrap rule is strict: a span that would end exactly at the ring's
 * end wraps too, so that 32 bytes always remain there for the marker.
 *
 * Tested by test/unit/ring/test_ring_pos.c.
 */
#ifndef RING_POS_H
#define RING_POS_H

#include <stdbool.h>
#include <stdint.h>

#define RING_LEN_MIN 1024u /* Smallest ring that credit-only batches alone keep making progress */
#define RING_LEN_MAX (1ull << 31) /* Far below the range of an immediate */

static inline uint64_t ring_off(uint64_t pos, uint64_t ring_len)
{
	return pos & (ring_len - 1);
}

/** Returns true if a span of `span` bytes at `pos` must go to the next lap. */
static inline bool ring_must_wrap(uint64_t pos, uint64_t span, uint64_t ring_len)
{
	return ring_off(pos, ring_len) + span >= ring_len;
}

/** Returns the bytes from `pos` to the next lap; 0 if `pos` is the start of a lap. */
static inline uint64_t ring_skip(uint64_t pos, uint64_t ring_len)
{
	return -pos & (ring_len - 1);
}

/** Returns the bytes moved by `span` unsplit bytes at `pos`: the skip and the span. */
static inline uint64_t ring_move(uint64_t pos, uint64_t span, uint64_t ring_len)
{
	return (ring_must_wrap(pos, span, ring_len) ? ring_skip(pos, ring_len) : 0) + span;
}

#endif
