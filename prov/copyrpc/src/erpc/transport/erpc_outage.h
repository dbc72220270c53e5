/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Outages of the RDMA device under a transport over datagrams. Called by the engine
 * (engine/eng_outage.h), and by the transport before a thread sleeps.
 *
 * Sessions outlast a port that is down: what is lost is sent again. They end where another path may
 * carry the next ones, otherwise after FI_COPYRPC_PEER_TIMEOUT. A device that has failed ends all
 * and is opened again. Queue pairs of endpoints are made anew then; peers learn of them by the
 * handshake of the next session.
 *
 * Tests: test/unit/erpc/transport/test_erpc_outage.c; test/integ/peer/outage on the device model.
 */
#ifndef ERPC_TRANSPORT_ERPC_OUTAGE_H
#define ERPC_TRANSPORT_ERPC_OUTAGE_H

struct eng_transport;

/** Implement eng_transport_ops.health and reopen. health also ends sessions. */
int erpc_outage_health(struct eng_transport *eng);
int erpc_outage_reopen(struct eng_transport *eng);

#endif
