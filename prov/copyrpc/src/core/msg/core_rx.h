/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where does a message go?
 *
 * Into the oldest receive that accepts it, with one copy; otherwise it is unexpected. Unexpected
 * bytes are copied out of the ring while the domain's budget lasts (FI_COPYRPC_UNEXPECTED_MEM);
 * beyond it they stay where they are, in the sender's ring, which then fills and makes that sender
 * wait: no other peer suffers, nothing is lost, replies still get through.
 */
#ifndef CORE_RX_H
#define CORE_RX_H

#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/core_chan.h"
#include "core/core_ep.h"

/** A receive, as fi_trecvmsg and friends state it. */
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

/** Posts a receive: 0, -FI_EAGAIN (no request), -FI_EINVAL (unknown source address). */
ssize_t core_rx_post(struct core_ep *ep, const struct core_recv *r);

/** The same, said in arguments: what core_post.h leaves. */
ssize_t core_rx_post_buf_cold(struct core_ep *ep, void *buf, size_t len, fi_addr_t src,
			      uint64_t tag, uint64_t ignore, void *context, uint64_t flags,
			      bool tagged);

/**
 * FI_PEEK, with FI_CLAIM or FI_DISCARD in r->flags: writes one completion (found, without data), or one error
 * completion FI_ENOMSG. A claimed message waits for core_rx_claim with the same context.
 */
ssize_t core_rx_peek(struct core_ep *ep, const struct core_recv *r);

/** FI_CLAIM alone: receives the message claimed with r->context, or drops it (FI_DISCARD). */
ssize_t core_rx_claim(struct core_ep *ep, const struct core_recv *r);

/** Cancels the oldest posted receive with `context`: 0 (one FI_ECANCELED completion), -FI_ENOENT. */
int core_rx_cancel(struct core_ep *ep, void *context);

/** The up-calls (core_chan.h). */
enum core_rx_verdict core_rx_on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				    uint32_t len, core_retain_t retain);
enum core_rx_verdict core_rx_on_call(struct core_chan *chan, struct core_call_ref ref,
				     const uint8_t *data, uint32_t len, core_retain_t retain);

/** All of them, and writes FI_ECANCELED for each. */
void core_rx_flush(struct core_ep *ep);

/** Ends what is half received from a peer, and receives directed at it, with an error completion. */
void core_rx_fail_peer(struct core_peer *peer, int err);
/**
 * Messages of a peer that lives may be lost, and nobody knows which: the oldest receive that is open to
 * any source ends with `err`, tagged and not, since it might have waited for one of them for ever.
 */
void core_rx_fail_lost(struct core_ep *ep, int err);
/** The peer is about to be freed: its messages stay, without a sender. */
void core_rx_forget_peer(struct core_peer *peer);
/** Drops everything without completions. */
void core_rx_drop_all(struct core_ep *ep);

#endif
