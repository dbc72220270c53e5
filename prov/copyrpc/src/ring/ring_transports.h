/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What does ring/ offer to those who compose engines? Its transports, by device. */
#ifndef RING_TRANSPORTS_H
#define RING_TRANSPORTS_H

struct core_engine;
struct eng_transport_ops;

extern const struct eng_transport_ops ring_transport_shm;
extern const struct eng_transport_ops ring_transport_mlx5;
extern const struct eng_transport_ops ring_transport_verbs;

/** The progress of an engine whose first transport is ring_transport_shm: its loop, called directly. */
void ring_shm_progress(struct core_engine *engine);

#endif
