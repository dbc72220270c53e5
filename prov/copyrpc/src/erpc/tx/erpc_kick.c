/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_kick.h. */
#include "erpc/tx/erpc_kick.h"

#include <stddef.h>
#include <string.h>

#include "erpc/tx/erpc_loss.h"
#include "util/bits.h"
#include "util/probe.h"
#include "util/stats.h"

bool erpc_kick_begin(struct erpc_session *s, uint32_t slot, uint8_t type, struct erpc_buf *buf,
		     uint32_t resp_max)
{
	struct erpc_tx *tx = &s->tx[slot];

	if (UTIL_LIKELY(buf->len <= s->payload && resp_max <= s->payload))
		erpc_client_begin_single(&tx->c, resp_max);
	else if (!erpc_client_begin(&tx->c, buf->len, resp_max))
		return false;
	erpc_kick_init(s, slot, type, buf);
	s->send.pending_mask |= 1u << slot;
	return true;
}

/**
 * Cancels the round trips of batches. Batches are acknowledged in order, so after a loss their
 * delay does not measure the network.
 */
static void erpc_kick_measure_none(struct erpc_session *s)
{
	uint32_t slot;

	for (slot = 0; slot < ERPC_BATCH_SLOTS; slot++) {
		struct erpc_tx *tx = &s->tx[slot];

		/* All packets but the last are acknowledged at once. */
		tx->is.rtt_pending &= tx->rtt_pkt + 1 < tx->c.req_pkts;
	}
}

void erpc_kick_go_back(struct erpc_session *s, uint32_t slot)
{
	struct erpc_tx *tx = &s->tx[slot];

	UTIL_PROBE3(retransmit, s->conn.chan.stats, slot, erpc_client_in_flight(&tx->c));
	s->conn.chan.stats->losses++;
	if (s->ep->paces) {
		erpc_timely_lost(&s->time.timely, s->ep->now_ns);
		erpc_session_note_rate(s, true);
	}
	s->flow.credits += erpc_client_go_back(&tx->c);
	s->send.pending_mask |= 1u << slot;
	tx->is.rtt_pending = false;
	if (slot < ERPC_BATCH_SLOTS)
		erpc_kick_measure_none(s);
	tx->is.early = 0;
	tx->is.went_back = true;
	tx->is.overtaken = false;
	tx->sent_ns = s->ep->now_ns;
	if (tx->buf)
		tx->buf->resent = true;
	s->lossy = true;
	erpc_session_mark(s);
}

/** Returns true if Timely permits a packet now, else puts the session into the wheel. */
static bool erpc_kick_may(struct erpc_session *s)
{
	struct erpc_ep *ep = s->ep;

	if (UTIL_LIKELY(!s->paced) || s->time.next_ns <= ep->now_ns)
		return true;
	if (util_list_is_empty(&s->time.pace.link)) {
		erpc_wheel_insert(&ep->wheel, &s->time.pace, s->time.next_ns, ep->now_ns);
		erpc_ep_due_at(ep, erpc_wheel_next_ns(&ep->wheel));
	}
	s->conn.chan.stats->paced++;
	return false;
}

/**
 * Returns the bytes that a packet puts on the link: its own, or those of the response part that it
 * requests.
 */
static uint32_t erpc_kick_load(const struct erpc_session *s, const struct erpc_tx *tx, uint32_t len,
			       uint16_t pkt_num)
{
	uint32_t part = pkt_num - (tx->c.req_pkts - 1);

	if (tx->get_op)
		len = wire_erpc_pkt_len(tx->c.resp_max, s->payload, part);
	return len + WIRE_ERPC_HDR_LEN;
}

/** Computes when the rate permits the packet after one of `len` bytes. */
static void erpc_kick_pay(struct erpc_session *s, const struct erpc_tx *tx, uint32_t len,
			  uint16_t pkt_num)
{
	if (s->paced)
		s->time.next_ns =
			erpc_timely_next_ns(&s->time.timely, s->time.next_ns, s->ep->now_ns,
					    erpc_kick_load(s, tx, len, pkt_num));
}

/** Notes that `n` packets of the get in `slot` are requested, for direct placement. */
static inline void erpc_kick_note_get(struct erpc_session *s, uint32_t slot, uint32_t n)
{
	while (n--) {
		erpc_gets_set_pkt(&s->gets, s->gets.pkts_at + s->gets.pkts_cnt, slot);
		if (s->gets.pkts_cnt < ERPC_GET_PKTS_MAX)
			s->gets.pkts_cnt++;
		else
			s->gets.pkts_at++;
	}
}

