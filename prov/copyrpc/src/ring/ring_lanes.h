/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What does ring/ offer to those who compose engines? Its lanes, by device. */
#ifndef RING_LANES_H
#define RING_LANES_H

struct core_engine;
struct eng_lane_ops;

extern const struct eng_lane_ops ring_lane_shm;
extern const struct eng_lane_ops ring_lane_mlx5;
extern const struct eng_lane_ops ring_lane_verbs;

/** The progress of an engine whose first lane is ring_lane_shm: its loop, called directly. */
void ring_shm_progress(struct core_engine *engine);

#endif
