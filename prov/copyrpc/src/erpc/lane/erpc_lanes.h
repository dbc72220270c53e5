/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What does erpc/ offer to those who compose engines? Its lanes, by device. */
#ifndef ERPC_LANES_H
#define ERPC_LANES_H

struct eng_lane_ops;

extern const struct eng_lane_ops erpc_lane_udp;   /* WIRE_CM_PATH_UDP */
extern const struct eng_lane_ops erpc_lane_mlx5;  /* WIRE_CM_PATH_UD */
extern const struct eng_lane_ops erpc_lane_verbs; /* the same */

#endif
