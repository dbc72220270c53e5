/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How do we read and write a peer's memory?
 *
 * By calls, each for one stretch of it, that the peer executes in its progress, one after the other
 * as they arrive, and answers (core_access.h), so its end always means that the bytes are where
 * they belong, whatever completion was asked for. Nothing is kept at the peer between calls, and a
 * call only leaves with room for its answer: no order of accesses of both ends can block.
 *
 *   core_rma_post -> core_op queue -> calls while there is room -> answers -> completion
 *
 * Accesses start in the order they were posted, sends included, and stay first in the queue until
 * their last call has left. A stretch that is worth it is not carried by its call: core_rma_bulk.h.
 *
 * Bytes of an injected write are copied. Shown by test/unit/core/rma/test_core_rma.c.
 */
#ifndef CORE_RMA_H
#define CORE_RMA_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/core_chan.h"
#include "core/msg/core_unexp.h"
#include "core/rma/core_access.h"
#include "wire/wire_rma.h"

#define CORE_RMA_IOV_MAX CORE_ACCESS_IOV_MAX
/** User bytes that one call carries at most: both ends copy at the same time. */
#define CORE_RMA_WRITE_LEN (8u << 10)
#define CORE_RMA_READ_LEN  (4u << 10)

/** An access, as fi_writemsg and fi_readmsg state it. */
struct core_rma {
	bool write;
	bool silent; /* fi_inject_write: no completion, unless it fails */
	fi_addr_t peer;
	const struct iovec *iov;
	size_t iov_cnt; /* <= CORE_RMA_IOV_MAX */
	size_t len;     /* sum of iov */
	const struct fi_rma_iov *rma_iov;
	size_t rma_cnt; /* <= CORE_RMA_IOV_MAX; the sum of their lengths is len */
	uint64_t data;
	void *context;
	uint64_t flags; /* FI_COMPLETION, FI_INJECT, FI_FENCE, FI_REMOTE_CQ_DATA */
};

/** 0, -FI_EAGAIN, -FI_EINVAL (unknown address), or why the peer cannot be reached. */
ssize_t core_rma_post(struct core_ep *ep, const struct core_rma *r);

#define CORE_RMA_INLINE 64u

/** An access of ours, from the endpoint's pool. */
struct core_rma_req {
	struct core_access access;
	bool write;
	bool bulk;                     /* core_rma_bulk.h */
	bool no_bulk;                  /* that is not possible */
	bool fetching;                 /* get is under way */
	bool returning;                /* what the target lent is to be given back */
	struct core_exposure exposure; /* bulk write: of our buffer */
	struct core_get get;           /* bulk read */
	struct wire_rma_return back;   /* says so */
	size_t iov_cnt;
	struct iovec iov[CORE_RMA_IOV_MAX];
	uint8_t inlined[CORE_RMA_INLINE]; /* bytes of an injected write, if they fit */
};

struct core_mr;
struct core_peer;

/** Ends the loans of a region: those that may be revoked (core_chan.h), or all, whatever it costs. */
void core_rma_revoke(struct core_mr *mr, bool all);
/** The peer's channel is about to be closed: its loans end; is closed: its fetches do. */
void core_rma_drop_exposures(struct core_peer *peer);
void core_rma_drop_gets(struct core_peer *peer);

/** A loan comes back. */
enum core_rx_verdict core_rma_on_msg(struct core_chan *chan, const struct core_head *head);

/** The target's side: WRITE, READ, FETCH, LEND. */
enum core_rx_verdict core_rma_on_call(struct core_chan *chan, struct core_call_ref ref,
				      const struct core_head *head);

#endif
