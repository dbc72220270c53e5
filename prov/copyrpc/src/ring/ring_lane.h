/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Over which devices do the connections of an engine run? A lane: one device and the loop that is
 * compiled for it.
 *
 * An engine has one lane per path that it offers (shared memory, a NIC). A connection belongs to
 * the lane of the path that its handshake took, from prepare to its end. The operations of a lane
 * are a constant table made by RING_OVER (ring_over.h); an engine with one lane calls its loop
 * directly, one with several goes round their tables.
 *
 * Owner: the engine; the lists belong to whoever holds the domain.
 */
#ifndef RING_LANE_H
#define RING_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "dev/dev.h"
#include "util/list.h"

#define RING_LANES_MAX 2u

struct ring_lane;

struct ring_lane_ops {
	uint32_t path; /* the bit of WIRE_CM_PATH_* that its connections take */
	const struct dev_ops *dev_ops;
	const struct core_chan_ops *chan_ops;
	/* Takes in what arrived, at most RING_LOOP_BUDGET events: true if there may be more. */
	bool (*poll)(struct ring_lane *lane);
	/* Lets go what waits. */
	void (*flush)(struct ring_lane *lane);
};

struct ring_lane {
	const struct ring_lane_ops *ops;
	struct dev *dev;
	struct util_list dirty; /* ring_conn.dirty_link: something has to leave */
	/* Of devices that move the bytes (ring_late.h). */
	struct util_list unsure; /* ring_conn.late.link: has it arrived? */
	uint64_t unsure_ns;      /* when this tick began */
	uint32_t unsure_polls;   /* progress calls since then */
	uint32_t unsure_tick;
	uint32_t polls; /* progress calls, modulo 2^32 */
};

/** Must this device's memory be registered before it moves it? */
static inline bool ring_lane_registers(const struct ring_lane *lane)
{
	return lane->ops->dev_ops->mem_reg;
}

#endif
