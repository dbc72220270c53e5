/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits of a peer's offers to move a link to a queue pair (docs/mlx5.md, section 6). Called by
 * m5_move.c for each OFFER that arrives.
 *
 * An offer that is accepted costs system calls in the polling thread, milliseconds of it at worst,
 * and one that is refused costs a write of no bytes. So two rates apply to each link:
 *
 *   accepted   one in two FI_COPYRPC_RC_INTERVAL of this process: twice what a peer with the same
 *              interval offers (ring_moves.h). Others are refused, and the peer's rests grow
 *   any        one in a millisecond: four times what a peer with the shortest interval offers.
 *              Others end the link
 *
 * A rate is a time (generic cell rate algorithm): the one at which the offers so far would have
 * come evenly. It may be ahead of the clock by a burst. An interval of 0 limits nothing: then no
 * link moves unless a test lets it.
 *
 * Pure. Tests: test/unit/dev/mlx5/test_m5_offers.c.
 */
#ifndef DEV_MLX5_M5_OFFERS_H
#define DEV_MLX5_M5_OFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"

#define M5_OFFERS_BURST     16u /* accepted, and as many times M5_OFFERS_ANY of any kind */
#define M5_OFFERS_ANY       4u
#define M5_OFFERS_INTERVALS 2u

enum m5_offer_verdict {
	M5_OFFER_TAKE,
	M5_OFFER_REFUSE,
	M5_OFFER_END,
};

/** Offers of a link's peer so far. Zero-filled: none. */
struct m5_offers {
	uint64_t taken_ns;
	uint64_t any_ns;
};

/** Counts an event every `gap_ns`. Returns false for one beyond `burst`, which is not counted. */
static inline bool m5_offers_count(uint64_t *at_ns, uint64_t now_ns, uint64_t gap_ns,
				   uint64_t burst)
{
	uint64_t next_ns = (*at_ns > now_ns ? *at_ns : now_ns) + gap_ns;

	if (next_ns - now_ns > burst * gap_ns)
		return false;
	*at_ns = next_ns;
	return true;
}

/** Counts an offer at `now_ns` of a monotonic clock. */
static inline enum m5_offer_verdict m5_offers_see(struct m5_offers *offers, uint64_t now_ns,
						  uint32_t interval_ms)
{
	uint64_t taken_gap_ns = M5_OFFERS_INTERVALS * interval_ms * UTIL_NS_PER_MS;
	uint64_t any_gap_ns = interval_ms ? UTIL_NS_PER_MS : 0;

	if (!m5_offers_count(&offers->any_ns, now_ns, any_gap_ns, M5_OFFERS_ANY * M5_OFFERS_BURST))
		return M5_OFFER_END;
	if (!m5_offers_count(&offers->taken_ns, now_ns, taken_gap_ns, M5_OFFERS_BURST))
		return M5_OFFER_REFUSE;
	return M5_OFFER_TAKE;
}

#endif
