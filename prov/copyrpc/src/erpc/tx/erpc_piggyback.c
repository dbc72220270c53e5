/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_piggyback.h. */
#include "erpc/tx/erpc_piggyback.h"

#include "erpc/tx/erpc_kick.h"
#include "erpc/tx/erpc_respond.h"
#include "erpc/tx/erpc_send.h"
#include "util/bits.h"

/* ---- the value of `ack` ---- */

void erpc_piggyback_advance_cold(struct erpc_session *s)
{
	while (s->ack.acked_mask & 1u << s->ack.seq % ERPC_SLOTS) {
		s->ack.acked_mask &= ~(1u << s->ack.seq % ERPC_SLOTS);
		s->ack.seq++;
	}
}

void erpc_piggyback_acked(struct erpc_session *s, uint32_t slot)
{
	uint32_t seq = s->rx[slot].seq;

	if (seq - s->ack.seq >= ERPC_SLOTS)
		return; /* passed already */
	s->ack.acked_mask |= 1u << seq % ERPC_SLOTS;
	erpc_piggyback_advance_cold(s);
}

void erpc_piggyback_passed_cold(struct erpc_session *s, uint32_t seq)
{
	while (seq - s->ack.seq >= ERPC_SLOTS) {
		s->ack.acked_mask &= ~(1u << s->ack.seq % ERPC_SLOTS);
		s->ack.seq++;
	}
	erpc_piggyback_advance_cold(s);
}

/** Advances `ack` over the next batch. */
static inline void erpc_piggyback_acked_next(struct erpc_session *s)
{
	s->ack.seq++;
	if (UTIL_UNLIKELY(s->ack.acked_mask))
		erpc_piggyback_advance_cold(s);
}

/* ---- acks to the peer ---- */

/** Returns the penalty for an ack that no batch took along, by the delay beyond a quick reply. */
static int32_t erpc_piggyback_cost(uint64_t late_ns)
{
	return late_ns > ERPC_PIGGYBACK_AWAY_NS ? -ERPC_PIGGYBACK_AWAY : -ERPC_PIGGYBACK_SINGLE;
}

/** Samples, at a delivery, whether the previous batch was replied to quickly. */
static void erpc_piggyback_sample(struct erpc_session *s)
{
	uint64_t gap_ns = s->last_batch_ns - s->trust.last_rx_ns;

	if (s->last_batch_ns >= s->trust.last_rx_ns) {
		if (gap_ns <= ERPC_PIGGYBACK_NS)
			s->trust.quick_replies += s->trust.quick_replies < ERPC_PIGGYBACK_TRUST;
		else if (s->trust.piggybacked)
			s->trust.quick_replies = erpc_piggyback_cost(gap_ns - ERPC_PIGGYBACK_NS);
		else if (s->trust.quick_replies > 0)
			s->trust.quick_replies = 0;
	}
	s->trust.piggybacked = false;
	s->trust.last_rx_ns = s->ep->now_ns;
}

/** Returns true if ERPC_PIGGYBACK_MAX bits are set. */
static inline bool erpc_piggyback_is_full(uint32_t mask)
{
	mask &= mask - 1;
	return mask & (mask - 1);
}

bool erpc_piggyback_begin(struct erpc_session *s, uint32_t slot)
{
	struct erpc_rx *rx = &s->rx[slot];

	erpc_piggyback_sample(s);
	if (s->trust.quick_replies < ERPC_PIGGYBACK_TRUST || s->ack.seq != rx->seq ||
	    !(rx->seq % ERPC_PIGGYBACK_SAMPLE) || erpc_piggyback_is_full(s->ack.wait_mask) ||
	    !erpc_piggyback_is_open(s))
		return false;
	erpc_server_respond_empty(&rx->s);
	rx->resp_type = WIRE_ERPC_LATE;
	erpc_piggyback_acked_next(s);
	if (!s->ack.wait_mask) {
		s->ack_until_ns = s->ep->now_ns + ERPC_PIGGYBACK_NS;
		util_list_push_back(&s->ep->piggybacking, &s->piggyback_link);
		erpc_ep_due_at(s->ep, s->ack_until_ns);
	}
	s->ack.wait_mask |= 1u << slot;
	return true;
}

void erpc_piggyback_forget_cold(struct erpc_session *s, uint32_t slot)
{
	s->ack.empty_mask &= ~(1u << slot);
	s->ack.wait_mask &= ~(1u << slot);
	if (!s->ack.wait_mask)
		util_list_remove(&s->piggyback_link);
}

void erpc_piggyback_end(struct erpc_session *s)
{
	if (!s->ack.wait_mask)
		return;
	s->trust.quick_replies = erpc_piggyback_cost(
		s->ep->now_ns > s->ack_until_ns ? s->ep->now_ns - s->ack_until_ns : 0);
	s->ack.empty_mask |= s->ack.wait_mask;
	s->ack.wait_mask = 0;
	util_list_remove(&s->piggyback_link);
	erpc_session_mark(s);
}

void erpc_piggyback_overdue(struct erpc_ep *ep, bool all)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &ep->piggybacking) {
		struct erpc_session *s = UTIL_CONTAINER_OF(it, struct erpc_session, piggyback_link);

		if (!all && s->ack_until_ns > ep->now_ns)
			return;
		erpc_piggyback_end(s);
	}
}

bool erpc_piggyback_flush(struct erpc_session *s)
{
	for (; UTIL_UNLIKELY(s->ack.empty_mask); s->ack.empty_mask &= s->ack.empty_mask - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(s->ack.empty_mask);
		uint16_t last = (uint16_t)(s->rx[slot].s.req_pkts - 1);

		if (erpc_respond_packet(s, slot, last, WIRE_ERPC_RESP))
			continue;
		erpc_session_mark(s);
		return false;
	}
	return true;
}

/* ---- acks from the peer ---- */

const char *erpc_piggyback_received(struct erpc_session *s, uint32_t ack)
{
	uint32_t busy = ~s->send.free_mask & ERPC_BATCH_MASK;

	if (UTIL_UNLIKELY((int32_t)(s->send.seq - ack) < 0))
		return "an acknowledgement of a batch that was not sent";
	if ((int32_t)(ack - s->send.seq_done) <= 0)
		return NULL;
	for (; busy && !s->err; busy &= busy - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(busy);
		struct erpc_tx *tx = &s->tx[slot];

		if ((int32_t)(ack - tx->seq) <= 0)
			continue;
		if (UTIL_UNLIKELY(tx->c.tx_max < tx->c.req_pkts))
			return "an acknowledgement of a batch that was not sent";
		erpc_buf_free(&s->ep->bufs, erpc_kick_end(s, slot));
		erpc_session_freed(s);
		s->ep->stats->piggybacks++;
		erpc_send_acked(s, tx->seq);
	}
	return NULL;
}
