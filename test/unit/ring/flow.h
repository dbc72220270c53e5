/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does flow control keep its promises whatever both ends do?
 *
 * Two connections back to back over the fake devices. Each step is drawn at random: send, call,
 * answer any open call, release any held message, flush, one progress call; up-calls do the same in
 * the middle of a batch. After every step, for both directions:
 *   - in_flight + 2R <= cap, by what the writer knows, and occupied <= cap, by what is true;
 *   - R = credit at the peer + grants on their way + what its unanswered calls reserved;
 *   - positions only grow, and what is told is never more than what is released.
 * Every message is compared, in order, when it arrives and again when it is released; the device
 * compares what arrives with what was written and refuses writes into bytes that are not released.
 * A reply may never be refused. After each episode everything must drain, then stay silent, and
 * then admit the largest message and the largest call that are promised.
 *
 * Used by test_ring_flow.c, which has the cases.
 */
#ifndef UNIT_RING_FLOW_H
#define UNIT_RING_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "support/ring_pair.h"

struct flow_case {
	const char *name;
	struct ring_pair_cfg pair;
	struct ring_flush_cfg flush;
	uint32_t sq_len;
	bool no_read;
};

/** Plays `steps` random steps, in episodes that each end with a drain. Fails the test, or returns. */
void flow_play(const struct flow_case *c, uint64_t seed, uint64_t steps);

#endif
