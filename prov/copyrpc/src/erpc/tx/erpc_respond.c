/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_respond.h. */
#include "erpc/tx/erpc_respond.h"

#include <string.h>

#include "erpc/tx/erpc_defer.h"
#include "erpc/tx/erpc_kick.h"
#include "erpc/tx/erpc_piggyback.h"
#include "erpc/tx/erpc_send.h"
#include "util/bits.h"
#include "util/stats.h"

/** Returns the type of a packet, by which the peer judges the round trip. */
static uint8_t erpc_respond_type(const struct erpc_session *s, const struct erpc_rx *rx,
				 enum wire_erpc_kind kind)
{
	if (kind == WIRE_ERPC_RESP && rx->resp_type != WIRE_ERPC_PROMPT)
		return rx->resp_type;
	return UTIL_UNLIKELY(s->ep->away) ? WIRE_ERPC_AWAY : WIRE_ERPC_PROMPT;
}

static struct wire_erpc_hdr erpc_respond_hdr(const struct erpc_session *s, const struct erpc_rx *rx,
					     uint16_t pkt_num, enum wire_erpc_kind kind)
{
	return (struct wire_erpc_hdr){
		.req_type = erpc_respond_type(s, rx, kind),
		.session = s->peer_num,
		.kind = kind,
		.pkt_num = pkt_num,
		.req_num = rx->s.req_num,
		.tag = s->peer_tag,
	};
}

/** Returns true if the response in a slot is exposed memory. */
static inline bool erpc_respond_is_memory(const struct erpc_rx *rx)
{
	return rx->get_src && rx->resp_type != WIRE_ERPC_REFUSED;
}

/** Adds packets with `cnt` parts of exposed memory from packet `first` on. Requires their room. */
static void erpc_respond_memory(struct erpc_session *s, uint32_t slot, uint32_t first, uint32_t cnt)
{
	struct erpc_out *out = &s->ep->out;
	struct erpc_rx *rx = &s->rx[slot];
	struct wire_erpc_hdr h = erpc_respond_hdr(s, rx, (uint16_t)first, WIRE_ERPC_RESP);
	uint32_t part = erpc_server_part(&rx->s, h.pkt_num);
	/* unexpose waits for the device */
	struct erpc_out_bytes bytes = {
		.data = rx->get_src + (size_t)part * s->payload,
		.flags = out->dg->inline_max < out->dg->mtu ? DEV_DGRAM_REPORT : 0,
		.mem = rx->exposure_mem,
		.last_tx = &rx->last_tx,
	};

	h.msg_size = rx->s.resp_size;
	s->last_resp_ns = s->ep->now_ns;
	util_stats_add(&s->ep->stats->tx_pkts, cnt);
	for (; cnt; cnt--, part++, h.pkt_num++) {
		bytes.len = wire_erpc_pkt_len(rx->s.resp_size, s->payload, part);
		erpc_out_put_bytes(out, s->ah, &h, &bytes, &rx->out);
		bytes.data = (const uint8_t *)bytes.data + s->payload;
	}
}

bool erpc_respond_packet(struct erpc_session *s, uint32_t slot, uint16_t pkt_num,
			 enum wire_erpc_kind kind)
{
	struct erpc_out *out = &s->ep->out;
	struct erpc_rx *rx = &s->rx[slot];
	struct wire_erpc_hdr h;
	uint32_t len;

	if (!erpc_out_room(out))
		return false;
	if (kind == WIRE_ERPC_RESP && erpc_respond_is_memory(rx)) {
		erpc_respond_memory(s, slot, pkt_num, 1);
		return true;
	}
	util_stats_add(&s->ep->stats->tx_pkts, 1);
	h = erpc_respond_hdr(s, rx, pkt_num, kind);
	if (kind == WIRE_ERPC_CR || rx->resp_type == WIRE_ERPC_REFUSED) {
		erpc_out_put(out, s->ah, &h, NULL, 0, NULL, NULL, NULL);
		return true;
	}
	len = wire_erpc_pkt_len(rx->s.resp_size, s->payload, erpc_server_part(&rx->s, pkt_num));
	h.msg_size = rx->s.resp_size;
	s->last_resp_ns = s->ep->now_ns;
	if (rx->resp)
		erpc_out_put_first(out, s->ah, rx->resp, len, &h, &rx->out);
	else
		erpc_out_put(out, s->ah, &h, NULL, 0, NULL, NULL, &rx->out);
	return true;
}

