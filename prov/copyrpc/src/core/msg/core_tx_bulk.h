/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Send side of messages that need more than one frame or a reply. Called by core_tx.c, core_op.c.
 *
 *   deliver     DLVR or SYNC call with the bytes; ends with its reply, at arrival or match
 *   pipelined   PART with the first bytes, CONT with the rest; ends with the last one accepted
 *   rendezvous  RNDV call with the address; ends with the reply after the receiver's get. A reply
 *               WIRE_STATUS_PULL requests CONT frames instead, the last of them as a call.
 * The reply to a RNDV or SYNC that no receive matches may be WIRE_STATUS_KEPT, at once: the request
 * keeps its place among the operations, holds no credit, and DONE brings what the reply would have
 * brought (core_done.h).
 *
 * First frames are in order, and none follows while CONT frames are left to send: the peer may have
 * no memory for further messages, which then stay in its ring until their receives, and those of a
 * message that its user waits for would find no room there. CONT frames of several messages may
 * interleave.
 *
 * Where the kernel copies for the peer's get, the protocol selector decides (core_tx_selector.h).
 * A process that shares its processor (util/switches.h) pipelines up to CORE_TX_PIPELINED_MAX.
 */
#ifndef CORE_MSG_CORE_TX_BULK_H
#define CORE_MSG_CORE_TX_BULK_H

#include "core/core_chan.h"
#include "core/core_head.h"
#include "core/core_peer.h"
#include "core/msg/core_req.h"

/** Longest pipelined message where no time is known; longer ones use rendezvous. */
#define CORE_TX_PIPELINED_MAX (64u << 10)
/** Shortest message whose protocol is selected by measurement (core_tx_selector.h). */
#define CORE_TX_SELECTED_MIN 1024u
/** Longest message whose pieces may be joined in one buffer to expose it. */
#define CORE_TX_JOIN_MAX (16u << 20)
/** User bytes of one frame: small enough that both ends copy at the same time. */
#define CORE_TX_SEGMENT_LEN (8u << 10)

/** Completion levels that end a send with the receiver's reply. Rendezvous has both. */
#define CORE_TX_REPLY_FLAGS (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)

bool core_tx_is_bulk(const struct core_peer *peer, size_t len, uint64_t flags);

/** Returns true if `req`, one buffer, would go by a rendezvous whose bytes the peer gets. */
bool core_tx_is_rndv(const struct core_peer *peer, const struct core_tx_req *req);

/** Exposes the send buffer, once even if the call is retried. Returns false if that fails. */
bool core_tx_expose(struct core_tx_req *req);

/** Sends the first frame of `req` (state QUEUED). Returns 0, or the error of the channel. */
int core_tx_bulk_start(struct core_tx_req *req);

/* Callbacks of struct core_op_ops. */
int core_tx_bulk_stream(struct core_op *op);
void core_tx_bulk_on_reply(struct core_op *op, int status, const uint8_t *data, uint32_t len);

/** Takes the end of a kept message (core_handler.on_msg). */
enum core_rx_verdict core_tx_bulk_on_done(struct core_chan *chan, struct core_head *head,
					  core_retain_t retain);

/** Ends the exposure of the send buffer, if there is one. */
void core_tx_unexpose(struct core_tx_req *req);

/* core_tx.c */
void core_tx_fill_ext(struct core_frame *frame, uint64_t tag, uint64_t data, uint64_t flags,
		      bool tagged);
/** Ends and frees a request that the channel has accepted; its completion may be pending. */
void core_tx_end_accepted(struct core_tx_req *req);
/** Ends and frees a request with a completion (err = 0) or an error completion. */
void core_tx_end(struct core_tx_req *req, int err);

#endif
