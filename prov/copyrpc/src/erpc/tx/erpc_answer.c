/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Responses and the answers that ride in them: see erpc_answer.h. */
#include "erpc/tx/erpc_answer.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/tx/erpc_kick.h"
#include "erpc/tx/erpc_piggyback.h"
#include "erpc/tx/erpc_send.h"
#include "util/bits.h"

/** What the peer may make of the round trip. */
static uint8_t erpc_answer_said(const struct erpc_session *s, const struct erpc_rx *rx,
				enum wire_erpc_kind kind)
{
	if (kind == WIRE_ERPC_RESP && rx->said != WIRE_ERPC_PROMPT)
		return rx->said;
	return UTIL_UNLIKELY(s->port->away) ? WIRE_ERPC_AWAY : WIRE_ERPC_PROMPT;
}

bool erpc_answer_packet(struct erpc_session *s, uint32_t slot, uint16_t pkt_num,
			enum wire_erpc_kind kind)
{
	struct erpc_out *out = &s->port->out;
	struct erpc_rx *rx = &s->rx[slot];
	struct wire_erpc_hdr h = {
		.req_type = erpc_answer_said(s, rx, kind),
		.session = s->peer_num,
		.kind = kind,
		.pkt_num = pkt_num,
		.req_num = rx->s.req_num,
		.tag = s->peer_tag,
	};
	uint32_t part, len;

	if (!erpc_out_room(out))
		return false;
	s->port->stats.tx_pkts++;
	if (kind == WIRE_ERPC_CR || rx->said == WIRE_ERPC_REFUSED) {
		erpc_out_put(out, s->ah, &h, NULL, 0, NULL, NULL, NULL);
		return true;
	}
	part = erpc_server_part(&rx->s, pkt_num);
	len = wire_erpc_pkt_len(rx->s.resp_size, s->payload, part);
	h.msg_size = rx->s.resp_size;
	s->answered_ns = s->port->now_ns;
	if (rx->resp)
		erpc_out_put_first(out, s->ah, rx->resp, len, &h, &rx->out);
	else
		erpc_out_put(out, s->ah, &h, len ? rx->lent + (size_t)part * s->payload : NULL, len,
			     rx->exposure_mem, NULL, &rx->out);
	if (rx->lent && out->dg->inline_max < out->dg->mtu)
		erpc_out_report(out); /* who lends it wants it back */
	return true;
}

/** A CR that says more than that a part has arrived. */
static void erpc_answer_cr(struct erpc_session *s, enum wire_erpc_sent said, uint64_t req_num,
			   uint32_t pkt_num, uint32_t what)
{
	struct wire_erpc_hdr h = {
		.req_type = said,
		.msg_size = what,
		.session = s->peer_num,
		.kind = WIRE_ERPC_CR,
		.pkt_num = (uint16_t)pkt_num,
		.req_num = req_num,
		.tag = s->peer_tag,
	};

	if (!erpc_out_room(&s->port->out))
		return;
	s->port->stats.tx_pkts++;
	s->port->stats.gaps++;
	erpc_out_put(&s->port->out, s->ah, &h, NULL, 0, NULL, NULL, NULL);
}

void erpc_answer_gap(struct erpc_session *s, uint64_t req_num, uint32_t pkt_num)
{
	erpc_answer_cr(s, WIRE_ERPC_GAP, req_num, pkt_num, 0);
}

void erpc_answer_kept(struct erpc_session *s, uint32_t slot)
{
	const struct erpc_server *server = &s->rx[slot].s;

	erpc_answer_cr(s, WIRE_ERPC_KEPT, server->req_num, server->req_pkts - 1,
		       s->order.next & WIRE_ERPC_MSG_MAX);
}

static struct erpc_buf *erpc_answer_first(struct erpc_session *s)
{
	return UTIL_CONTAINER_OF(s->replies.next, struct erpc_buf, link);
}

/** Are there answers that a response can take along? */
static bool erpc_answer_fits(struct erpc_session *s)
{
	return !util_list_is_empty(&s->replies) && erpc_answer_first(s)->len <= s->payload;
}

/** The oldest buffer of answers, if one packet carries it, or NULL. */
static struct erpc_buf *erpc_answer_take(struct erpc_session *s)
{
	struct erpc_buf *buf;

	if (!erpc_answer_fits(s))
		return NULL;
	buf = erpc_answer_first(s);
	util_list_remove(&buf->link);
	s->owed_len -= buf->len;
	return buf;
}

