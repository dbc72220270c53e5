/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transports of erpc/, by device. Used where engines are composed. */
#ifndef ERPC_TRANSPORT_ERPC_TRANSPORTS_H
#define ERPC_TRANSPORT_ERPC_TRANSPORTS_H

struct eng_transport_ops;

extern const struct eng_transport_ops erpc_transport_udp;   /* WIRE_CM_PATH_UDP */
extern const struct eng_transport_ops erpc_transport_mlx5;  /* WIRE_CM_PATH_UD */
extern const struct eng_transport_ops erpc_transport_verbs; /* WIRE_CM_PATH_UD */

#endif
