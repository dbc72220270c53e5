/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram transport between two endpoints whose cost does not depend on the number of sessions.
 *
 * Two datagram devices (dev/dgram.h) in one thread: a datagram is in the other device's receive
 * ring when send returns. No datagram is lost while that ring has room, and no network is
 * simulated: the instructions that a benchmark counts are the engine's. Each address resolves to
 * the other end.
 */
#ifndef ERPC_PIPE_H
#define ERPC_PIPE_H

#include "dev/dgram.h"

#define ERPC_PIPE_MTU 1024u

/**
 * Opens two ends. Each endpoint closes its own; the memory between them is freed with the second.
 */
void erpc_pipe_open(struct dev_dgram *ends[2], uint32_t rx_cnt);

/** Returns an address of the other end. */
struct dev_dgram_ah *erpc_pipe_ah(struct dev_dgram *end);

#endif
