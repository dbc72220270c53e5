/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * May these bytes go, and what may the peer ask of us? (docs/ring-protocol.md, section 5)
 *
 * The invariant, after every step, for each ring:
 *
 *	(producer - remote_consumer) + 2R <= cap
 *
 * R = response bytes granted to the peer and not yet used up: once for the replies themselves, once
 * for what the ring's end may waste when they cross it (at most once, since R <= C/4, and less than
 * they are). cap = C, less the link's in-band reserve. The last 64 bytes are left to credit-only
 * batches and markers, so that two full rings can still tell each other what they released.
 *
 * Pure functions over struct ring_flow; the owner is the connection's ring_tx.
 * Shown by test/unit/ring/test_ring_credit.c and exhaustively by test/spin.
 */
#ifndef RING_CREDIT_H
#define RING_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/bits.h"
#include "wire/wire_ring.h"

#define RING_CONTROL_RESERVE 64u /* credit-only batches and markers */

/** Bytes that a reader may have released without telling: one more, and it must. */
#define RING_UNADVERTISED_MAX(ring_len) ((ring_len) / 4)

struct ring_flow {
	uint64_t cap;             /* usable bytes of the ring we write */
	uint64_t producer;        /* next byte to write */
	uint64_t remote_consumer; /* what the peer is known to have released */
	uint64_t granted;         /* R */
	uint64_t grant_max;       /* R never exceeds it; <= C/4 */
	uint64_t claimed;         /* part of R that calls of the peer have claimed: <= R */
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

/** The position up to which messages (not replies) may be written. */
static inline uint64_t ring_flow_limit(const struct ring_flow *f)
{
	return f->remote_consumer + f->cap - 2 * f->grant_max - RING_CONTROL_RESERVE;
}

/**
 * Is there room for a message (not a reply) that moves `move` bytes (metadata, skip, itself)? Room for
 * R_max is left, not only for R: one-way traffic that takes all it gets cannot keep the peer
 * without credit, and what a message left free may be granted by any batch that leaves meanwhile.
 */
static inline bool ring_flow_admits(const struct ring_flow *f, uint64_t move)
{
	return ring_flow_in_flight(f) + move + 2 * f->grant_max + RING_CONTROL_RESERVE <= f->cap;
}

/** Is there room for `move` bytes of a credit-only batch or a marker? */
static inline bool ring_flow_admits_control(const struct ring_flow *f, uint64_t move)
{
	return ring_flow_in_flight(f) + move + 2 * f->granted <= f->cap;
}

/** What the batch that leaves now may grant, also in the middle of an append. */
static inline uint64_t ring_flow_grantable(const struct ring_flow *f)
{
	uint64_t used = ring_flow_in_flight(f) + RING_CONTROL_RESERVE + 2 * f->granted;
	uint64_t by_invariant = used < f->cap ? (f->cap - used) / 2 : 0;
	uint64_t by_policy = f->grant_max - f->granted;

	return (by_invariant < by_policy ? by_invariant : by_policy) & ~(uint64_t)(WIRE_ALIGN - 1);
}

/** Is a grant worth a batch of its own? With hysteresis, so that idle peers stay silent. */
static inline bool ring_flow_grant_due(const struct ring_flow *f)
{
	return f->granted < f->grant_max / 2 && ring_flow_grantable(f) >= f->grant_max / 4;
}

#endif
