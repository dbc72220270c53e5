/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When does an empty answer need no packet of its own?
 *
 * Where messages go both ways, each batch says which of the peer's batches need no answer any more:
 * all before `ack`, in order. So the answer to a batch waits a little for one of ours that takes it
 * along. It waits no longer than ERPC_PIGGYBACK_NS if progress is called. But who heard something may go
 * away and compute, and somebody may wait for the answer. So answers wait only with those who
 * replied quickly so often in a row (ERPC_PIGGYBACK_TRUST); each that had to leave alone costs many
 * quick replies more, and most where its time was over for long. Every ERPC_PIGGYBACK_SAMPLE-th batch is
 * answered at once, for its round trip; so is what the credits or the rate of what is to take it
 * along might stop.
 *
 * An answer that waits is given already, for all that its slot knows: a repeated request gets it, and
 * the peer may begin another one. It stays empty. Where a batch was answered with bytes, `ack`
 * passes it when the peer has begun something else in its slot, or a batch that is 8 further.
 *
 * Shown by test/unit/erpc/tx/test_erpc_piggyback.c.
 */
#ifndef ERPC_PIGGYBACK_H
#define ERPC_PIGGYBACK_H

#include "erpc/erpc_ep.h"
#include "erpc/erpc_session.h"
#include "util/bits.h"

#define ERPC_PIGGYBACK_NS      20000u
#define ERPC_PIGGYBACK_MAX     3 /* answers of a session that wait */
#define ERPC_PIGGYBACK_SAMPLE  32u
#define ERPC_PIGGYBACK_TRUST   4
#define ERPC_PIGGYBACK_SINGLE  8
#define ERPC_PIGGYBACK_AWAY    128
#define ERPC_PIGGYBACK_AWAY_NS 100000u

/** rx[slot] is delivered and has an empty answer: true: it waits for a batch of ours. */
bool erpc_piggyback_begin(struct erpc_session *s, uint32_t slot);

/** Would a batch that leaves now leave at once? */
static inline bool erpc_piggyback_is_open(const struct erpc_session *s)
{
	return 2 * s->credits > s->credits_max &&
	       (!s->ep->paces || erpc_timely_is_open(&s->timely));
}

/** A batch of ours leaves: its `ack`. */
static inline uint32_t erpc_piggyback_take(struct erpc_session *s)
{
	s->last_batch_tx_ns = s->ep->running ? s->ep->now_ns : 0;
	if (s->piggyback_mask && erpc_piggyback_is_open(s)) {
		s->piggyback_mask = 0;
		s->piggybacked = true;
		util_list_remove(&s->piggyback_link);
	}
	return s->ack;
}

/** The peer's `ack`: its batches of ours are over. NULL, or what is wrong with it. */
const char *erpc_piggyback_received(struct erpc_session *s, uint32_t ack);

/** Batch `seq` of the peer's is delivered: of those that are 8 before it, it has the answer. */
void erpc_piggyback_passed_cold(struct erpc_session *s, uint32_t seq);

static inline void erpc_piggyback_passed(struct erpc_session *s, uint32_t seq)
{
	if (UTIL_UNLIKELY(seq - s->ack >= ERPC_SLOTS || s->acked_mask))
		erpc_piggyback_passed_cold(s, seq);
}

/** Moves on over all that are known. */
void erpc_piggyback_advance_cold(struct erpc_session *s);

/** The peer has the answer to rx[slot], or will know it to be empty. */
void erpc_piggyback_acked(struct erpc_session *s, uint32_t slot);

/** The peer begins another request in `slot`: our answer, which waits to ride, is known. */
void erpc_piggyback_forget_cold(struct erpc_session *s, uint32_t slot);

/** It begins one: what it was answered with is there. */
static inline void erpc_piggyback_forget(struct erpc_session *s, uint32_t slot)
{
	if (slot >= ERPC_BATCH_SLOTS)
		return;
	if (s->rx[slot].resp && s->rx[slot].seq == s->ack && !s->acked_mask)
		s->ack++;
	else if (s->rx[slot].resp)
		erpc_piggyback_acked(s, slot);
	if (UTIL_UNLIKELY((s->piggyback_mask | s->empty_mask) & 1u << slot))
		erpc_piggyback_forget_cold(s, slot);
}

/** What waits is to leave alone, with the next erpc_piggyback_flush. */
void erpc_piggyback_end(struct erpc_session *s);

/** Those of sessions that waited long enough; `all`: of any. */
void erpc_piggyback_overdue(struct erpc_ep *ep, bool all);

/** Part of erpc_respond_flush: false: no room in the burst. */
bool erpc_piggyback_flush(struct erpc_session *s);

#endif
