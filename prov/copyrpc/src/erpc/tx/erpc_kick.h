/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transmit loop of a session's client side. Called by the flush of a session, and by rx/ for
 * acknowledgements and losses.
 *
 * Requests begin in a free slot. Packets leave while there are credits, room in the burst and,
 * below the link's rate, time (Timely; the wheel spreads a session's packets). Each obstacle brings
 * the session here again when it ends: a response returns credits and slots, the next progress
 * makes room, the wheel expires.
 *
 * A request of one packet, the common case, leaves at once without this loop, if permitted
 * (erpc_kick_now). Packet and state equal those of the loop.
 *
 * Tested in test/unit/erpc/test_erpc_ep.c, tx/test_erpc_kick.c and tx/test_erpc_kick_now.c.
 */
#ifndef ERPC_TX_ERPC_KICK_H
#define ERPC_TX_ERPC_KICK_H

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"
#include "erpc/tx/erpc_loss.h"
#include "util/bits.h"
#include "util/stats.h"

#define ERPC_FREE_ALL ((1u << ERPC_SLOTS) - 1)

/**
 * Begins a request from `buf` in a free slot; its packets leave with the next erpc_kick. Returns
 * false if it has too many packets with a response of up to resp_max.
 */
bool erpc_kick_begin(struct erpc_session *s, uint32_t slot, uint8_t type, struct erpc_buf *buf,
		     uint32_t resp_max);

/** Sends what may be sent of slots with packets. */
void erpc_kick_pending(struct erpc_session *s);

static inline void erpc_kick(struct erpc_session *s)
{
	if (s->send.pending_mask)
		erpc_kick_pending(s);
}

/**
 * Ends a request: frees its slot and returns its credits. Returns the buffer, which the caller
 * frees.
 */
static inline struct erpc_buf *erpc_kick_end(struct erpc_session *s, uint32_t slot)
{
	struct erpc_tx *tx = &s->tx[slot];
	struct erpc_buf *buf = tx->buf;

	if (UTIL_UNLIKELY(tx->out.unsent))
		erpc_out_forget(&s->ep->out, &tx->out);
	s->flow.credits += erpc_client_end(&tx->c);
	s->send.free_mask |= 1u << slot;
	s->send.pending_mask &= ~(1u << slot);
	tx->buf = NULL;
	if (!(~s->send.free_mask & ERPC_BATCH_MASK))
		/* no batch is in flight: the next message may leave at once */
		s->flow.end = s->flow.fill;
	if (s->send.free_mask == ERPC_FREE_ALL)
		s->flow.watch_ns = 0;
	return buf;
}

/** Counts the packets of a slot in flight as lost and rewinds it. */
void erpc_kick_go_back(struct erpc_session *s, uint32_t slot);

/** Handles progress of a slot: restarts its timeout and takes the round trip, if measured. */
void erpc_kick_acked(struct erpc_session *s, struct erpc_tx *tx, const struct wire_erpc_hdr *h);

/** Notes a response packet behind a missing one. After ERPC_EARLY_MAX of them that one is lost. */
void erpc_kick_early(struct erpc_session *s, uint32_t slot);

/** Handles KEPT: the peer has this batch and waits for `missing`, low bits of an earlier seq. */
void erpc_kick_kept(struct erpc_session *s, uint32_t slot, uint32_t missing);

/** Sends the first packet in flight and those behind it again, at most once per round trip. */
void erpc_kick_missing(struct erpc_session *s, uint32_t slot);

/** Gives the time of this progress call to packets sent since the last one. */
void erpc_kick_stamp(struct erpc_ep *ep);

/** Queues sessions with an expired pacing timer. */
void erpc_kick_wheel(struct erpc_ep *ep);

/* ---- requests of one packet that leave at once ---- */

/** Sets the state of a new request in a free slot, without its packets. */
static inline void erpc_kick_init(struct erpc_session *s, uint32_t slot, uint8_t type,
				  struct erpc_buf *buf)
{
	struct erpc_tx *tx = &s->tx[slot];

	tx->buf = buf;
	tx->sent_ns = s->ep->now_ns;
	tx->c.window = ERPC_CREDITS_MAX;
	s->send.free_mask &= ~(1u << slot);
	tx->tries = 0;
	tx->type = type;
	tx->is = (struct erpc_tx_state){ .prompt = type != WIRE_ERPC_GET && !buf->has_calls };
}

/**
 * Adds the only packet of a request to the burst, for the first time. The caller took the credit.
 */
static inline void erpc_kick_first_packet(struct erpc_session *s, struct erpc_tx *tx, uint8_t type,
					  struct erpc_buf *buf)
{
	struct erpc_ep *ep = s->ep;
	uint32_t len = buf->len;
	struct wire_erpc_hdr h = {
		.req_type = type,
		.msg_size = len,
		.session = s->peer_num,
		.kind = WIRE_ERPC_REQ,
		.req_num = tx->c.req_num,
		.tag = s->peer_tag,
	};

	erpc_client_first(&tx->c);
	tx->sent_ns = ep->now_ns;
	tx->pkt_seq = ++s->flow.pkts_sent;
	tx->rtt_pkt = 0;
	tx->rtt_start_ns = ep->running ? ep->now_ns : 0;
	tx->is.rtt_pending = true;
	util_stats_add(&ep->stats->tx_pkts, 1);
	erpc_out_put_first(&ep->out, s->ah, buf, len, &h, &tx->out);
	erpc_loss_watch(s);
}

/** Returns true if a request of `len` bytes with a response of one packet may leave at once. */
static inline bool erpc_kick_may_now(const struct erpc_session *s, uint32_t len)
{
	const struct erpc_ep *ep = s->ep;

	return len <= s->payload && s->flow.credits && !s->send.pending_mask &&
	       ep->out.cnt < ERPC_BURST && !s->paced;
}

/** Notes that a packet needs the time of the next progress, if sent between two calls. */
static inline void erpc_kick_note_fresh(struct erpc_session *s)
{
	if (s->ep->running || s->flow.fresh)
		return;
	s->flow.fresh = true;
	erpc_set_add(&s->ep->fresh, s);
}

/** Begins a request in a free slot with its packet in the burst. Requires erpc_kick_may_now. */
UTIL_INLINE void erpc_kick_now(struct erpc_session *s, uint32_t slot, uint8_t type,
			       struct erpc_buf *buf, uint32_t resp_max)
{
	struct erpc_tx *tx = &s->tx[slot];

	s->flow.credits--;
	erpc_client_begin_single(&tx->c, resp_max);
	erpc_kick_init(s, slot, type, buf);
	erpc_kick_note_fresh(s);
	erpc_kick_first_packet(s, tx, type, buf);
}

#endif
