/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive side of messages that need more than one frame or a reply: pipelined (PART), rendezvous
 * (RNDV), delivery-complete (DLVR) and match-complete (SYNC). Called by core_rx.c; the send side is
 * core_tx_bulk.h.
 *
 * The first frame matches a receive or becomes unexpected. CONT frames follow in order.
 */
#ifndef CORE_MSG_CORE_RX_BULK_H
#define CORE_MSG_CORE_RX_BULK_H

#include "core/core_chan.h"
#include "core/msg/core_unexp.h"

/** Handle PART, the first frame of a pipelined message, and CONT, the next ones. */
enum core_rx_verdict core_rx_on_part(struct core_chan *chan, struct core_head *head,
				     core_retain_t retain);
enum core_rx_verdict core_rx_on_cont(struct core_chan *chan, struct core_head *head,
				     core_retain_t retain);

/**
 * Handle the calls RNDV (announces a message), DLVR and SYNC (carry one) and CONT (last pulled
 * part).
 */
enum core_rx_verdict core_rx_on_rndv(struct core_chan *chan, struct core_call_ref ref,
				     struct core_head *head, core_retain_t retain);
enum core_rx_verdict core_rx_on_dlvr(struct core_chan *chan, struct core_call_ref ref,
				     struct core_head *head, core_retain_t retain);
enum core_rx_verdict core_rx_on_sync(struct core_chan *chan, struct core_call_ref ref,
				     struct core_head *head, core_retain_t retain);
enum core_rx_verdict core_rx_on_last_cont(struct core_chan *chan, struct core_call_ref ref,
					  struct core_head *head, core_retain_t retain);

/* core_rx.c */
/** Takes the oldest receive that accepts the message, of the endpoint or its shared context. */
bool core_rx_take(struct core_peer *peer, const struct core_head *head, uint64_t total,
		  struct core_dest *dest);
/** Queues an unexpected message. */
void core_rx_keep(struct core_ep *ep, struct core_unexp *in, bool tagged);

#endif
