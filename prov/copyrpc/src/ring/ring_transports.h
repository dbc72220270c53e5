/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ring transports by device, for the code that composes engines. */
#ifndef RING_RING_TRANSPORTS_H
#define RING_RING_TRANSPORTS_H

struct core_progress;
struct eng_transport_ops;

extern const struct eng_transport_ops ring_transport_shm;
extern const struct eng_transport_ops ring_transport_mlx5;
extern const struct eng_transport_ops ring_transport_verbs;

/**
 * Runs the progress of an engine with ring_transport_shm as first transport, without indirect
 * calls.
 */
void ring_shm_progress(struct core_progress *base);

#endif
