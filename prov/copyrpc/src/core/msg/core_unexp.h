/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What becomes of a message that is not finished where it arrived?
 *
 * It is unexpected (in a matcher, its bytes in memory or retained in the ring), or matched with bytes
 * still to come (parts, or a fetch on its way). Life:
 *
 *   new -> keep (unexpected) -> match -> bytes complete -> end
 *       \---------------------> match /
 *
 * Shown by test/unit/core/msg/test_core_unexp.c.
 */
#ifndef CORE_UNEXP_H
#define CORE_UNEXP_H

#include "core/core_peer.h"
#include "core/msg/core_req.h"
#include "core/msg/core_rx.h"

/** A decoded message head: what on_msg and on_call have in common. */
struct core_head {
	uint32_t op;
	bool tagged;
	bool has_data;
	uint64_t tag;
	uint64_t data;
	const uint8_t *body; /* behind tag and data */
	uint32_t body_len;
};

/** Decodes tag and data as the operation's flags say. False: not legal. */
bool core_head_parse(struct core_head *head, uint32_t op, const uint8_t *data, uint32_t len);

/** A record for a message from `peer` with `total` bytes; or NULL. */
struct core_unexp *core_unexp_new(struct core_peer *peer, const struct core_head *head,
				  uint64_t total);

/** Frees a record: bytes, holds, ids. Answers nobody. */
void core_unexp_free(struct core_unexp *in);

/**
 * Tells a sender that wants to know (FI_DELIVERY_COMPLETE) that all of its message is here: matched or
 * kept, it is the receiver's from now on. Nothing for a message that is not whole, or still to be fetched.
 */
void core_unexp_confirm(struct core_unexp *in);

/**
 * `len` more bytes, in order: into the destination, or kept (memory within the budget, else they
 * stay in the ring: CORE_RX_RETAIN). Ends the message when it is complete and matched.
 */
enum core_rx_verdict core_unexp_bytes(struct core_unexp *in, const uint8_t *data, uint32_t len,
				      core_retain_t retain);

/** Puts the message into `dest`: what is there is copied, the rest is fetched or asked for. */
void core_unexp_match(struct core_unexp *in, const struct core_dest *dest);

/** The end: answers the sender, tells the receiver (err = 0 or -FI_E*), frees the record. */
void core_unexp_end(struct core_unexp *in, int err);

/** Drops an unexpected message as if it had been received into nothing (FI_DISCARD). */
void core_unexp_discard(struct core_unexp *in);

/** Copies what is retained in the ring into memory: the channel is about to go. -FI_ENOMEM. */
int core_unexp_save(struct core_unexp *in);

/** The next part of a multi-receive buffer, for a message of `total` bytes. */
void core_rx_multi_take(struct core_ep *ep, struct core_rx_req *req, uint64_t total,
			struct core_dest *dest);

/** Ends the receives directed at a peer that died. */
void core_rx_fail_directed(struct core_peer *peer, int err);

/** The receiver is told: completion or error completion, counters, multi-receive bookkeeping. */
void core_dest_complete(struct core_ep *ep, const struct core_dest *dest,
			const struct core_head *head, uint64_t total, fi_addr_t src, int err);

#endif
