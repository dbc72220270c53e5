/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct accesses (core_chan_ops.direct, undirect and reg): RDMA READ and WRITE between the user's
 * memory of both ends (docs/rma.md). Called by core for remote memory access.
 *
 * Local buffers, in order of preference:
 *
 *   inline      a short write is copied into the work request
 *   registered  the caller has a registration of the user's region
 *   bounced     up to RING_BOUNCE_LEN bytes go through a slot of registered memory (ring_bounce.h)
 *   otherwise   the buffers are registered for the time of the access, as for a get
 *
 * A direct access is in ring_conn.gets until it ends, like a get, and fails with the connection in
 * the same way (ring_bulk.h).
 *
 * Owner: the thread that holds the domain. Tests: test/unit/ring/test_ring_direct.c.
 */
#ifndef RING_RING_DIRECT_H
#define RING_RING_DIRECT_H

#include "ring/ring_conn.h"
#include "ring/ring_transport.h"

/** Implement core_chan_ops. */
int ring_direct(struct core_chan *chan, struct core_get *get, unsigned flags);
void ring_direct_drop(struct core_chan *chan, struct core_get *get);
int ring_direct_reg(struct core_chan *chan, const void *addr, size_t len, unsigned access,
		    struct core_reg **reg);

/** Deregisters all registrations of regions, which keep their records: the device is closed. */
void ring_direct_regs_end(struct ring_transport *transport);
/**
 * Registers them with a device that was opened anew. No channel finds those that cannot be: their
 * memory may be gone, and the others need the device.
 */
void ring_direct_regs_renew(struct ring_transport *transport);

#endif
