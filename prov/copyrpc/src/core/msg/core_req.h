/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Records of messages in progress, from the pools of the endpoint.
 *
 * core_tx_req	a send that did not complete in the call
 * core_rx_req	a posted receive
 * core_unexp	a message that has arrived at least in part and is not finished: unexpected, or
 *		matched with bytes to come. Matching sets its destination, the record stays.
 */
#ifndef CORE_MSG_CORE_REQ_H
#define CORE_MSG_CORE_REQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/core_chan.h"
#include "core/core_op.h"
#include "core/core_tags.h"
#include "core/msg/core_match.h"
#include "core/msg/core_rx.h"
#include "util/list.h"

struct core_done;

#define CORE_TX_IOV_MAX 4
#define CORE_NO_ID      UINT32_MAX

enum core_tx_state {
	CORE_TX_QUEUED,    /* nothing sent: waits for its turn, room, credit or the connection */
	CORE_TX_PIPELINED, /* PART sent, CONT follow as room permits; ends with the last one */
	CORE_TX_REPLY,     /* call sent; ends with its reply, or continues as PULLED */
	CORE_TX_KEPT,      /* the reply was KEPT: as REPLY, with a DONE for the reply */
	CORE_TX_DONE,      /* DONE has overtaken that reply, with which the request ends */
	CORE_TX_PULLED,    /* CONT follow as room permits; the last one is a call: CONFIRM */
	CORE_TX_CONFIRM,   /* last CONT sent as a call; ends with its reply */
	CORE_TX_OFFLOADED, /* request sent to the peer's device (core_offload.h) */
	CORE_TX_UNMATCHED, /* likewise, and the peer keeps it, as no receive matches */
};

struct core_tx_req {
	struct core_op op;
	enum core_tx_state state;
	bool tagged;
	bool silent;
	bool announced;   /* by RNDV: the peer may request parts */
	bool injected;    /* `copy` counts in core_ep.tx_copied */
	uint32_t send_id; /* in ep->tx_ids, or CORE_NO_ID */
	uint32_t recv_id; /* PULLED, DONE: id of the message at the receiver */
	uint32_t status;  /* DONE: of the message */
	size_t iov_cnt;
	size_t len;
	size_t sent;       /* bytes sent in PART and CONT frames */
	uint64_t start_ns; /* start of a timed message (core_tx_selector.h), else 0 */
	uint64_t tag;
	uint64_t data;
	uint64_t flags;
	void *context;
	struct core_exposure exposure; /* of the send buffer, for a rendezvous get */
	struct core_tags_send listed;  /* OFFLOADED, UNMATCHED: the device's */
	void *copy;                    /* heap: the bytes, injected or joined, or NULL */
	struct iovec iov[CORE_TX_IOV_MAX];
};

static inline struct core_tx_req *core_tx_req_of(struct core_op *op)
{
	return UTIL_CONTAINER_OF(op, struct core_tx_req, op);
}

/** Destination of a message: receive buffer and completion. */
struct core_dest {
	struct core_rx_req *multi; /* multi-receive buffer that contains it, or NULL */
	void *context;
	/* FI_COMPLETION as posted; FI_DISCARD: the bytes are dropped, without a completion */
	uint64_t flags;
	size_t len; /* sum of iov */
	size_t iov_cnt;
	struct iovec iov[CORE_RX_IOV_MAX];
};

/** Initializes the destination of an ordinary receive into one buffer. */
static inline void core_rx_dest_init(struct core_dest *dest, void *context, uint64_t flags,
				     void *buf, size_t len)
{
	dest->multi = NULL;
	dest->context = context;
	dest->flags = flags;
	dest->len = len;
	dest->iov_cnt = 1;
	dest->iov[0].iov_base = buf;
	dest->iov[0].iov_len = len;
}

/** Value of match.seq of a multi-receive buffer that is not in the matcher yet. */
#define CORE_RX_UNPOSTED UINT64_MAX

struct core_rx_req {
	struct core_match_recv match;
	/* FI_MULTI_RECV: dest is the unused rest of the buffer. Undefined in a tagged receive. */
	bool is_multi;
	bool retired;     /* multi: accepts no more messages */
	uint32_t pending; /* multi: matched messages that have not completed */
	size_t multi_len; /* multi: length as posted */
	struct core_dest dest;
};

/** Bytes of a message that stay in the ring because the budget is used up. */
struct core_retained {
	struct util_list link;
	core_retain_t retain;
	const uint8_t *data;
	uint32_t len;
};

#define CORE_UNEXP_INLINE 64 /* bytes of an unexpected message stored in its record */

struct core_unexp {
	struct core_match_msg match; /* in a matcher while unexpected */
	struct core_ep *ep;
	struct core_peer *peer;     /* NULL after the peer was freed, or with `err` */
	struct util_list peer_link; /* core_peer.rx */
	/* core_ep.claimed: removed from its matcher by FI_CLAIM; or core_offload_peer.gets */
	struct util_list claim_link;
	uint32_t op;
	int err;                /* claimed: why bytes of it are lost; else 0 */
	uint32_t send_id;       /* PART, RNDV, SYNC: id of the message at the sender */
	uint32_t recv_id;       /* in ep->rx_ids, or CORE_NO_ID */
	bool queued;            /* in a matcher */
	bool late;              /* was in a matcher: no receive was posted when it arrived */
	bool matched;           /* dest is set */
	bool pulled;            /* counted in peer->pulls */
	bool reply_due;         /* the sender's call `ref` has no reply yet */
	bool held;              /* likewise, and counted in peer->held_cnt */
	bool offloaded;         /* RNDV: by a device; send_id is its id, and the reply goes by it */
	struct core_done *done; /* to send at the end: the reply was WIRE_STATUS_KEPT; or NULL */
	struct core_call_ref ref;
	uint64_t tag;
	uint64_t data;
	uint64_t total;    /* bytes of the whole message */
	uint64_t received; /* bytes that have arrived, in order */
	uint64_t addr;     /* RNDV: exposed memory of the sender */
	uint64_t key;
	uint8_t *buf;              /* unexpected bytes: inline_buf or heap; NULL: none */
	size_t heap_len;           /* counted in dom->unexpected_used */
	struct util_list retained; /* core_retained.link, in order: bytes left in the ring */
	void *claim;               /* context of the FI_CLAIM */
	struct core_get get;
	struct core_dest dest;
	uint8_t inline_buf[CORE_UNEXP_INLINE];
};

#endif
