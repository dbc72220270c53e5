/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive side of messaging: posted receives (core_rx_post.c) and arrivals (core_rx.c). Called by
 * ofi/, and by the engine through core_upcalls.
 *
 * A message is copied once, into the oldest receive that accepts it; else it is unexpected.
 * Unexpected bytes are copied out of the ring within the domain's budget
 * (FI_COPYRPC_UNEXPECTED_MEM). Beyond the budget they stay in the ring, which fills and makes this
 * sender wait. Other peers are not affected, no message is lost, and replies still arrive.
 */
#ifndef CORE_MSG_CORE_RX_H
#define CORE_MSG_CORE_RX_H

#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/core_chan.h"
#include "core/core_ep.h"

/** Arguments of a receive, as of fi_trecvmsg. */
struct core_recv {
	fi_addr_t src; /* FI_ADDR_UNSPEC: any */
	const struct iovec *iov;
	size_t iov_cnt; /* <= CORE_RX_IOV_MAX */
	uint64_t tag;
	uint64_t ignore;
	void *context;
	uint64_t flags; /* FI_COMPLETION, FI_MULTI_RECV */
	bool tagged;
};

#define CORE_RX_IOV_MAX 4

/**
 * Posts a receive. Returns 0, -FI_EAGAIN if no request is free, or -FI_EINVAL for an unknown
 * source address.
 */
ssize_t core_rx_post(struct core_ep *ep, const struct core_recv *r);

/** Cold half of core_rx_post_buf (core_post.h). */
ssize_t core_rx_post_buf_cold(struct core_ep *ep, void *buf, size_t len, fi_addr_t src,
			      uint64_t tag, uint64_t ignore, void *context, uint64_t flags,
			      bool tagged);

/**
 * Implements FI_PEEK, with FI_CLAIM or FI_DISCARD in r->flags. Writes a completion without bytes
 * for the message found, or an error completion FI_ENOMSG. A claimed message stays until
 * core_rx_claim is called with the same context.
 */
ssize_t core_rx_peek(struct core_ep *ep, const struct core_recv *r);

/** Receives the message claimed with r->context, or drops it (FI_DISCARD). */
ssize_t core_rx_claim(struct core_ep *ep, const struct core_recv *r);

/**
 * Cancels the oldest posted receive with `context`. Returns 0 after one FI_ECANCELED completion, or
 * -FI_ENOENT.
 */
int core_rx_cancel(struct core_ep *ep, void *context);

/** Implements core_upcalls.on_msg. */
enum core_rx_verdict core_rx_on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				    uint32_t len, core_retain_t retain);

/** Cancels all posted receives, with one FI_ECANCELED completion each. */
void core_rx_flush(struct core_ep *ep);

/** Ends incomplete messages of a failed peer, and receives directed at it, with an error. */
void core_rx_fail_peer(struct core_peer *peer, int err);
/**
 * Ends the oldest tagged and the oldest untagged receive from any source, of a shared context too,
 * with `err`. Called when unknown messages of a live peer may be lost: without it such a receive
 * might never complete.
 */
void core_rx_fail_lost(struct core_ep *ep, int err);
/** Directs receives at `peer` that were directed at its other address. */
void core_rx_merge_peers(struct core_peer *alias, struct core_peer *peer);
/** Detaches unexpected messages from a peer that is about to be freed. */
void core_rx_forget_peer(struct core_peer *peer);
/** Drops receives and messages without completions. */
void core_rx_drop_all(struct core_ep *ep);

#endif
