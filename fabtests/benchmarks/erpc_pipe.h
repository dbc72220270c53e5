/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What carries datagrams between two ports at the same small cost, however many sessions there are?
 *
 * Two datagram devices (dev/dgram.h) in one thread: what one sends is in the other's receive ring when
 * send returns. Nothing is lost as long as that has room, and nothing is simulated: what a
 * benchmark counts is the engine's. Each address resolves to the other end.
 */
#ifndef ERPC_PIPE_H
#define ERPC_PIPE_H

#include "dev/dgram.h"

#define ERPC_PIPE_MTU 1024u

/** The two ends, closed by their ports; what is between them goes with the second one. */
void erpc_pipe_open(struct dev_dgram *ends[2], uint32_t rx_cnt);

/** An address of the other end. */
struct dev_dgram_ah *erpc_pipe_ah(struct dev_dgram *end);

#endif
