/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What becomes of a message that one frame does not carry, or that is to be confirmed?
 *
 * The other side of core_tx_bulk.h. Its beginning meets a receive or is kept, as any message; what comes behind
 * it is its own, in order, until it is whole.
 *
 * Shown by test/unit/core/msg/test_core_rx_bulk.c.
 */
#ifndef CORE_RX_BULK_H
#define CORE_RX_BULK_H

#include "core/core_chan.h"
#include "core/msg/core_unexp.h"

/** PART: a message begins; CONT: it goes on. */
enum core_rx_verdict core_rx_first_segment(struct core_peer *peer, struct core_head *head,
					   core_retain_t retain);
enum core_rx_verdict core_rx_cont(struct core_peer *peer, struct core_head *head,
				  core_retain_t retain);

/** Calls: RNDV announces one, DLVR carries a whole one, CONT the end of one that was asked for. */
enum core_rx_verdict core_rx_announced(struct core_peer *peer, struct core_call_ref ref,
				       struct core_head *head);
enum core_rx_verdict core_rx_deliver(struct core_peer *peer, struct core_call_ref ref,
				     struct core_head *head, core_retain_t retain);
enum core_rx_verdict core_rx_last_cont(struct core_peer *peer, struct core_call_ref ref,
				       struct core_head *head, core_retain_t retain);

/* core_rx.c */
/** Takes the oldest receive that a message of `total` bytes may have, or of the shared context: false: none. */
bool core_rx_take(struct core_peer *peer, const struct core_head *head, uint64_t total,
		  struct core_dest *dest);
/** Queues an unexpected message. */
void core_rx_keep(struct core_ep *ep, struct core_unexp *in, bool tagged);

#endif
