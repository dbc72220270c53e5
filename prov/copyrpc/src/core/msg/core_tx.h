/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a message leave?
 *
 * Four ways, chosen by length and by what the completion promises:
 *   eager	one frame; no request
 *   deliver	a call whose reply says "delivered" (FI_DELIVERY_COMPLETE)
 *   parts	PART, then CONT frames as room permits, while the receiver copies the first ones out
 *   fetch	RNDV call; the receiver fetches the bytes or asks for them in parts, and replies
 *
 * Whose bytes are in the peer's memory then has completed. Where a device is still to move them, the
 * send is remembered until it is known to have arrived (core_pending.h).
 *
 * What finds no room, no credit or no connection yet waits in the peer's queue, in order; the
 * user's buffer stays his until the completion. Only an injected message, which has no completion
 * to wait for, gets -FI_EAGAIN (it may not be kept), and a sender that has CORE_TX_QUEUE_MAX sends
 * waiting. An injected message that one frame of this peer cannot carry (its ring is small) is
 * copied and then waits too.
 *
 * Shown by test/unit/core/msg/test_core_tx.c.
 */
#ifndef CORE_TX_H
#define CORE_TX_H

#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/core_ep.h"
#include "wire/wire_op.h"

/** A send, as fi_tsendmsg and friends state it. */
struct core_send {
	fi_addr_t dest;
	const struct iovec *iov;
	size_t iov_cnt;
	size_t len; /* sum of iov */
	uint64_t tag;
	uint64_t data;
	void *context;
	uint64_t flags; /* FI_COMPLETION, FI_INJECT, FI_*_COMPLETE, FI_MORE, FI_REMOTE_CQ_DATA */
	bool tagged;
	bool silent; /* fi_inject and friends: no completion, whatever the flags say */
};

/**
 * Sends. 0; -FI_EAGAIN (make progress and try again); -FI_EINVAL (unknown address); or the error
 * that made the peer unreachable. With FI_INJECT len is at most the inject size (checked by ofi/).
 * A completion is written to ep->tx unless `silent`, if it is not selective or FI_COMPLETION is
 * set; counters count every send.
 */
ssize_t core_tx_send(struct core_ep *ep, const struct core_send *s);

/** The same, said in arguments: what core_post.h leaves. */
ssize_t core_tx_send_buf_cold(struct core_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			      uint64_t tag, uint64_t data, void *context, uint64_t flags,
			      bool tagged, bool silent);

/** The extension of a whole message, in two words, and its operation word. */
static inline uint32_t core_tx_ext(uint64_t ext[2], uint64_t tag, uint64_t data, uint64_t flags,
				   bool tagged)
{
	uint64_t *next = ext;
	uint32_t op = WIRE_OP_MSG;

	ext[0] = 0;
	ext[1] = 0;
	if (tagged) {
		*next++ = tag;
		op |= WIRE_F_TAG;
	}
	if (flags & FI_REMOTE_CQ_DATA) {
		*next = data;
		op |= data <= UINT32_MAX ? WIRE_F_DATA32 : WIRE_F_DATA64;
	}
	return op;
}

static inline unsigned core_tx_send_flags(uint64_t flags)
{
	return (flags & FI_MORE ? CORE_SEND_MORE : 0) | (flags & FI_INJECT ? CORE_SEND_NOW : 0);
}

/** Does a send write a completion when it ends well? */
static inline bool core_tx_wants_comp(const struct core_ep *ep, uint64_t flags, bool silent)
{
	return !silent && ep->tx.cq && (!ep->tx.selective || (flags & FI_COMPLETION));
}

/** Flags of the completion of a send. */
static inline uint64_t core_tx_comp_flags(bool tagged)
{
	return FI_SEND | (tagged ? FI_TAGGED : FI_MSG);
}

/** The same as core_tx_complete, out of line. */
void core_tx_complete_cold(struct core_ep *ep, void *context, uint64_t flags, bool tagged,
			   bool silent);

/** A send has ended well: completion and counter. */
static inline void core_tx_complete(struct core_ep *ep, void *context, uint64_t flags, bool tagged,
				    bool silent)
{
	if (ep->tx.cntr)
		core_cntr_add(ep->tx.cntr, 1);
	if (core_tx_wants_comp(ep, flags, silent))
		core_cq_write(ep->tx.cq, context, core_tx_comp_flags(tagged), 0, NULL, 0, 0,
			      FI_ADDR_NOTAVAIL);
}

#endif
