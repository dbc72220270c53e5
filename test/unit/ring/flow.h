/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random test of flow control with two connections back to back over the fake devices.
 *
 * Each step is drawn at random: send, call, reply to any open call, release any retained message,
 * flush, one progress call. Up-calls do the same in the middle of a batch. After every step, for
 * both directions:
 *   - in_flight + 2R <= cap by the writer's state, and occupied <= cap by the true state;
 *   - R = credit at the peer + grants in transit + reservations of its unanswered calls;
 *   - positions only grow, and the advertised position never exceeds the released one.
 * Every message is compared, in order, when it arrives and again when it is released. The device
 * compares arrived bytes with written ones and refuses writes into unreleased bytes. A response is
 * never refused. After each episode everything must drain and stay silent, and then the largest
 * promised message and the largest promised call must be admitted.
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

/**
 * Runs `steps` random steps, in episodes that each end with a drain. Fails the test, or returns.
 */
void flow_play(const struct flow_case *c, uint64_t seed, uint64_t steps);

#endif
