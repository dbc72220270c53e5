/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA reads and writes (fi_rma). Called by ofi/; the target side through core_handlers.
 *
 * An access is a sequence of calls (core_access.h), each for one range, that the peer executes in
 * its progress in order of arrival. Its end always means that the bytes are in place, whatever
 * completion level was requested. The peer keeps no state between calls. Room for the response is
 * reserved before a call leaves, so no order of accesses of both ends can deadlock.
 *
 *   core_rma_post -> core_op queue -> calls while there is room -> responses -> completion
 *
 * Accesses start in the order they were posted, sends included, and stay first in the queue until
 * their last call has left. Long ranges are transferred by a get instead: core_rma_bulk.h. Where
 * the devices of both ends can do it, an access is no call at all: core_rma_direct.h.
 *
 * Bytes of an injected write are copied.
 */
#ifndef CORE_RMA_CORE_RMA_H
#define CORE_RMA_CORE_RMA_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/core_chan.h"
#include "core/core_head.h"
#include "core/rma/core_access.h"
#include "wire/wire_rma.h"

#define CORE_RMA_IOV_MAX CORE_ACCESS_IOV_MAX
/** Maximum user bytes of one call: small enough that both ends copy at the same time. */
#define CORE_RMA_WRITE_LEN (8u << 10)
#define CORE_RMA_READ_LEN  (4u << 10)
/**
 * Completion levels of a write that end it when its bytes are placed. The buffer that a write
 * matches is the region, so FI_MATCH_COMPLETE as a default flag is no more than that.
 */
#define CORE_RMA_PLACED_FLAGS (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)

struct core_ep;
struct core_mr;
struct core_peer;
struct core_rma_lease;

/** Arguments of an access, as of fi_writemsg and fi_readmsg. */
struct core_rma {
	bool write;
	bool silent; /* fi_inject_write: completes only if it fails */
	fi_addr_t peer;
	const struct iovec *iov;
	size_t iov_cnt; /* <= CORE_RMA_IOV_MAX */
	size_t len;     /* sum of iov */
	void *desc;     /* of the region that iov lies in (fi_mr_desc), or anything */
	const struct fi_rma_iov *rma_iov;
	size_t rma_cnt; /* <= CORE_RMA_IOV_MAX; the sum of their lengths is len */
	uint64_t data;
	void *context;
	/* FI_COMPLETION, FI_INJECT, FI_FENCE, FI_MORE, FI_REMOTE_CQ_DATA, CORE_RMA_PLACED_FLAGS */
	uint64_t flags;
};

/**
 * Posts an access. Returns 0, -FI_EAGAIN, -FI_EINVAL for an unknown address, or the error that made
 * the peer unreachable.
 */
ssize_t core_rma_post(struct core_ep *ep, const struct core_rma *r);

#define CORE_RMA_INLINE 64u

/** Access in progress, from the endpoint's pool. */
struct core_rma_req {
	struct core_access access;
	bool write;
	bool bulk;                     /* by a get: core_rma_bulk.h */
	bool no_bulk;                  /* get is not possible */
	bool fetching;                 /* get in progress */
	bool returning;                /* the target's exposure is to be returned */
	bool by_calls;                 /* calls have been made, or the device cannot do it */
	struct core_chan *direct;      /* direct access in progress on it, or NULL */
	struct core_rma_lease *lease;  /* of the direct access */
	void *desc;                    /* of core_rma */
	struct core_exposure exposure; /* bulk write: of the local buffer */
	struct core_get get;           /* bulk read or direct access */
	struct wire_rma_return back;   /* body of the message that returns the exposure */
	size_t iov_cnt;
	struct iovec iov[CORE_RMA_IOV_MAX];
	uint8_t inlined[CORE_RMA_INLINE]; /* bytes of an injected write, if they fit */
};

/**
 * Ends the exposures of a region: the revocable ones (CORE_CHAN_REVOKE), or `all` of them. Then it
 * fails the channels with gets, too, which end with their channel. The locks of all progress
 * domains are held.
 */
void core_rma_revoke(struct core_mr *mr, bool all);
/** Implements core_module.mr_revoke: ends exposures, and revokes the leases of a region. */
void core_rma_mr_revoke(struct core_mr *mr, bool all);
/** Hooks of core_module.h. Exposures end before a channel is closed, gets after it. */
int core_rma_ep_open(struct core_ep *ep);
void core_rma_ep_close(struct core_ep *ep);
void core_rma_peer_failed(struct core_peer *peer, int err);
void core_rma_peer_closed(struct core_peer *peer);

/** Handles the return of an exposure at the target. */
enum core_rx_verdict core_rma_on_msg(struct core_chan *chan, struct core_head *head,
				     core_retain_t retain);

/** Executes a call at the target: WRITE, READ, FETCH or EXPOSE. */
enum core_rx_verdict core_rma_on_call(struct core_chan *chan, struct core_call_ref ref,
				      struct core_head *head, core_retain_t retain);

#endif