/** Answers a batch: false: no room in the burst. */
static bool erpc_answer_batch(struct erpc_session *s, uint32_t slot)
{
	struct erpc_rx *rx = &s->rx[slot];

	if (!erpc_out_room(&s->port->out)) {
		erpc_session_mark(s);
		return false;
	}
	rx->resp = erpc_answer_take(s);
	if (!rx->resp)
		erpc_piggyback_acked(s, slot);
	erpc_server_respond(&rx->s, rx->resp ? rx->resp->len : 0);
	erpc_answer_packet(s, slot, (uint16_t)(rx->s.req_pkts - 1), WIRE_ERPC_RESP);
	return true;
}

void erpc_answer_empty(struct erpc_session *s, uint32_t slot)
{
	struct erpc_rx *rx = &s->rx[slot];

	erpc_server_respond(&rx->s, 0);
	/* Without room it is lost: what was asked will be asked again. */
	erpc_answer_packet(s, slot, (uint16_t)(rx->s.req_pkts - 1), WIRE_ERPC_RESP);
}

/** Batches in `mask` wait no longer for answers. */
static void erpc_answer_due(struct erpc_session *s, uint32_t mask)
{
	s->wait_mask &= ~mask;
	if (!s->wait_mask)
		util_list_remove(&s->wait_link);
	if (s->held_len <= ERPC_HELD_MAX) {
		s->due_mask |= mask;
		return;
	}
	s->held_mask |= mask;
	s->reply_room = 0; /* who answers looks whether it may go */
}

void erpc_answer_soon(struct erpc_session *s, uint32_t slot, bool calls)
{
	struct erpc_rx *rx = &s->rx[slot];

	if (!calls || !s->calls_owed) {
		erpc_session_mark(s);
		erpc_answer_due(s, 1u << slot);
		if (s->held_mask & 1u << slot)
			rx->said = WIRE_ERPC_LATE;
		return;
	}
	rx->said = WIRE_ERPC_LATE;
	if (!util_list_is_empty(&s->replies))
		erpc_session_mark(s); /* it takes them along */
	if (!s->wait_mask) {
		s->deadline_ns = s->port->now_ns + ERPC_ANSWER_NS;
		util_list_push_back(&s->port->waiting, &s->wait_link);
		erpc_port_due_at(s->port, s->deadline_ns);
	}
	s->wait_mask |= 1u << slot;
}

void erpc_answer_released(struct erpc_session *s)
{
	if (!s->held_mask || s->held_len > ERPC_HELD_MAX || s->err)
		return;
	s->due_mask |= s->held_mask;
	s->held_mask = 0;
	erpc_session_mark(s);
}

void erpc_answer_overdue(struct erpc_port *port)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &port->waiting) {
		struct erpc_session *s = UTIL_CONTAINER_OF(it, struct erpc_session, wait_link);

		if (s->deadline_ns > port->now_ns)
			return;
		erpc_answer_due(s, s->wait_mask);
		erpc_session_mark(s);
	}
}

/**
 * Answers that found no response: a request of their own. While one is under way already others go among
 * messages, as long as there are slots: who gives an answer may never call progress again. Messages that wait
 * go before them: they have no other way.
 */
static void erpc_answer_alone(struct erpc_session *s)
{
	while (!util_list_is_empty(&s->replies)) {
		struct erpc_buf *buf = erpc_answer_first(s);
		uint32_t len = buf->len;

		util_list_remove(&buf->link);
		if (s->free_mask & 1u << ERPC_REPLY_SLOT) {
			erpc_kick_begin(s, ERPC_REPLY_SLOT, WIRE_ERPC_REPLIES, buf, 0);
		} else if (!erpc_send_leave(s) || !erpc_send_batch(s, buf, s->left)) {
			util_list_push_front(&s->replies, &buf->link);
			return;
		}
		s->owed_len -= len;
	}
}

void erpc_answer_flush(struct erpc_session *s)
{
	uint32_t slot;

	s->reply_room = 0;
	if (!erpc_piggyback_flush(s))
		return;
	if (s->wait_mask && !s->calls_owed)
		erpc_answer_due(s, s->wait_mask);
	else if (s->wait_mask && !s->due_mask && s->port->running && erpc_answer_fits(s))
		erpc_answer_due(s, s->wait_mask & -s->wait_mask);
	while (s->due_mask) {
		slot = (uint32_t)__builtin_ctz(s->due_mask);
		if (!erpc_answer_batch(s, slot))
			return;
		s->due_mask &= s->due_mask - 1;
	}
	if (!util_list_is_empty(&s->replies) && !(s->wait_mask && erpc_answer_fits(s)))
		erpc_answer_alone(s);
}