/** Returns true if the next packet of a slot may request several parts of the response. */
static inline bool erpc_kick_requests(const struct erpc_session *s, const struct erpc_tx *tx)
{
	if (s->paced)
		return false;
	return tx->c.tx ? tx->c.tx >= tx->c.req_pkts : tx->type == WIRE_ERPC_GET && !tx->c.tx_max;
}

/**
 * Returns the number of credits that the next packet of a slot takes: a new GET and an RFR request
 * as many parts as credits and window permit.
 */
static inline uint32_t erpc_kick_run(const struct erpc_session *s, const struct erpc_tx *tx)
{
	const struct erpc_client *c = &tx->c;
	uint32_t n, window;

	if (UTIL_LIKELY(!erpc_kick_requests(s, tx)))
		return 1;
	n = erpc_client_sendable(c);
	window = c->window - erpc_client_in_flight(c);
	n = n < window ? n : window;
	n = n < s->flow.credits ? n : s->flow.credits;
	return n < WIRE_ERPC_RUN_MAX ? n : WIRE_ERPC_RUN_MAX;
}

/**
 * Returns true if the next parts of a GET are requested later, together with further ones: few have
 * room, and so many of the session are in flight that the peer does not run out of them meanwhile.
 */
static inline bool erpc_kick_run_waits(const struct erpc_session *s, const struct erpc_tx *tx,
				       uint32_t run)
{
	uint32_t most = tx->c.window < s->credit_max ? tx->c.window : s->credit_max;

	return tx->type == WIRE_ERPC_GET && !s->paced && run < most / 4 &&
	       run < erpc_client_sendable(&tx->c) && s->credit_max - s->flow.credits > most / 2;
}

/** Makes a GET request `more` parts behind the first. */
static inline void erpc_kick_more(struct erpc_buf *buf, uint32_t more)
{
	memcpy(buf->data + offsetof(struct wire_erpc_get, more), &more, sizeof(more));
}

/** Sends the next packet of a slot, which takes `run` credits. */
static void erpc_kick_packet(struct erpc_session *s, struct erpc_tx *tx, uint32_t run)
{
	struct erpc_out *out = &s->ep->out;
	struct erpc_client *c = &tx->c;
	struct erpc_buf *buf = tx->buf;
	struct wire_erpc_hdr h = {
		.req_type = tx->type,
		.session = s->peer_num,
		.req_num = c->req_num,
		.tag = s->peer_tag,
	};
	bool again = c->tx < c->tx_max;
	uint32_t len = 0;

	s->flow.pkts_sent += run;
	tx->pkt_seq = s->flow.pkts_sent;
	util_stats_add(&s->ep->stats->tx_pkts, 1);
	util_stats_add(&s->conn.chan.stats->resent, again);
	if (!erpc_client_in_flight(c)) {
		tx->sent_ns = s->ep->now_ns;
		erpc_loss_watch(s);
	}
	h.kind = erpc_client_next(c, &h.pkt_num);
	if (h.kind == WIRE_ERPC_REQ) {
		h.msg_size = buf->len;
		len = wire_erpc_pkt_len(buf->len, s->payload, h.pkt_num);
	} else {
		h.msg_size = run - 1;
	}
	if (UTIL_UNLIKELY(tx->get_op)) {
		erpc_client_next_run(c, run - 1);
		erpc_kick_note_get(s, (uint32_t)(tx - s->tx), run);
		if (h.kind == WIRE_ERPC_REQ && !again)
			erpc_kick_more(buf, run - 1);
	}
	if (!h.pkt_num)
		erpc_out_put_first(out, s->ah, buf, len, &h, &tx->out);
	else
		erpc_out_put(out, s->ah, &h, buf->data + (size_t)h.pkt_num * s->payload * !!len,
			     len, buf->mem, buf, &tx->out);
	if (!tx->is.rtt_pending && !again) {
		tx->is.rtt_pending = true;
		tx->rtt_pkt = h.pkt_num;
		tx->rtt_start_ns = s->ep->running ? s->ep->now_ns : 0;
	}
	erpc_kick_pay(s, tx, len, h.pkt_num);
}

/** Sends the only packet of a request for the first time, like erpc_kick_packet. */
static void erpc_kick_first(struct erpc_session *s, struct erpc_tx *tx)
{
	erpc_kick_first_packet(s, tx, tx->type, tx->buf);
	erpc_kick_pay(s, tx, tx->buf->len, 0);
}

