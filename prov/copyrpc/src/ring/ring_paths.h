/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which ways to reach a peer does this process have, and in which order does it like them?
 *
 * What FI_COPYRPC_PATHS names, as far as there is a device for it. A path that is one of several
 * and has no device is left out without a word; one that was named alone is an error, said once.
 * The handshake then finds what both ends have (docs/handshake.md).
 *
 * Shown by test/unit/ring/test_ring_paths.c.
 */
#ifndef RING_PATHS_H
#define RING_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring_lane.h"

/** Devices that could carry a path; several may carry the same one, the first that opens does. */
#define RING_PATHS_MAX 4u

struct ring_paths {
	uint32_t cnt;
	const struct ring_lane_ops *lane[RING_PATHS_MAX]; /* best first */
	const struct ring_lane_ops *nic; /* the first of them that is a NIC's, or NULL */
	struct dev_about about;          /* the NIC */
};

extern const struct ring_lane_ops ring_lane_shm;
extern const struct ring_lane_ops ring_lane_mlx5;
extern const struct ring_lane_ops ring_lane_verbs;

/** The memory of this host, and nothing else. */
extern const struct ring_paths ring_paths_shm;

/**
 * Reads `text`, a list as in FI_COPYRPC_PATHS: 0; -FI_EINVAL: it is not one; -FI_ENODEV: there is no
 * device for any path that it names. `tell`: logs an error with what can be done.
 */
int ring_paths_read(const char *text, bool tell, struct ring_paths *paths);

#endif
