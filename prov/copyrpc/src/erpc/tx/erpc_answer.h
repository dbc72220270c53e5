/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When is a batch answered, and how do answers to calls travel?
 *
 * A batch without calls is answered at the end of the progress call that delivered it, or a batch of ours
 * takes its answer along (erpc_piggyback.h). One with calls waits for
 * their answers, which then ride in its response: two packets for a call and its answer. It waits
 * no longer than ERPC_ANSWER_NS, and not at all once any answer is ready at the end of a progress
 * call. What comes later, or does not fit into a packet, goes as a request of its own (REPLIES),
 * which nothing can keep waiting. So a call may be answered whenever its taker likes.
 *
 * Where core holds more than ERPC_HELD_MAX bytes of a session, the answer waits until it has
 * released some: its peer has no slot for more then, and waits with what is its own.
 *
 * Shown by test/unit/erpc/test_erpc_port.c.
 */
#ifndef ERPC_ANSWER_H
#define ERPC_ANSWER_H

#include "erpc/erpc_session.h"
#include "erpc/tx/erpc_piggyback.h"

/** A batch was delivered; `calls`: it had some. Its answer has a packet of its own, or takes others along. */
void erpc_answer_soon(struct erpc_session *s, uint32_t slot, bool calls);

/** A batch was delivered: it is answered by a packet, or by a batch of ours. */
static inline void erpc_answer_delivered(struct erpc_session *s, uint32_t slot, bool calls)
{
	s->rx[slot].said = WIRE_ERPC_PROMPT;
	if (calls || s->held_len > ERPC_HELD_MAX || !erpc_piggyback_begin(s, slot))
		erpc_answer_soon(s, slot, calls);
}

/** A request that is answered at once, with nothing. */
void erpc_answer_empty(struct erpc_session *s, uint32_t slot);

/** Sends packet `pkt_num` of what slot answers: false: no room in the burst. */
bool erpc_answer_packet(struct erpc_session *s, uint32_t slot, uint16_t pkt_num,
			enum wire_erpc_kind kind);

/** Tells the client that packet `pkt_num` of a request is missing. Without room it will find out. */
void erpc_answer_gap(struct erpc_session *s, uint64_t req_num, uint32_t pkt_num);

/** Tells the client that a batch is whole, and that it waits for one before it. Without room: as above. */
void erpc_answer_kept(struct erpc_session *s, uint32_t slot);

/** Is there an answer that has not left? */
static inline bool erpc_answer_has_some(const struct erpc_session *s)
{
	return s->alone_mask | s->wait_mask | s->due_mask || !util_list_is_empty(&s->replies);
}

/** Part of erpc_session_flush. */
void erpc_answer_flush(struct erpc_session *s);

/** Something that was held was released. */
void erpc_answer_released(struct erpc_session *s);

/** Batches that waited long enough. */
void erpc_answer_overdue(struct erpc_port *port);

#endif
