/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pair of connections with rails over fake NICs, which register memory and complete gets later.
 *
 * Owner: the test, one thread.
 */
#ifndef UNIT_RING_RAIL_PAIR_H
#define UNIT_RING_RAIL_PAIR_H

#include "support/ring_pair.h"

/** Makes the pair; `ack`: the links have write_imm_ack. */
void rail_pair_start(struct ring_pair *pair, bool ack, const struct core_upcalls *up);
/** Frees it. Nothing is registered, and nothing waits. */
void rail_pair_finish(struct ring_pair *pair);

#endif
