/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Piggybacked acks: batches acknowledge the peer's batches and replace empty responses. Called by
 * erpc_respond.c, erpc_batch.h and rx/.
 *
 * Each batch carries `ack`: all the peer's batches before it need no response. An empty response
 * waits up to ERPC_PIGGYBACK_NS for a batch to take its ack along. The process may compute instead
 * while the peer waits for the ack. So acks wait only after ERPC_PIGGYBACK_TRUST quick replies in a
 * row. Each ack that no batch took along costs ERPC_PIGGYBACK_SINGLE quick replies, or
 * ERPC_PIGGYBACK_AWAY after a long delay. Every ERPC_PIGGYBACK_SAMPLE-th batch is responded to at
 * once to measure the round trip, and so are all while credits or rate could delay a batch.
 *
 * For its slot a waiting response is given: a repeated request gets it, and the peer may begin the
 * next request. It remains empty. If a batch was responded to with bytes, `ack` passes it once the
 * peer begins another request in its slot, or a batch that is ERPC_SLOTS further.
 */
#ifndef ERPC_TX_ERPC_PIGGYBACK_H
#define ERPC_TX_ERPC_PIGGYBACK_H

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"
#include "util/bits.h"

#define ERPC_PIGGYBACK_NS      20000u
#define ERPC_PIGGYBACK_MAX     3 /* acks of a session that may wait */
#define ERPC_PIGGYBACK_SAMPLE  32u
#define ERPC_PIGGYBACK_TRUST   4
#define ERPC_PIGGYBACK_SINGLE  8
#define ERPC_PIGGYBACK_AWAY    128
#define ERPC_PIGGYBACK_AWAY_NS 100000u

/**
 * Makes the empty response to the batch in rx[slot] wait for a batch. Returns false if it must not.
 */
bool erpc_piggyback_begin(struct erpc_session *s, uint32_t slot);

/** Returns true if neither credits nor rate would delay a batch. */
static inline bool erpc_piggyback_is_open(const struct erpc_session *s)
{
	return 2 * s->flow.credits > s->credit_max && !s->paced;
}

/** Returns `ack` for a batch that leaves, and ends the wait of the acks that it takes along. */
static inline uint32_t erpc_piggyback_take(struct erpc_session *s)
{
	s->last_batch_ns = s->ep->running ? s->ep->now_ns : 0;
	if (s->ack.wait_mask && erpc_piggyback_is_open(s)) {
		s->ack.wait_mask = 0;
		s->trust.piggybacked = true;
		util_list_remove(&s->piggyback_link);
	}
	return s->ack.seq;
}

/** Handles the peer's `ack`: ends batches before it. Returns NULL or the violation. */
const char *erpc_piggyback_received(struct erpc_session *s, uint32_t ack);

/** Notes the delivery of batch `seq`: batches ERPC_SLOTS before it are acknowledged. */
void erpc_piggyback_passed_cold(struct erpc_session *s, uint32_t seq);

static inline void erpc_piggyback_passed(struct erpc_session *s, uint32_t seq)
{
	if (UTIL_UNLIKELY(seq - s->ack.seq >= ERPC_SLOTS || s->ack.acked_mask))
		erpc_piggyback_passed_cold(s, seq);
}

/** Advances `ack` over all acknowledged batches. */
void erpc_piggyback_advance_cold(struct erpc_session *s);

/** Notes that the peer has the response to rx[slot], or that the response is empty. */
void erpc_piggyback_acked(struct erpc_session *s, uint32_t slot);

/** Ends the wait of an ack in a slot in which the peer begins another request. */
void erpc_piggyback_forget_cold(struct erpc_session *s, uint32_t slot);

/** Notes that the peer begins another request in `slot`, so it has the previous response. */
static inline void erpc_piggyback_forget(struct erpc_session *s, uint32_t slot)
{
	if (slot >= ERPC_BATCH_SLOTS)
		return;
	if (s->rx[slot].resp && s->rx[slot].seq == s->ack.seq && !s->ack.acked_mask)
		s->ack.seq++;
	else if (s->rx[slot].resp)
		erpc_piggyback_acked(s, slot);
	if (UTIL_UNLIKELY((s->ack.wait_mask | s->ack.empty_mask) & 1u << slot))
		erpc_piggyback_forget_cold(s, slot);
}

/** Ends the wait of all acks; erpc_piggyback_flush sends empty responses. */
void erpc_piggyback_end(struct erpc_session *s);

/** Does that for sessions with an expired wait; `all`: for all sessions. */
void erpc_piggyback_overdue(struct erpc_ep *ep, bool all);

/**
 * Sends due empty responses. Returns false without room in the burst. Part of erpc_respond_flush.
 */
bool erpc_piggyback_flush(struct erpc_session *s);

#endif
