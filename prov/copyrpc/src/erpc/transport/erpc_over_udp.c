/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sessions over UDP sockets.
 *
 * Between processes on busy processors a round trip says more about who runs than about the network, and the
 * kernel has queues of its own: nothing is paced, credits bound what is on its way. Who gives a rate
 * (FI_COPYRPC_LINK_RATE) is paced, with time for waking processes.
 */
#include "dev/udp/udp.h"
#include "erpc/transport/erpc_transport.h"
#include "wire/wire_cm.h"

ERPC_TRANSPORT(udp, WIRE_CM_PATH_UDP, NULL, .dgram = &udp_dgram_ops, .rx_cnt = 1024, .tx_cnt = 256,
	       .host_ns = 300000);
