/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Positions on the ring, and flow control: admission of messages and grants of response credit
 * (docs/ring-protocol.md, sections 2, 5 and 6). Pure functions, used by the send and the receive
 * side.
 *
 * Positions have 64 bits, only grow, and are multiples of 32. The offset is the position modulo
 * the ring's size, a power of two. The wrap rule is strict: a span that would end exactly at the
 * ring's end wraps too, so that 32 bytes always remain there for the marker.
 *
 * Invariant for each ring, after every step:
 *
 * 	(producer - remote_consumer) + 2R <= cap
 *
 * R = response bytes granted to the peer and not yet used up. R counts twice: once for the
 * responses, once for the bytes skipped when they cross the ring's end. They cross it at most
 * once, since R <= C/4, and skip less than their own length. cap = C, less the link's in-band
 * reserve. The last 64 bytes are left to credit-only batches and markers, so that two full rings
 * can still advertise.
 *
 * Tested by test/unit/ring/test_ring_pos.c, test_ring_credit.c, and exhaustively by test/spin.
 */
#ifndef RING_RING_FLOW_H
#define RING_RING_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "util/bits.h"
#include "wire/wire_ring.h"

#define RING_LEN_MIN 1024u /* Smallest ring that credit-only batches alone keep making progress */
#define RING_LEN_MAX (1ull << 30) /* Most that devices make; far below the range of an immediate */

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

#define RING_CONTROL_RESERVE 64u /* Bytes left to credit-only batches and markers */

/** Largest number of released bytes that a reader need not advertise. */
#define RING_UNADVERTISED_MAX(ring_len) ((ring_len) / 4)

struct ring_flow {
	uint64_t cap;             /* Usable bytes of the local send ring */
	uint64_t producer;        /* Next byte to write */
	uint64_t remote_consumer; /* Position up to which the peer is known to have released */
	uint64_t granted;         /* R */
	uint64_t grant_max;       /* Upper bound of R; <= C/4 */
	uint64_t claimed;         /* Part of R claimed by calls of the peer: <= R */
};

static inline uint64_t ring_flow_in_flight(const struct ring_flow *f)
{
	return f->producer - f->remote_consumer;
}

static inline bool ring_flow_holds(const struct ring_flow *f)
{
	return ring_flow_in_flight(f) + 2 * f->granted <= f->cap && f->claimed <= f->granted &&
	       f->granted <= f->grant_max;
}

/** Returns the position up to which messages (not responses) may be written. */
static inline uint64_t ring_flow_limit(const struct ring_flow *f)
{
	return f->remote_consumer + f->cap - 2 * f->grant_max - RING_CONTROL_RESERVE;
}

/**
 * Returns true if a message (not a response) that moves `move` bytes (metadata, skip, itself) fits.
 * Leaves space for R_max, not only for R: one-way traffic that fills the ring cannot leave the peer
 * without credit, and any batch that leaves meanwhile may grant what the message left free.
 */
static inline bool ring_flow_admits(const struct ring_flow *f, uint64_t move)
{
	return ring_flow_in_flight(f) + move + 2 * f->grant_max + RING_CONTROL_RESERVE <= f->cap;
}

/** Returns true if `move` bytes of a credit-only batch or a marker fit. */
static inline bool ring_flow_admits_control(const struct ring_flow *f, uint64_t move)
{
	return ring_flow_in_flight(f) + move + 2 * f->granted <= f->cap;
}

/** Returns the bytes that the batch leaving now may grant, also in the middle of an append. */
static inline uint64_t ring_flow_grantable(const struct ring_flow *f)
{
	uint64_t used = ring_flow_in_flight(f) + RING_CONTROL_RESERVE + 2 * f->granted;
	uint64_t by_invariant = used < f->cap ? (f->cap - used) / 2 : 0;
	uint64_t by_policy = f->grant_max - f->granted;

	return (by_invariant < by_policy ? by_invariant : by_policy) & ~(uint64_t)(WIRE_ALIGN - 1);
}

/** Returns true if a grant is worth a batch of its own. Hysteresis keeps idle peers silent. */
static inline bool ring_flow_grant_due(const struct ring_flow *f)
{
	return f->granted < f->grant_max / 2 && ring_flow_grantable(f) >= f->grant_max / 4;
}

#endif
