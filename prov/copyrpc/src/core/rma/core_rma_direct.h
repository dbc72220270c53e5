/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct accesses: RMA by the devices of both ends, without the target's processor (docs/rma.md).
 * Called by core_rma.c.
 *
 * An access is direct if the channel's device can do it, the initiator holds a lease of the region
 * that permits it (core_rma_lease.h), and nothing of it is for the target's processor. All others
 * go by calls, and so does one that the lease does not permit: the target finds the error.
 *
 * Orders, where the endpoint keeps them (core_ep.rma_ordered). The queue pair executes WRITEs,
 * READs and messages in the order of posts, except that later ones may overtake a READ:
 *
 *   a direct access starts after the responses to all earlier calls of accesses and atomics, and
 *   sends the open batch first;
 *   nothing but a direct read starts while direct reads are in progress (core_peer.direct_reads).
 *
 * Owner: the thread that holds the domain. Tests: test/unit/core/rma/test_core_rma_direct.c.
 */
#ifndef CORE_RMA_CORE_RMA_DIRECT_H
#define CORE_RMA_CORE_RMA_DIRECT_H

#include "core/rma/core_rma.h"

/** Result of core_rma_direct_start: the access goes by calls. */
#define CORE_RMA_BY_CALLS 1

/**
 * Starts a direct access. Returns 0 if it started, -FI_EAGAIN if it starts later, or
 * CORE_RMA_BY_CALLS.
 */
int core_rma_direct_start(struct core_rma_req *req);
/** Forgets a direct access whose channel is about to be closed. */
void core_rma_direct_drop(struct core_rma_req *req);

#endif