/** Sends the packets of a slot. Returns false if the session may send no more. */
static bool erpc_kick_slot(struct erpc_session *s, uint32_t slot)
{
	struct erpc_tx *tx = &s->tx[slot];
	uint32_t run;

	while (erpc_client_sendable(&tx->c)) {
		if (erpc_client_is_full(&tx->c))
			return true;
		if (!s->flow.credits) {
			s->conn.chan.stats->no_credit++;
			UTIL_PROBE2(wait, s->conn.chan.stats, UTIL_PROBE_CREDIT);
			return false; /* a response returns one */
		}
		if (!erpc_kick_may(s))
			return false;
		if (!erpc_out_room(&s->ep->out)) {
			erpc_session_mark(s);
			return false;
		}
		run = erpc_kick_run(s, tx);
		if (UTIL_UNLIKELY(erpc_kick_run_waits(s, tx, run)))
			return true;
		s->flow.credits -= run;
		if (UTIL_LIKELY(!tx->c.tx_max && tx->c.req_pkts == 1 && tx->type != WIRE_ERPC_GET))
			erpc_kick_first(s, tx);
		else
			erpc_kick_packet(s, tx, run);
	}
	s->send.pending_mask &= ~(1u << slot);
	return true;
}

/** Serves slots in turn, so that a long request does not delay short ones. */
static void erpc_kick_turns(struct erpc_session *s)
{
	uint32_t wants = s->send.pending_mask, slot;

	for (wants = (wants >> s->next_slot | wants << (ERPC_SLOTS - s->next_slot)) & ERPC_FREE_ALL;
	     wants; wants &= wants - 1) {
		slot = (s->next_slot + (uint32_t)__builtin_ctz(wants)) % ERPC_SLOTS;
		if (!erpc_kick_slot(s, slot)) {
			s->next_slot = (uint8_t)((slot + 1) % ERPC_SLOTS);
			return;
		}
	}
}

void erpc_kick_pending(struct erpc_session *s)
{
	uint32_t wants = s->send.pending_mask;

	erpc_kick_note_fresh(s);
	if (UTIL_LIKELY(!(wants & (wants - 1)))) {
		uint32_t slot = (uint32_t)__builtin_ctz(wants);

		if (!erpc_kick_slot(s, slot) && slot != ERPC_REPLY_SLOT)
			s->next_slot = (uint8_t)((slot + 1) % ERPC_SLOTS);
		return;
	}
	/* Replies first: the peer's callers wait for them. */
	if ((wants & 1u << ERPC_REPLY_SLOT) && !erpc_kick_slot(s, ERPC_REPLY_SLOT))
		return;
	erpc_kick_turns(s);
}

void erpc_kick_kept(struct erpc_session *s, uint32_t slot, uint32_t missing)
{
	uint32_t busy = ~s->send.free_mask & ERPC_BATCH_MASK;
	struct erpc_tx *kept = &s->tx[slot];

	/* KEPT is sent at once, so it measures the round trip; the response will be delayed. */
	if (kept->is.rtt_pending && kept->rtt_pkt == kept->c.req_pkts - 1 &&
	    s->ep->now_ns > kept->rtt_start_ns)
		erpc_rto_sample(&s->flow.rto, s->ep->now_ns - kept->rtt_start_ns);
	kept->is.rtt_pending = false;
	kept->is.kept = true;
	for (; busy; busy &= busy - 1) {
		uint32_t before = (uint32_t)__builtin_ctz(busy);
		struct erpc_tx *tx = &s->tx[before];

		if ((tx->seq & WIRE_ERPC_MSG_MAX) != missing)
			continue;
		/* The missing batch may be unsent, or sent after this one and still in flight. */
		if (erpc_client_sendable(&tx->c) || (int32_t)(tx->pkt_seq - kept->pkt_seq) > 0)
			return;
		tx->is.overtaken = true;
		erpc_kick_early(s, before);
		return;
	}
}

/** Ends a series of time-outs: the full window may be in flight again. */
static void __attribute__((noinline))
erpc_kick_recovered_cold(struct erpc_session *s, struct erpc_tx *tx)
{
	if (!erpc_loss_is_certain(s))
		erpc_rto_keep(&s->flow.rto, tx->tries);
	tx->tries = 0;
	tx->c.window = tx->type == WIRE_ERPC_GET ? (uint16_t)s->get_window : ERPC_CREDITS_MAX;
}

