/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Send side of messaging. Called by ofi/; the hot path is core_post.h.
 *
 * Length and completion level select one of four protocols:
 *   eager	one frame, without a request
 *   deliver	a call; its reply confirms delivery (FI_DELIVERY_COMPLETE) or match
 *		(FI_MATCH_COMPLETE)
 *   pipelined	PART, then CONT frames as room permits, while the receiver copies the first ones
 *   rendezvous	RNDV call; the receiver gets the bytes or requests CONT frames, and replies
 *
 * A send completes when its bytes are in the peer's memory. Where a device moves them, its
 * completion is pending until the peer acknowledges (core_pending.h).
 *
 * A send without room, credit or connection is queued in order (core_op.h). An injected message
 * returns -FI_EAGAIN instead, since its buffer must not be referenced after the return. After
 * CORE_TX_INJECT_TRIES in a row for lack of room it is copied and queued, up to CORE_TX_COPIED_MAX:
 * its sender may have other work, and the peer, too. One that needs more than a frame of this
 * peer's small ring is copied at once.
 *
 * An injected message is not copied while its peer is being connected. The handshake takes no call
 * of the peer, so a peer that computes does not prolong it. A copy would leave with the sender's
 * next progress only, for which the peer may wait long, whereas a peer without room has no use for
 * it yet. And a connect that fails is the result of the call, not an error without a context.
 */
#ifndef CORE_MSG_CORE_TX_H
#define CORE_MSG_CORE_TX_H

#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/core_ep.h"
#include "wire/wire_op.h"

/* Injected messages to a peer that are refused, one after the other, before one is copied. */
#define CORE_TX_INJECT_TRIES 64u
/* Bytes of copied messages and their requests that an endpoint keeps. */
#define CORE_TX_COPIED_MAX (16u << 20)

/** Arguments of a send, as of fi_tsendmsg. */
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
	/*
	 * No completion, regardless of flags. With FI_INJECT for fi_inject and its relatives;
	 * without for cpr_silent.h, whose callers are refused and can send without a copy.
	 */
	bool silent;
};

/**
 * Sends a message. Returns 0, -FI_EAGAIN if the caller should make progress and retry, -FI_EINVAL
 * for an unknown address, or the error that made the peer unreachable. ofi/ checks len against the
 * inject size. Unless `silent`, writes a completion if ep->tx is not selective or FI_COMPLETION is
 * set. Counters count every send.
 */
ssize_t core_tx_send(struct core_ep *ep, const struct core_send *s);

/** Cold half of core_tx_send_buf (core_post.h). */
ssize_t core_tx_send_buf_cold(struct core_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			      uint64_t tag, uint64_t data, void *context, uint64_t flags,
			      bool tagged, bool silent);

/** Returns the operation word of a whole message, with its extension in `ext`. */
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

/** Returns the flags of the completion of a send. */
static inline uint64_t core_tx_comp_flags(bool tagged)
{
	return FI_SEND | (tagged ? FI_TAGGED : FI_MSG);
}

/* Polls for a response that lets a message leave: 50 us where each is a system call. */
#define CORE_TX_STAYS_POLLS 100u

/** Makes progress until a message with CORE_SEND_STAYS has left, or for long. */
void core_tx_stays_cold(struct core_peer *peer);

/**
 * Handles a send with FI_INJECT_COMPLETE that the channel has accepted with the result `ret`. If it
 * is too long to be injected, its loss is reported as that of an injected message.
 */
void core_tx_copied_cold(struct core_peer *peer, size_t len, bool tagged, int ret);

/** Completes a send, out of line. */
void core_tx_complete_cold(struct core_ep *ep, void *context, uint64_t flags, bool tagged,
			   bool silent);

/** Completes a send: completion and counter. */
static inline void core_tx_complete(struct core_ep *ep, void *context, uint64_t flags, bool tagged,
				    bool silent)
{
	if (ep->tx.cntr)
		core_cntr_add(ep->tx.cntr, 1);
	if (core_ep_has_tx_comp(ep, flags, silent))
		core_cq_write(ep->tx.cq, context, core_tx_comp_flags(tagged), 0, NULL, 0, 0,
			      FI_ADDR_NOTAVAIL);
}

#endif
