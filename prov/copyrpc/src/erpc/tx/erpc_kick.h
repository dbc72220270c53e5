/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a session send now? Requests begin in a free slot; packets leave while there are credits, room in
 * the burst, and time (Timely: below the link's rate a session's packets are spread by the wheel).
 *
 * What keeps a packet back, brings the session here again: an answer brings credits and slots, the
 * next progress call brings room, the wheel brings time.
 *
 * Shown by test/unit/erpc/test_erpc_ep.c.
 */
#ifndef ERPC_KICK_H
#define ERPC_KICK_H

#include "erpc/erpc_ep.h"
#include "erpc/erpc_session.h"
#include "util/bits.h"

#define ERPC_FREE_ALL ((1u << ERPC_SLOTS) - 1)

/**
 * Begins a request from `buf` in a free slot: its packets leave with the next kick. False: with a
 * response of up to resp_max it has too many packets.
 */
bool erpc_kick_begin(struct erpc_session *s, uint32_t slot, uint8_t type, struct erpc_buf *buf,
		     uint32_t resp_max);

/** Sends what may be sent, of slots that have something. */
void erpc_kick_pending(struct erpc_session *s);

static inline void erpc_kick(struct erpc_session *s)
{
	if (s->send_mask)
		erpc_kick_pending(s);
}

/** A request is over: its slot is free, its credits are back. The buffer is the caller's. */
static inline struct erpc_buf *erpc_kick_end(struct erpc_session *s, uint32_t slot)
{
	struct erpc_tx *tx = &s->tx[slot];
	struct erpc_buf *buf = tx->buf;

	if (UTIL_UNLIKELY(tx->out.unsent))
		erpc_out_forget(&s->ep->out, &tx->out);
	s->credits += erpc_client_end(&tx->c);
	s->free_mask |= 1u << slot;
	s->send_mask &= ~(1u << slot);
	tx->buf = NULL;
	if (!(~s->free_mask & ERPC_BATCH_MASK))
		s->fill_end = s->fill; /* the next message need not wait for others */
	if (s->free_mask == ERPC_FREE_ALL)
		s->watched = false;
	return buf;
}

/** What a slot had in flight counts as lost. */
void erpc_kick_go_back(struct erpc_session *s, uint32_t slot);

/** An answer moved the slot on: the clock of losses starts anew, and a round trip was measured, or not. */
void erpc_kick_acked(struct erpc_session *s, struct erpc_tx *tx, const struct wire_erpc_hdr *h);

/** An answer came, and one before it did not: after ERPC_EARLY_MAX of them that one is lost. */
void erpc_kick_early(struct erpc_session *s, uint32_t slot);

/** The peer has this batch, and waits for one that was sent before it: the low bits of its seq. */
void erpc_kick_kept(struct erpc_session *s, uint32_t slot, uint32_t missing);

/** The first packet in flight is missing, it and those behind it are sent again; within a round trip once. */
void erpc_kick_missing(struct erpc_session *s, uint32_t slot);

/** Packets that left since the last progress call left at its time. */
void erpc_kick_stamp(struct erpc_ep *ep);

/** Sessions whose time has come. */
void erpc_kick_wheel(struct erpc_ep *ep);

#endif