/**
 * Takes a round trip that contains the time that an end was away, or that a response waited for a
 * release. It may be very long, and where most packets are repeated few samples shorten the timeout
 * again. So it counts as ERPC_LATE_NS at most, and for an end that is always away as twice the
 * usual one.
 */
static void __attribute__((noinline))
erpc_kick_sample_late_cold(struct erpc_session *s, const struct wire_erpc_hdr *h, uint64_t rtt_ns)
{
	uint64_t most_ns = ERPC_LATE_NS, twice_ns = 2ull * s->flow.rto.srtt_ns;

	if (h->req_type != WIRE_ERPC_LATE && twice_ns > most_ns)
		most_ns = twice_ns;
	erpc_rto_sample(&s->flow.rto, rtt_ns < most_ns ? rtt_ns : most_ns);
}

void erpc_kick_acked(struct erpc_session *s, struct erpc_tx *tx, const struct wire_erpc_hdr *h)
{
	uint64_t now_ns = s->ep->now_ns, rtt_ns;

	tx->sent_ns = now_ns;
	tx->is.early = 0;
	tx->is.went_back = false;
	if (UTIL_UNLIKELY(tx->tries))
		erpc_kick_recovered_cold(s, tx);
	if (!tx->is.rtt_pending || h->pkt_num < tx->rtt_pkt)
		return;
	tx->is.rtt_pending = false;
	if ((h->pkt_num > tx->rtt_pkt && s->ep->paces) || now_ns <= tx->rtt_start_ns ||
	    (h->req_type > WIRE_ERPC_LATE && h->req_type != WIRE_ERPC_AWAY))
		return;
	if (tx->rtt_start_ns > s->flow.acked_tx_ns)
		s->flow.acked_tx_ns = tx->rtt_start_ns;
	rtt_ns = now_ns - tx->rtt_start_ns;
	if (UTIL_UNLIKELY(h->req_type || s->ep->away)) { /* does not measure the network */
		erpc_kick_sample_late_cold(s, h, rtt_ns);
		return;
	}
	erpc_rto_sample(&s->flow.rto, rtt_ns);
	if (!s->ep->paces)
		return;
	if (erpc_timely_may_skip(&s->ep->timely_cfg, s->paced, rtt_ns))
		return;
	erpc_timely_update(&s->time.timely, now_ns, rtt_ns);
	erpc_session_note_rate(s, true);
}

void erpc_kick_missing(struct erpc_session *s, uint32_t slot)
{
	struct erpc_tx *tx = &s->tx[slot];

	erpc_loss_note(s);
	if (!erpc_client_in_flight(&tx->c) || tx->out.unsent)
		return;
	/* A report from before the retransmission is out of date. */
	if (tx->is.went_back && s->ep->now_ns - tx->sent_ns < s->flow.rto.srtt_ns)
		return;
	erpc_kick_go_back(s, slot);
}

void erpc_kick_early(struct erpc_session *s, uint32_t slot)
{
	struct erpc_tx *tx = &s->tx[slot];

	if (tx->is.early < ERPC_EARLY_MAX)
		tx->is.early++;
	if (tx->is.early == ERPC_EARLY_MAX)
		erpc_kick_missing(s, slot);
}

/** Gives the time to the packets of a session. */
static inline void erpc_kick_stamp_one(struct erpc_session *s, uint64_t now_ns)
{
	uint32_t busy;

	s->flow.fresh = false;
	if (!s->last_batch_ns)
		s->last_batch_ns = now_ns;
	for (busy = ~s->send.free_mask & ERPC_FREE_ALL; busy; busy &= busy - 1) {
		struct erpc_tx *tx = &s->tx[__builtin_ctz(busy)];

		if (tx->is.rtt_pending && !tx->rtt_start_ns) {
			tx->rtt_start_ns = now_ns;
			tx->sent_ns = now_ns;
		}
	}
}

void erpc_kick_stamp(struct erpc_ep *ep)
{
	for (uint32_t i = 0; i < ep->fresh.cnt; i++)
		erpc_kick_stamp_one(ep->fresh.at[i], ep->now_ns);
	ep->fresh.cnt = 0;
}

void erpc_kick_wheel(struct erpc_ep *ep)
{
	struct util_list ready, *first;

	util_list_init(&ready);
	erpc_wheel_advance(&ep->wheel, ep->now_ns, &ready);
	while ((first = util_list_pop(&ready)))
		erpc_session_mark(
			UTIL_CONTAINER_OF(UTIL_CONTAINER_OF(first, struct erpc_wheel_item, link),
					  struct erpc_session, time.pace));
}
