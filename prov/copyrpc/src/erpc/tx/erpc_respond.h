/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When is a batch answered, and how do answers to calls travel?
 *
 * A batch without calls is answered at the end of the progress call that delivered it, or a batch of ours
 * takes its answer along (erpc_piggyback.h). One with calls waits for
 * their answers, which then ride in its response: two packets for a call and its answer. It waits
 * no longer than ERPC_REPLY_WAIT_NS, and not at all once any answer is ready at the end of a progress
 * call. What comes later, or does not fit into a packet, goes as a request of its own (REPLIES),
 * which nothing can keep waiting. So a call may be answered whenever its taker likes.
 *
 * Where core holds more than ERPC_RETAINED_MAX bytes of a session, the answer waits until it has
 * released some: its peer has no slot for more then, and waits with what is its own.
 *
 * Shown by test/unit/erpc/test_erpc_ep.c.
 */
#ifndef ERPC_RESPOND_H
#define ERPC_RESPOND_H

#include "erpc/erpc_session.h"
#include "erpc/tx/erpc_piggyback.h"

/** A batch was delivered; `calls`: it had some. Its answer has a packet of its own, or takes others along. */
void erpc_respond_soon(struct erpc_session *s, uint32_t slot, bool calls);

/** A batch was delivered: it is answered by a packet, or by a batch of ours. */
static inline void erpc_respond_delivered(struct erpc_session *s, uint32_t slot, bool calls)
{
	s->rx[slot].resp_type = WIRE_ERPC_PROMPT;
	if (calls || s->retained_len > ERPC_RETAINED_MAX || !erpc_piggyback_begin(s, slot))
		erpc_respond_soon(s, slot, calls);
}

/** A request that is answered at once, with nothing. */
void erpc_respond_empty(struct erpc_session *s, uint32_t slot);

/** Sends packet `pkt_num` of what slot answers: false: no room in the burst. */
bool erpc_respond_packet(struct erpc_session *s, uint32_t slot, uint16_t pkt_num,
			 enum wire_erpc_kind kind);

/** Tells the client that packet `pkt_num` of a request is missing. Without room it will find out. */
void erpc_respond_gap(struct erpc_session *s, uint64_t req_num, uint32_t pkt_num);

/** Tells the client that a batch is whole, and that it waits for one before it. Without room: as above. */
void erpc_respond_kept(struct erpc_session *s, uint32_t slot);

/** Is there an answer that has not left? */
static inline bool erpc_respond_has_some(const struct erpc_session *s)
{
	return s->empty_mask | s->wait_mask | s->due_mask || !util_list_is_empty(&s->replies);
}

/** Part of erpc_session_flush. */
void erpc_respond_flush(struct erpc_session *s);

/** Something that was held was released. */
void erpc_respond_released(struct erpc_session *s);

/** Batches that waited long enough. */
void erpc_respond_overdue(struct erpc_ep *ep);

#endif