void erpc_respond_run(struct erpc_session *s, uint32_t slot, uint32_t first, uint32_t cnt)
{
	struct erpc_out *out = &s->ep->out;
	uint32_t n, room;

	for (; cnt && erpc_out_room(out); cnt -= n, first += n) {
		if (!erpc_respond_is_memory(&s->rx[slot])) { /* no longer exposed */
			n = erpc_respond_packet(s, slot, (uint16_t)first, WIRE_ERPC_RESP);
			continue;
		}
		room = ERPC_BURST - out->cnt;
		n = cnt < room ? cnt : room;
		erpc_respond_memory(s, slot, first, n);
	}
}

void erpc_respond_part(struct erpc_session *s, uint32_t slot)
{
	if (s->ep->paces) {
		erpc_respond_packet(s, slot, (uint16_t)(s->rx[slot].s.rx - 1), WIRE_ERPC_CR);
		return;
	}
	s->resp.cr_mask |= (uint8_t)(1u << slot);
	erpc_session_mark(s);
}

/** Sends the CRs of this progress call. Returns false without room in the burst. */
static bool erpc_respond_parts(struct erpc_session *s)
{
	for (; s->resp.cr_mask; s->resp.cr_mask &= s->resp.cr_mask - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(s->resp.cr_mask);
		const struct erpc_server *server = &s->rx[slot].s;
		uint32_t cnt = server->rx - (server->rx == server->req_pkts);

		/* The last packet is acknowledged by the response alone. */
		if (server->responded || !cnt)
			continue;
		if (erpc_respond_packet(s, slot, (uint16_t)(cnt - 1), WIRE_ERPC_CR))
			continue;
		erpc_session_mark(s);
		return false;
	}
	return true;
}

/** Sends a CR with a report: a gap, or a batch that waits for an earlier one. */
static void erpc_respond_cr(struct erpc_session *s, enum wire_erpc_sent said, uint64_t req_num,
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

	if (!erpc_out_room(&s->ep->out))
		return;
	util_stats_add(&s->ep->stats->tx_pkts, 1);
	s->ep->stats->gaps++;
	erpc_out_put(&s->ep->out, s->ah, &h, NULL, 0, NULL, NULL, NULL);
}

void erpc_respond_gap(struct erpc_session *s, uint64_t req_num, uint32_t pkt_num)
{
	erpc_respond_cr(s, WIRE_ERPC_GAP, req_num, pkt_num, 0);
}

void erpc_respond_kept(struct erpc_session *s, uint32_t slot)
{
	const struct erpc_server *server = &s->rx[slot].s;

	erpc_respond_cr(s, WIRE_ERPC_KEPT, server->req_num, server->req_pkts - 1,
			s->order.next & WIRE_ERPC_MSG_MAX);
}

static struct erpc_buf *erpc_respond_first(struct erpc_session *s)
{
	return UTIL_CONTAINER_OF(s->replies.next, struct erpc_buf, link);
}

/** Returns true if there are replies that a response can carry. */
static bool erpc_respond_fits(struct erpc_session *s)
{
	return (s->send.waits & ERPC_WAITS_REPLIES) && !util_list_is_empty(&s->replies) &&
	       erpc_respond_first(s)->len <= s->payload;
}

/** Takes the oldest buffer of replies, if one packet carries it, else returns NULL. */
static struct erpc_buf *erpc_respond_take(struct erpc_session *s)
{
	struct erpc_buf *buf;

	if (!erpc_respond_fits(s))
		return NULL;
	buf = erpc_respond_first(s);
	util_list_remove(&buf->link);
	s->reply_reserved -= buf->len;
	return buf;
}

/** Responds to a batch. Returns false without room in the burst. */
static bool erpc_respond_batch(struct erpc_session *s, uint32_t slot)
{
	struct erpc_rx *rx = &s->rx[slot];

	if (!erpc_out_room(&s->ep->out)) {
		erpc_session_mark(s);
		return false;
	}
	rx->resp = erpc_respond_take(s);
	if (!rx->resp)
		erpc_piggyback_acked(s, slot);
	erpc_server_respond(&rx->s, rx->resp ? rx->resp->len : 0);
	erpc_respond_packet(s, slot, (uint16_t)(rx->s.req_pkts - 1), WIRE_ERPC_RESP);
	return true;
}

