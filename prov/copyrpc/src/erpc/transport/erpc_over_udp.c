/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transport over UDP sockets.
 *
 * Between processes on busy processors a round trip measures the scheduler rather than the network,
 * and the kernel has its own queues: sessions are not paced, credits bound the packets in flight.
 * FI_COPYRPC_LINK_RATE turns pacing on, with time for wake-ups of processes.
 */
#include "dev/udp/udp.h"
#include "erpc/transport/erpc_transport.h"
#include "wire/wire_cm.h"

static const struct erpc_transport_dev erpc_udp_dev = {
	.dgram = &udp_dgram_ops,
	.rx_cnt = 8192,
	.tx_cnt = 256,
	.host_ns = 300000,
	.copies = true,
};

static int erpc_udp_open(struct eng_transport *transport)
{
	return erpc_transport_open(transport, &erpc_udp_dev);
}

const struct eng_transport_ops erpc_transport_udp =
	ERPC_TRANSPORT_OPS(WIRE_CM_PATH_UDP, "udp", erpc_udp_open, .by_address = true);
