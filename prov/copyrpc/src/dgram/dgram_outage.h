/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Outages of the RDMA device of datagram endpoints. Called by the engine and its endpoints.
 *
 * A port that is down loses datagrams, and nothing else. A device that fails, or a queue pair, ends
 * its endpoints: receives end with an error, and calls return it. Progress then makes failed
 * endpoints anew, every DGRAM_OUTAGE_MS; where the device has failed it is closed first, and all
 * endpoints with it, and opened again. They have other addresses then. No handshake says so to
 * peers: users exchange them anew.
 *
 * A timer paces that, runs while an endpoint has failed, and wakes threads that sleep. Sockets have
 * no device, and stay failed.
 *
 * Tests: test/unit/dgram/test_dgram_outage.c; test/integ/peer/outage_dgram on the device model.
 */
#ifndef DGRAM_DGRAM_OUTAGE_H
#define DGRAM_DGRAM_OUTAGE_H

#include "dgram/dgram_engine.h"

#define DGRAM_OUTAGE_MS 500u

/** Opens the device and the timer. Returns 0 or -FI_E*; fini may follow in any case. */
int dgram_outage_init(struct dgram_engine *engine);
void dgram_outage_fini(struct dgram_engine *engine);

/** Sees to a device for a new endpoint. Returns 0, or -FI_E* while it is away. */
int dgram_outage_enter(struct dgram_engine *engine);

/** Reads the device's events before a thread sleeps: they have woken it, or would. */
void dgram_outage_read(struct dgram_engine *engine);

/** Starts the timer: an endpoint has failed. */
void dgram_outage_begin(struct dgram_engine *engine);

/** Makes the failed endpoints anew if that is due. */
void dgram_outage_look(struct dgram_engine *engine);

#endif
