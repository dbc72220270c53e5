/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What does erpc/ offer to those who compose engines? Its transports, by device. */
#ifndef ERPC_TRANSPORTS_H
#define ERPC_TRANSPORTS_H

struct eng_transport_ops;

extern const struct eng_transport_ops erpc_transport_udp;   /* WIRE_CM_PATH_UDP */
extern const struct eng_transport_ops erpc_transport_mlx5;  /* WIRE_CM_PATH_UD */
extern const struct eng_transport_ops erpc_transport_verbs; /* the same */

#endif
