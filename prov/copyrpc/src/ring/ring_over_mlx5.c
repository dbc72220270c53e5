/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ring transport over a ConnectX driven directly: this device's copy of the loop.
 *
 * Reading the peer's consumer word takes a round trip, so the flush policy uses the advertised
 * position.
 */
#include "dev/mlx5/m5.h"
#include "ring/ring_over.h"
#include "ring/ring_transports.h"
#include "wire/wire_cm.h"

static const struct ring_flush_cfg ring_mlx5_flush_cfg = { .best_len = RING_NIC_BEST_LEN,
							   .packet_len = RING_NIC_BEST_LEN };

RING_OVER(mlx5, WIRE_CM_PATH_NIC, m5_dev_ops, m5_dev_ops_inline, m5_link_ops_inline,
	  ring_mlx5_flush_cfg);
