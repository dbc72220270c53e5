/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What are rings to an engine? A lane (engine/eng_lane.h): one device that has links, and the loop
 * that is compiled for it.
 *
 * RING_OVER (ring_over.h) makes the table of a lane. Owner: the engine, whose room it lies in; the
 * lists belong to whoever holds the domain.
 */
#ifndef RING_LANE_H
#define RING_LANE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"
#include "engine/eng_lane.h"
#include "ring/ring_conn.h"
#include "util/list.h"

struct ring_lane {
	struct eng_lane eng; /* first */
	const struct dev_ops *dev_ops;
	struct dev *dev;
	const struct core_chan_ops *chan_ops;
	struct util_list dirty; /* ring_conn.dirty_link: something has to leave */
	/* Of devices that move the bytes (ring_late.h). */
	struct util_list unsure; /* ring_conn.late.link: has it arrived? */
	uint64_t unsure_ns;      /* when this tick began */
	uint32_t unsure_polls;   /* progress calls since then */
	uint32_t unsure_tick;
	uint32_t polls; /* progress calls, modulo 2^32 */
};

static_assert(sizeof(struct ring_lane) <= sizeof(union eng_lane_room), "it lies there");

static inline struct ring_lane *ring_lane_of(struct eng_lane *lane)
{
	return (struct ring_lane *)lane;
}

static inline struct ring_lane *ring_conn_lane(const struct ring_conn *conn)
{
	return ring_lane_of(conn->eng.lane);
}

/** Must this device's memory be registered before it moves it? */
static inline bool ring_lane_registers(const struct ring_lane *lane)
{
	return lane->dev_ops->mem_reg;
}

/* What every lane shares: ring_lane.c, ring_life.c, and the control thread's part in ring_setup.c. */
int ring_lane_open(struct eng_lane *lane, const struct dev_ops *dev_ops,
		   const struct core_chan_ops *chan_ops);
void ring_lane_close(struct eng_lane *lane);
int ring_lane_wait_fd(struct eng_lane *lane);
int ring_lane_arm(struct eng_lane *lane);
void ring_lane_disarm(struct eng_lane *lane);
/** core_chan_ops.call_room */
size_t ring_lane_call_room(struct core_chan *chan, size_t len, uint32_t allowance);

int ring_life_attach(struct eng_conn *conn);
bool ring_life_came(const struct eng_conn *conn);
void ring_life_drain(struct eng_conn *conn);
void ring_life_end(struct eng_conn *conn);
void ring_life_stop(struct eng_conn *conn);
void ring_life_free(struct eng_conn *conn);

int ring_setup_prepare(struct eng_lane *lane, struct core_engine_ep *eep, struct cm_half *half,
		       struct eng_conn **conn);
int ring_setup_establish(struct eng_conn *conn, const struct cm_half *peer);

#endif
