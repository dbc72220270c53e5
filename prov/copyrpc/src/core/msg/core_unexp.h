/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Records of messages that were not delivered in the up-call that brought them. Called by
 * core_rx.c, core_rx_bulk.c, core_rx_post.c and core_srx.c.
 *
 * A record is unexpected (in a matcher, its bytes in memory or retained in the ring), or matched
 * with bytes to come (CONT frames, or a get in progress). Life:
 *
 *   new -> keep (unexpected) -> match -> bytes complete -> end
 *       \---------------------> match /
 *
 * Shown by test/unit/core/msg/test_core_rx*.c.
 */
#ifndef CORE_MSG_CORE_UNEXP_H
#define CORE_MSG_CORE_UNEXP_H

#include "core/core_head.h"
#include "core/core_peer.h"
#include "core/msg/core_req.h"
#include "core/msg/core_rx.h"

/** Returns a record for a message of `total` bytes from `peer`, or NULL. */
struct core_unexp *core_unexp_new(struct core_peer *peer, const struct core_head *head,
				  uint64_t total);

/** Frees a record, its bytes, retained ranges and ids. Sends no reply. */
void core_unexp_free(struct core_unexp *in);

/** Drops what is due to the sender, whose channel is down. */
void core_unexp_forget_sender(struct core_unexp *in);

/**
 * Replies to a sender that requested confirmation (FI_DELIVERY_COMPLETE) once all bytes are here,
 * matched or kept. Replies to one that awaits the match (RNDV, SYNC) that its message is kept, if
 * it is in a matcher and many of the peer are. Else does nothing.
 */
void core_unexp_confirm(struct core_unexp *in);

/**
 * Adds `len` bytes, in order: to the destination, or to memory within the budget, or retained in
 * the ring (CORE_RX_RETAIN). Ends the message when it is complete and matched.
 */
enum core_rx_verdict core_unexp_bytes(struct core_unexp *in, const uint8_t *data, uint32_t len,
				      core_retain_t retain);

/** Sets the destination: copies the bytes that are here; starts the get of a rendezvous message. */
void core_unexp_match(struct core_unexp *in, const struct core_dest *dest);

/** Starts the get of a matched rendezvous message, or requests its bytes in parts. */
void core_unexp_get(struct core_unexp *in);

/** Ends a matched message with `err` (0 or -FI_E*): reply, completion; frees the record. */
void core_unexp_end(struct core_unexp *in, int err);

/** Drops an unexpected message (FI_DISCARD). Its sender sees a delivered message. */
void core_unexp_discard(struct core_unexp *in);

/**
 * Ends an unexpected message whose sender has failed with bytes to come. One that is claimed stays
 * until its receive, which ends with `err`.
 */
void core_unexp_lose(struct core_unexp *in, int err);

/** Copies retained bytes into memory before the channel is closed. Returns 0 or -FI_ENOMEM. */
int core_unexp_save(struct core_unexp *in);

/** Frees a multi-receive buffer of `rx`, with a completion of its own at `ep`. */
void core_rx_multi_end(struct core_ep *rx, struct core_ep *ep, struct core_rx_req *req);

/** Sets `dest` to the next part of a multi-receive buffer, for a message of `total` bytes. */
void core_rx_multi_take(struct core_ep *ep, struct core_rx_req *req, uint64_t total,
			struct core_dest *dest);

/** Ends the receives directed at a failed peer. */
void core_rx_fail_directed(struct core_peer *peer, int err);

/** Completes a receive with `err` (0 or -FI_E*): completion, counters, multi-receive buffer. */
void core_dest_complete(struct core_ep *ep, const struct core_dest *dest,
			const struct core_head *head, uint64_t total, fi_addr_t src, int err);

#endif
