/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Abilities of a ConnectX that libibverbs does not tell: found by creating a queue pair, as the
 * provider does. Called by probe_rdma.c in its child.
 */
#ifndef INFO_INFO_MLX5_H
#define INFO_INFO_MLX5_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct info_mlx5 {
	bool direct;     /* direct verbs drive the device */
	unsigned bf_len; /* bytes of a BlueFlame register; 0: none, or unknown */
	bool has_dc;     /* dynamically connected queue pairs */
};

/** Creates objects of the device and destroys them. What cannot be created is not there. */
struct info_mlx5 info_mlx5_ask(struct ibv_context *ctx);

#endif
