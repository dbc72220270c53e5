/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a message leave that one frame cannot carry, or whose delivery must be confirmed?
 *
 *   deliver  DLVR call with the bytes; ends with its reply
 *   parts    PART with the first bytes, CONT with the rest; ends with the last one accepted
 *   fetch    RNDV call with the address; the receiver fetches and replies, or its reply
 *	      asks for CONT parts, the last of which is a call; ends with the reply
 * CONT frames of several messages to one peer may interleave; the first frames are in order.
 *
 * Shown by test/unit/core/msg/test_core_tx_bulk.c.
 */
#ifndef CORE_TX_BULK_H
#define CORE_TX_BULK_H

#include "core/core_chan.h"
#include "core/core_peer.h"
#include "core/msg/core_req.h"

/** Up to here parts are sent unasked even where the receiver cannot fetch. */
#define CORE_TX_PIPELINED_MAX (64u << 10)
/** User bytes of one part: small enough that both ends copy at the same time. */
#define CORE_TX_SEGMENT_LEN (8u << 10)

bool core_tx_is_bulk(const struct core_peer *peer, size_t len, uint64_t flags);

/** First frame of `req` (state QUEUED): 0, or -FI_EAGAIN and nothing happened. */
int core_tx_bulk_start(struct core_tx_req *req);

/* What struct core_op_ops wants of it. */
int core_tx_bulk_stream(struct core_op *op);
void core_tx_bulk_on_reply(struct core_op *op, int status, const uint8_t *data, uint32_t len);

/** Our memory is no longer the peer's to fetch. Harmless if it never was. */
void core_tx_unexpose(struct core_tx_req *req);

/* core_tx.c */
void core_tx_fill_ext(struct core_frame *frame, uint64_t tag, uint64_t data, uint64_t flags,
		      bool tagged);
/** All of a request has left without a call: it ends when that has arrived. It is gone. */
void core_tx_end_accepted(struct core_tx_req *req);
/** The end of a request: completion (err = 0) or error completion, and it is gone. */
void core_tx_end(struct core_tx_req *req, int err);

#endif