void erpc_respond_empty(struct erpc_session *s, uint32_t slot)
{
	struct erpc_rx *rx = &s->rx[slot];

	erpc_server_respond(&rx->s, 0);
	/* Without room the response is lost, and the client repeats its request. */
	erpc_respond_packet(s, slot, (uint16_t)(rx->s.req_pkts - 1), WIRE_ERPC_RESP);
}

/** Ends the wait of batches in `mask` for replies. */
static void erpc_respond_due(struct erpc_session *s, uint32_t mask)
{
	if (s->resp.wait_mask) {
		s->resp.wait_mask &= ~mask;
		if (!s->resp.wait_mask)
			util_list_remove(&s->wait_link);
	}
	if (s->resp.retained_len <= ERPC_RETAINED_MAX) {
		s->resp.due_mask |= mask;
		return;
	}
	s->resp.release_mask |= mask;
	s->resp.room = 0; /* the next reply checks whether the response may leave */
}

void erpc_respond_soon(struct erpc_session *s, uint32_t slot, bool calls)
{
	struct erpc_rx *rx = &s->rx[slot];

	if (!calls || !s->resp.calls_pending) {
		erpc_session_mark(s);
		erpc_respond_due(s, 1u << slot);
		if (s->resp.release_mask & 1u << slot)
			rx->resp_type = WIRE_ERPC_LATE;
		return;
	}
	rx->resp_type = WIRE_ERPC_LATE;
	if (!util_list_is_empty(&s->replies))
		erpc_session_mark(s); /* the response takes them along */
	if (!s->resp.wait_mask) {
		s->deadline_ns = s->ep->now_ns + ERPC_REPLY_WAIT_NS;
		util_list_push_back(&s->ep->waiting, &s->wait_link);
		erpc_ep_due_at(s->ep, s->deadline_ns);
	}
	s->resp.wait_mask |= 1u << slot;
}

void erpc_respond_released(struct erpc_session *s)
{
	if (!s->resp.release_mask || s->resp.retained_len > ERPC_RETAINED_MAX || s->err)
		return;
	s->resp.due_mask |= s->resp.release_mask;
	s->resp.release_mask = 0;
	erpc_session_mark(s);
}

void erpc_respond_overdue(struct erpc_ep *ep)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &ep->waiting) {
		struct erpc_session *s = UTIL_CONTAINER_OF(it, struct erpc_session, wait_link);

		if (s->deadline_ns > ep->now_ns)
			return;
		erpc_respond_due(s, s->resp.wait_mask);
		erpc_session_mark(s);
	}
}

/**
 * Sends replies without a response in a request of their own (REPLIES). While one is in flight
 * others go in batches, as long as there are slots: the replier may never call progress again.
 * Messages that wait go first.
 */
static void erpc_respond_by_request(struct erpc_session *s)
{
	while (!util_list_is_empty(&s->replies)) {
		struct erpc_buf *buf = erpc_respond_first(s);
		uint32_t len = buf->len;

		util_list_remove(&buf->link);
		if (s->send.free_mask & 1u << ERPC_REPLY_SLOT) {
			erpc_kick_begin(s, ERPC_REPLY_SLOT, WIRE_ERPC_REPLIES, buf, 0);
		} else if (!erpc_send_leave(s) || !erpc_send_batch(s, buf, 0)) {
			util_list_push_front(&s->replies, &buf->link);
			return;
		}
		s->reply_reserved -= len;
	}
}

void erpc_respond_flush(struct erpc_session *s)
{
	uint32_t slot;

	s->resp.room = 0;
	if (!erpc_piggyback_flush(s))
		return;
	if (erpc_defer_flush(s))
		return;
	if (s->resp.wait_mask && !s->resp.calls_pending)
		erpc_respond_due(s, s->resp.wait_mask);
	else if (s->resp.wait_mask && !s->resp.due_mask && s->ep->running && erpc_respond_fits(s))
		erpc_respond_due(s, s->resp.wait_mask & -s->resp.wait_mask);
	while (s->resp.due_mask) {
		slot = (uint32_t)__builtin_ctz(s->resp.due_mask);
		if (!erpc_respond_batch(s, slot))
			return;
		s->resp.due_mask &= s->resp.due_mask - 1;
	}
	if (!erpc_respond_parts(s))
		return;
	if (!(s->send.waits & ERPC_WAITS_REPLIES))
		return;
	if (!util_list_is_empty(&s->replies) && !(s->resp.wait_mask && erpc_respond_fits(s)))
		erpc_respond_by_request(s);
	if (util_list_is_empty(&s->replies))
		s->send.waits &= ~ERPC_WAITS_REPLIES;
}
