/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Responses to batches, and replies in them. Called by the delivery of batches and by the flush of
 * a session.
 *
 * A batch without calls is responded to at the end of the progress call that delivered it, or by a
 * piggybacked ack (erpc_piggyback.h). A batch with calls waits for their replies, which its
 * response carries: two packets for a call and its reply. It waits at most ERPC_REPLY_WAIT_NS, and
 * not beyond a progress call that ends with a reply ready. Later or longer replies are a request of
 * their own (REPLIES), which nothing delays. So a call may be replied to at any time.
 *
 * A CR acknowledges all request packets of a progress call together, unless the response does.
 * An endpoint that paces sends one for each packet, as each measures a round trip.
 *
 * While core retains more than ERPC_RETAINED_MAX bytes of a session, responses wait for a release:
 * the peer runs out of slots and waits.
 *
 * Tested in test/unit/erpc/test_erpc_ep.c.
 */
#ifndef ERPC_TX_ERPC_RESPOND_H
#define ERPC_TX_ERPC_RESPOND_H

#include "erpc/base/erpc_session.h"
#include "erpc/tx/erpc_piggyback.h"

/** Queues the response to a delivered batch; `calls`: the batch had some. */
void erpc_respond_soon(struct erpc_session *s, uint32_t slot, bool calls);

/** Responds to a delivered batch, by a packet or by a piggybacked ack. */
static inline void erpc_respond_delivered(struct erpc_session *s, uint32_t slot, bool calls)
{
	s->rx[slot].resp_type = WIRE_ERPC_PROMPT;
	if (calls || s->resp.retained_len > ERPC_RETAINED_MAX || !erpc_piggyback_begin(s, slot))
		erpc_respond_soon(s, slot, calls);
}

/** Responds to a request at once, with an empty response. */
void erpc_respond_empty(struct erpc_session *s, uint32_t slot);

/**
 * Sends packet `pkt_num` of a slot's response, or a CR. Returns false without room in the burst.
 */
bool erpc_respond_packet(struct erpc_session *s, uint32_t slot, uint16_t pkt_num,
			 enum wire_erpc_kind kind);

/**
 * Sends `cnt` packets of a slot's response from `first` on. Those without room in the burst are
 * lost: the client requests them again.
 */
void erpc_respond_run(struct erpc_session *s, uint32_t slot, uint32_t first, uint32_t cnt);

/** Acknowledges a packet of a request before its last. */
void erpc_respond_part(struct erpc_session *s, uint32_t slot);

/**
 * Reports to the client that packet `pkt_num` of a request is missing. Without room the client
 * times out.
 */
void erpc_respond_gap(struct erpc_session *s, uint64_t req_num, uint32_t pkt_num);

/** Reports that a batch is complete and waits for an earlier one. Without room as above. */
void erpc_respond_kept(struct erpc_session *s, uint32_t slot);

/** Returns true if there is a response or a reply to send. */
static inline bool erpc_respond_has_some(const struct erpc_session *s)
{
	return s->ack.empty_mask | s->resp.wait_mask | s->resp.due_mask | s->resp.cr_mask |
	       (s->send.waits & ERPC_WAITS_REPLIES);
}

/** Sends responses and replies. Part of erpc_session_flush. */
void erpc_respond_flush(struct erpc_session *s);

/** Ends the wait for a release, if enough was released. */
void erpc_respond_released(struct erpc_session *s);

/** Ends the expired waits for replies. */
void erpc_respond_overdue(struct erpc_ep *ep);

#endif
