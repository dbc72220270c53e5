/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transfers beside the ring: core_chan_ops.get, expose and unexpose. Called by core for rendezvous
 * and remote memory access.
 *
 * If the device registers memory, it is registered for one transfer and deregistered at its end: by
 * the sender while it is exposed, by the receiver for the time of the get. Registrations are not
 * cached: a cache would have to track every munmap, and the provider installs no such hooks. This
 * cost is why short messages go through the ring (FI_COPYRPC_RNDV_MIN).
 *
 * When a connection fails, its gets end with its error after the device has released their buffers,
 * and before core is notified of the failure.
 *
 * Owner: the thread that holds the domain.
 */
#ifndef RING_RING_BULK_H
#define RING_RING_BULK_H

#include <assert.h>

#include "ring/ring_bounce.h"
#include "ring/ring_conn.h"

/** Get or direct access in progress. Stored in core_get.engine. */
struct ring_get {
	struct dev_get dev;            /* First member; `user` is the core_get */
	struct util_list link;         /* ring_conn.gets */
	struct ring_bounce_slot *slot; /* the bytes go through it, or NULL */
	struct iovec slot_iov;
	bool direct;     /* direct access, no get */
	bool registered; /* the buffers are registered for the transfer */
	bool reads;      /* bytes of a slot go to the buffers at the end */
	bool on_rail;    /* part: goes over the rail */
	bool waits;      /* in ring_rails.waiting, or held by a takeover */
	/* Get that this is a part of (ring_rail.h); dev.user is the connection then. NULL: whole */
	struct ring_stripe *stripe;
};

static_assert(sizeof(struct ring_get) <= sizeof(((struct core_get *)0)->engine), "it lives there");

/** Implement core_chan_ops.get, expose and unexpose. */
int ring_bulk_get(struct core_chan *chan, struct core_get *get);
int ring_bulk_expose(struct core_chan *chan, const void *addr, size_t len,
		     struct core_exposure *exposure);
void ring_bulk_unexpose(struct core_chan *chan, struct core_exposure *exposure);

/**
 * Registers the buffers of `rget` for a set of enum dev_mem_access, if the device needs it. Returns
 * 0, or -FI_E* with none registered.
 */
int ring_bulk_reg(struct ring_conn *conn, struct ring_get *rget, unsigned access);
/** Ends the use of slot or registration, and delivers the bytes of a read. */
void ring_bulk_release(struct ring_conn *conn, struct ring_get *rget);

/**
 * Posts a get, or a part of one, that a takeover has held. Returns like dev_link_ops.get, or an
 * error of the registration.
 */
int ring_bulk_post_held(struct ring_conn *conn, struct ring_get *rget);

/**
 * Takes a get, or a part of one, that has ended. Returns the get if it has ended as a whole, with
 * its status; the part is no longer valid then.
 */
struct core_get *ring_bulk_part_done(struct ring_conn *conn, struct ring_get *rget);
/** Handles DEV_EV_GET: completes the get and notifies core. */
void ring_bulk_get_done(struct ring_conn *conn, struct dev_get *get);

/**
 * Ends all gets in progress with `err`, and counts simple accesses that have not ended; core ends
 * these. The link is detached.
 */
void ring_bulk_fail(struct ring_conn *conn, int err);
/** Ends all gets in progress without notifying core. The links are detached. */
void ring_bulk_abandon(struct ring_conn *conn);

#endif
