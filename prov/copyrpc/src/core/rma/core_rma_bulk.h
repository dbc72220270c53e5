/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bulk accesses: RMA of long ranges by a get of the channel, without the bytes in calls. Called by
 * core_rma.c (initiator) and core_rma_target.c (target).
 *
 *   write  FETCH: the initiator exposes its buffer, the target gets the bytes and replies
 *   read   EXPOSE: the target exposes its memory, the initiator gets the bytes, then returns the
 *          exposure with a message
 *
 * The kernel or the device executes a get; on one host both ends may copy at the same time. If a
 * get is not possible (no capability, several ranges, memory that cannot be exposed), the target
 * replies REFUSED and the access restarts with calls that carry the bytes.
 *
 * The target's record, a core_rma_deferred, belongs to the peer and ends with it. A get counts in
 * the region's `users`. So does an exposure if its end during a get would fail the connection;
 * other exposures are revoked when the region is closed (CORE_CHAN_REVOKE).
 *
 * Shown by test_core_rma_bulk.c and test_core_rma_deferred.c in test/unit/core/rma.
 */
#ifndef CORE_RMA_CORE_RMA_BULK_H
#define CORE_RMA_CORE_RMA_BULK_H

#include <stdbool.h>

#include "core/core_head.h"
#include "core/core_mr.h"
#include "core/rma/core_rma.h"
#include "util/list.h"
#include "wire/wire_rma.h"

/** Call in execution at the target. */
struct core_rma_in {
	struct core_chan *chan;
	struct core_call_ref ref;
	struct core_head head;
	struct wire_rma rma;
	struct core_access_target target;
};

/** Get in progress, or exposure, at the target. */
struct core_rma_deferred {
	struct util_list peer_link; /* core_peer.rma_deferred */
	struct util_list mr_link;   /* core_mr.deferred */
	struct core_ep *ep;
	struct core_rma_in in;
	struct core_get get;
	struct core_exposure exposure; /* chan is NULL: a get */
	uint32_t exposure_id;          /* in ep->exposure_ids */
	bool counted;                  /* in the region's users */
};

/* Initiator side. */

/** Returns true if the access is long enough for a get, and none has been refused. */
bool core_rma_is_bulk(const struct core_rma_req *req);
/** Makes the call of a bulk access, or sets no_bulk. Returns 0 or the error of the channel. */
int core_rma_bulk_start(struct core_rma_req *req);
/** Handles the response to that call. Returns 0, or -FI_E* that ends the access. */
int core_rma_bulk_response(struct core_rma_req *req, uint32_t status, const uint8_t *data,
			   uint32_t len);
/** Returns the target's exposure with a message. Returns 0 or the error of the channel. */
int core_rma_bulk_return(struct core_rma_req *req);
/** Ends the exposure of the local buffer, if there is one. */
void core_rma_bulk_unexpose(struct core_rma_req *req);

/* core_rma.c */
void core_rma_frame(const struct core_rma_req *req, uint32_t op, size_t len,
		    struct core_frame *frame);
/** Continues an access after a response or a get: more calls, or its end. */
void core_rma_resume(struct core_rma_req *req);

/* Target side. */

/** Sets in->iov to the range in its region. Returns false after a reply if access is denied. */
bool core_rma_reach(struct core_rma_in *in, uint64_t access);
void core_rma_reply(const struct core_rma_in *in, uint32_t status);
void core_rma_notify(const struct core_rma_in *in, bool write);

enum core_rx_verdict core_rma_get_in(struct core_rma_in *in);
enum core_rx_verdict core_rma_expose_in(struct core_rma_in *in);

#endif
