/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a long access go without its bytes in calls?
 *
 *   write  FETCH: we lend our buffer, the target gets the bytes into its region, and answers
 *   read   LEND: the target lends its memory, we get the bytes, and give the loan back
 *
 * Both are the channel's get, which the kernel or the device carries out, both ends of a host at the same
 * time. Whatever stands against it (no get, several pieces, memory that cannot be lent) is
 * answered with REFUSED, and the access goes by calls as if nothing had been.
 *
 * What the target keeps meanwhile, a core_rma_deferred, belongs to the peer and ends with it. A fetch counts in
 * the region's `users`, and so does a loan where revoking it in the middle of a get would cost the
 * connection; any other loan is revoked when the region is closed (CORE_CHAN_REVOKE).
 *
 * Shown by test_core_rma_bulk.c and test_core_rma_deferred.c in test/unit/core/rma.
 */
#ifndef CORE_RMA_BULK_H
#define CORE_RMA_BULK_H

#include <stdbool.h>

#include "core/msg/core_unexp.h"
#include "core/core_mr.h"
#include "core/rma/core_rma.h"
#include "util/list.h"
#include "wire/wire_rma.h"

/** A call at the target. */
struct core_rma_in {
	struct core_chan *chan;
	struct core_call_ref ref;
	struct core_head head;
	struct wire_rma rma;
	struct core_mr *mr; /* NULL: no bytes are reached */
	struct iovec iov[CORE_MR_IOV_MAX];
	size_t iov_cnt;
};

/** A fetch under way, or a loan. */
struct core_rma_deferred {
	struct util_list peer_link; /* core_peer.rma_deferred */
	struct util_list mr_link;   /* core_mr.loans */
	struct core_ep *ep;
	struct core_rma_in in;
	struct core_get get;
	struct core_exposure exposure; /* chan is NULL: it is a fetch */
	uint32_t exposure_id;          /* in ep->exposure_ids */
	bool counted;                  /* in the region's users */
};

/* The initiator. */

/** Is this access worth it, and possible as far as we know? */
bool core_rma_is_bulk(const struct core_rma_req *req);
/** Makes its only call: 0 (or it turned out that it has to go by calls), -FI_EAGAIN. */
int core_rma_bulk_start(struct core_rma_req *req);
/** The answer to that call, status and what follows: 0, or -FI_E* that ends the access. */
int core_rma_bulk_response(struct core_rma_req *req, uint32_t status, const uint8_t *data,
			   uint32_t len);
/** A loan that is due goes back: 0 or -FI_EAGAIN. */
int core_rma_bulk_return(struct core_rma_req *req);
/** Our memory is no longer the peer's. */
void core_rma_bulk_unexpose(struct core_rma_req *req);

/* core_rma.c */
void core_rma_frame(const struct core_rma_req *req, uint32_t op, size_t len,
		    struct core_frame *frame);
/** Goes on with an access after something came in for it: more calls, or its end. */
void core_rma_resume(struct core_rma_req *req);

/* The target. */

int core_rma_reach(struct core_rma_in *in, uint64_t access);
void core_rma_reply(const struct core_rma_in *in, uint32_t status);
void core_rma_notify(const struct core_rma_in *in, bool write);

enum core_rx_verdict core_rma_get_in(struct core_rma_in *in);
enum core_rx_verdict core_rma_expose_in(struct core_rma_in *in);

#endif
