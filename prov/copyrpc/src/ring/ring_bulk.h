/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does the peer's memory get into ours without the ring? core_chan_ops.get, lend and unexpose.
 *
 * Where the device registers memory, it is registered for one transfer and given back with its end:
 * by the sender for the time that it is announced, by the receiver for the time of the get. Nothing
 * is cached: a cache would have to hear of every munmap, and we hook nothing. What that costs is
 * why short messages go through the ring (FI_COPYRPC_RNDV_MIN).
 *
 * The gets of a connection that fails end with its error after the device has let go of their
 * buffers, and before core hears of the failure.
 *
 * Owner: who holds the domain. Shown by test/unit/ring/test_ring_bulk.c.
 */
#ifndef RING_BULK_H
#define RING_BULK_H

#include <assert.h>

#include "ring/ring_conn.h"

/** A get under way. Lives in core_get.engine. */
struct ring_get {
	struct dev_get dev;    /* first; user: the core_get */
	struct util_list link; /* ring_conn.gets */
};

static_assert(sizeof(struct ring_get) <= sizeof(((struct core_get *)0)->engine), "it lives there");

/** core_chan_ops.get, lend and unexpose. */
int ring_bulk_get(struct core_chan *chan, struct core_get *get);
int ring_bulk_expose(struct core_chan *chan, const void *addr, size_t len,
		     struct core_exposure *exposure);
void ring_bulk_unexpose(struct core_chan *chan, struct core_exposure *exposure);

/** DEV_EV_GET: tells core. */
void ring_bulk_get_done(struct ring_conn *conn, struct dev_get *get);

/** Ends what is open with `err`; the link is detached. */
void ring_bulk_fail(struct ring_conn *conn, int err);

#endif
