/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is remembered of an operation that has not ended?
 *
 * core_tx_req	a send that could not complete on the spot
 * core_rx_req	a posted receive
 * core_unexp	a message that arrived (or began to) and is not finished: unexpected, or its bytes
 *		are still coming. It never changes identity: matching it only gives it a destination.
 *
 * All from the endpoint's pools; owned by core/.
 */
#ifndef CORE_REQ_H
#define CORE_REQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/core_chan.h"
#include "core/msg/core_match.h"
#include "core/core_op.h"
#include "core/msg/core_rx.h"
#include "util/list.h"

#define CORE_TX_IOV_MAX 4
#define CORE_NO_ID      UINT32_MAX

enum core_tx_state {
	CORE_TX_QUEUED, /* nothing was sent: waits for its turn, room, credit or the connection */
	CORE_TX_PIPELINED, /* PART is out, CONT follow as room permits; ends with the last one */
	CORE_TX_REPLY,     /* the call is out; ends with its reply, which may ask for parts */
	CORE_TX_PULLED,    /* CONT follow as room permits; the last one is a call: CONFIRM */
	CORE_TX_CONFIRM    /* ends with the reply to that call */
};

struct core_tx_req {
	struct core_op op;
	enum core_tx_state state;
	bool tagged;
	bool silent;
	uint32_t send_id; /* in ep->tx_ids, or CORE_NO_ID */
	uint32_t recv_id; /* PULLED: the receiver's name for it */
	size_t iov_cnt;
	size_t len;
	size_t sent; /* bytes that left in parts */
	uint64_t tag;
	uint64_t data;
	uint64_t flags;
	void *context;
	struct core_exposure exposure; /* our memory is announced to the peer */
	void *copy;                    /* the bytes of an injected message, or NULL */
	struct iovec iov[CORE_TX_IOV_MAX];
};

static inline struct core_tx_req *core_tx_req_of(struct core_op *op)
{
	return UTIL_CONTAINER_OF(op, struct core_tx_req, op);
}

/** Where a message's bytes go, and who is told. */
struct core_dest {
	struct core_rx_req *multi; /* the multi-receive buffer it is a part of, or NULL */
	bool silent;               /* FI_DISCARD: the bytes go nowhere, nobody is told */
	void *context;
	uint64_t flags; /* FI_COMPLETION as posted */
	size_t len;     /* room */
	size_t iov_cnt;
	struct iovec iov[CORE_RX_IOV_MAX];
};

/** One buffer, an ordinary receive. */
static inline void core_rx_dest_init(struct core_dest *dest, void *context, uint64_t flags,
				     void *buf, size_t len)
{
	dest->multi = NULL;
	dest->silent = false;
	dest->context = context;
	dest->flags = flags;
	dest->len = len;
	dest->iov_cnt = 1;
	dest->iov[0].iov_base = buf;
	dest->iov[0].iov_len = len;
}

/** match.seq of a multi-receive buffer that is not in the matcher yet. */
#define CORE_RX_UNPOSTED UINT64_MAX

struct core_rx_req {
	struct core_match_recv match;
	bool tagged;
	bool is_multi;    /* FI_MULTI_RECV: dest is what is left of the buffer */
	bool retired;     /* multi: takes no more messages */
	uint32_t pending; /* multi: messages on their way into it */
	size_t multi_len; /* multi: length as posted */
	struct core_dest dest;
};

/** Bytes of a message that stay in the ring: over budget. */
struct core_retained {
	struct util_list link;
	core_retain_t retain;
	const uint8_t *data;
	uint32_t len;
};

#define CORE_UNEXP_INLINE 64 /* unexpected messages up to this size need no second allocation */

struct core_unexp {
	struct core_match_msg match; /* in a matcher while unexpected */
	struct core_ep *ep;
	struct core_peer *peer;      /* NULL once the peer is gone */
	struct util_list peer_link;  /* core_peer.rx */
	struct util_list claim_link; /* core_ep.claimed: FI_CLAIM took it out of its matcher */
	uint32_t op;
	uint32_t send_id; /* PART: the sender's name for it */
	uint32_t recv_id; /* in ep->rx_ids, or CORE_NO_ID */
	bool queued;      /* in a matcher */
	bool matched;     /* dest is set */
	bool answer;      /* a call waits for our reply: ref */
	struct core_call_ref ref;
	uint64_t tag;
	uint64_t data;
	uint64_t total;    /* bytes of the whole message */
	uint64_t received; /* of them, in order */
	uint64_t addr;     /* RNDV */
	uint64_t key;
	uint8_t *buf;    /* unexpected bytes: inline_buf or heap, NULL if none are kept */
	size_t heap_len; /* counted in dom->unexpected_used */
	struct util_list
		retained; /* core_retained.link, in order: bytes left in the ring instead */
	void *claim;      /* context of the FI_CLAIM */
	struct core_get get;
	struct core_dest dest;
	uint8_t inline_buf[CORE_UNEXP_INLINE];
};

#endif
