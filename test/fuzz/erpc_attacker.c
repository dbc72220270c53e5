/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_attacker.h. */
#include "erpc_attacker.h"

#include "wire/wire_erpc_msg.h"

static uint64_t take(struct attacker *attacker, unsigned bytes)
{
	return script_take(attacker->script, bytes);
}

/** Returns `honest`, mostly, or a value near it, or any value. */
static uint64_t bend(struct attacker *attacker, uint64_t honest)
{
	uint8_t how = (uint8_t)take(attacker, 1);

	if (how < 0xC0)
		return honest;
	if (how < 0xE0)
		return honest + how % 32 - 16;
	if (how < 0xF0)
		return honest ^ 1ull << take(attacker, 1) % 64;
	return take(attacker, 8);
}

/* ---- frames ---- */

static uint32_t attacker_name(struct attacker *attacker)
{
	unsigned cnt = attacker->call_cnt < ATTACKER_NAMES ? attacker->call_cnt : ATTACKER_NAMES;

	return cnt ? attacker->calls[take(attacker, 1) % cnt] : 0;
}

#define ATTACKER_BODY_MAX (ATTACKER_PKT_MAX - WIRE_ERPC_HDR_LEN) /* behind the header */

/** Appends a frame, mostly of a valid kind. Returns its end. */
static uint32_t attacker_frame(struct attacker *attacker, uint8_t *buf, uint32_t at, bool responses)
{
	uint32_t kind = responses ? WIRE_ERPC_FRAME_REPLY : 1 + (uint32_t)take(attacker, 1) % 3;
	uint32_t len = (uint32_t)take(attacker, 1), span, word;
	uint64_t head;
	uint32_t resp_max = 0;

	kind = (uint32_t)bend(attacker, kind) & 0xFF;
	word = kind == WIRE_ERPC_FRAME_REPLY ? attacker_name(attacker)
					     : (uint32_t)take(attacker, 1);
	if (kind == WIRE_ERPC_FRAME_CALL)
		resp_max = (uint32_t)bend(attacker, 64 * take(attacker, 1));
	head = len | kind << 24 | bend(attacker, word) << 32;
	span = wire_erpc_frame_span((enum wire_erpc_frame_kind)kind, len);
	if (at + span + 16 > ATTACKER_BODY_MAX)
		return at;
	memset(buf + at, 0, span);
	memcpy(buf + at, &head, sizeof(head));
	memcpy(buf + at + sizeof(head), &resp_max, sizeof(resp_max));
	return at + (uint32_t)bend(attacker, span) % (ATTACKER_BODY_MAX - at);
}

static uint32_t attacker_frames(struct attacker *attacker, uint8_t *buf, uint32_t at,
				bool responses)
{
	unsigned cnt = (unsigned)take(attacker, 1) % 8;

	while (cnt--)
		at = attacker_frame(attacker, buf, at, responses);
	return at;
}

/* ---- requests and responses ---- */

static uint32_t attacker_batch(struct attacker *attacker, const struct erpc_session *s,
			       uint8_t *buf)
{
	uint8_t how = (uint8_t)take(attacker, 1);
	struct wire_erpc_batch head = {
		.seq = (uint32_t)bend(attacker, s->order.next + (how & 3)),
		.ack = (uint32_t)bend(attacker, how & 4 ? s->send.seq : s->send.seq_done),
	};

	memcpy(buf, &head, sizeof(head));
	return attacker_frames(attacker, buf, sizeof(head), false);
}

static uint32_t attacker_replies(struct attacker *attacker, uint8_t *buf)
{
	memset(buf, 0, sizeof(struct wire_erpc_batch));
	return attacker_frames(attacker, buf, sizeof(struct wire_erpc_batch), true);
}

static uint32_t attacker_get(struct attacker *attacker, uint8_t *buf)
{
	struct wire_erpc_get ask = {
		.addr = bend(attacker, attacker->exposure_addr),
		.key = bend(attacker, attacker->exposure_key),
		.len = (uint32_t)bend(attacker, attacker->exposure_len),
		.more = (uint32_t)bend(attacker, 0),
	};

	memcpy(buf, &ask, sizeof(ask));
	return sizeof(ask);
}

/* ---- packets ---- */

static uint8_t attacker_type(uint32_t slot)
{
	if (slot < ERPC_BATCH_SLOTS)
		return WIRE_ERPC_BATCH;
	return slot == ERPC_REPLY_SLOT ? WIRE_ERPC_REPLIES : WIRE_ERPC_GET;
}

/** Builds the next request of a slot, or the next part of the current one. Returns its length. */
static uint32_t attacker_req(struct attacker *attacker, const struct erpc_session *s,
			     struct wire_erpc_hdr *h, uint32_t slot, uint8_t *buf)
{
	const struct erpc_server *server = &s->rx[slot].s;
	uint32_t len;

	h->req_type = (uint8_t)bend(attacker, attacker_type(slot));
	h->req_num = server->req_num + ERPC_SLOTS;
	if (slot < ERPC_BATCH_SLOTS)
		len = attacker_batch(attacker, s, buf);
	else
		len = slot == ERPC_REPLY_SLOT ? attacker_replies(attacker, buf)
					      : attacker_get(attacker, buf);
	h->msg_size = len;
	if (server->rx < server->req_pkts) {
		h->req_num = server->req_num;
		h->msg_size = server->size;
		h->pkt_num = (uint16_t)server->rx;
		len = wire_erpc_pkt_len(server->size, s->payload, server->rx);
	} else if (take(attacker, 1) > 0xD0) {
		h->msg_size = s->payload + 1 + (uint32_t)take(attacker, 2);
		len = s->payload;
	}
	return len;
}

/** Builds a response to a request in flight. */
static uint32_t attacker_respond(struct attacker *attacker, const struct erpc_session *s,
				 struct wire_erpc_hdr *h, uint32_t slot, uint8_t *buf)
{
	const struct erpc_tx *tx = &s->tx[slot];
	uint32_t part;

	h->req_num = tx->c.req_num;
	h->pkt_num = (uint16_t)tx->c.rx;
	h->req_type = (uint8_t)(take(attacker, 1) % 3);
	if (h->kind == WIRE_ERPC_CR)
		return 0;
	if (!tx->get_op) {
		h->msg_size = take(attacker, 1) & 1 ? attacker_replies(attacker, buf) : 0;
		return h->msg_size;
	}
	part = h->pkt_num + 1 > tx->c.req_pkts ? h->pkt_num + 1 - tx->c.req_pkts : 0;
	h->msg_size = tx->c.resp_max;
	return wire_erpc_pkt_len(h->msg_size, s->payload, part);
}

static uint32_t attacker_rfr(const struct erpc_session *s, struct wire_erpc_hdr *h, uint32_t slot,
			     uint32_t part)
{
	h->req_num = s->rx[slot].s.req_num;
	h->pkt_num = (uint16_t)(s->rx[slot].s.req_pkts + part);
	return 0;
}

static void attacker_bend_header(struct attacker *attacker, struct wire_erpc_hdr *h)
{
	h->kind = (enum wire_erpc_kind)(bend(attacker, h->kind) & 3);
	h->msg_size = (uint32_t)bend(attacker, h->msg_size) & WIRE_ERPC_MSG_MAX;
	h->pkt_num = (uint16_t)(bend(attacker, h->pkt_num) & (WIRE_ERPC_PKT_MAX - 1));
	h->req_num = bend(attacker, h->req_num) & (WIRE_ERPC_REQ_MAX - 1);
	h->session = (uint16_t)bend(attacker, h->session);
	h->tag = (uint16_t)bend(attacker, h->tag);
}

uint32_t attacker_packet(struct attacker *attacker, const struct erpc_session *s, uint8_t *buf)
{
	uint8_t what = (uint8_t)take(attacker, 1);
	uint32_t slot = what % ERPC_SLOTS, len = 0;
	struct wire_erpc_hdr h = {
		.session = s->num,
		.tag = s->tag,
		.kind = (enum wire_erpc_kind)(what >> 3 & 3),
	};

	memset(buf, 0, ATTACKER_PKT_MAX);
	switch (h.kind) {
	case WIRE_ERPC_REQ:
		len = attacker_req(attacker, s, &h, slot, buf + WIRE_ERPC_HDR_LEN);
		break;
	case WIRE_ERPC_RFR: len = attacker_rfr(s, &h, slot, (uint32_t)take(attacker, 1)); break;
	case WIRE_ERPC_CR:
	case WIRE_ERPC_RESP:
		len = attacker_respond(attacker, s, &h, slot, buf + WIRE_ERPC_HDR_LEN);
		break;
	}
	if (what & 0x80) {
		attacker_bend_header(attacker, &h);
		len = (uint32_t)bend(attacker, len);
	}
	wire_erpc_put(buf, &h);
	return (len < ATTACKER_PKT_MAX - WIRE_ERPC_HDR_LEN ? len : 0) + WIRE_ERPC_HDR_LEN;
}

void attacker_observe(struct attacker *attacker, const uint8_t *pkt, uint32_t len)
{
	const uint8_t *at = pkt + WIRE_ERPC_HDR_LEN + sizeof(struct wire_erpc_batch);
	struct wire_erpc_frame f;
	struct wire_erpc_hdr h;

	if (!wire_erpc_get(&h, pkt, len) || h.kind != WIRE_ERPC_REQ ||
	    h.req_type != WIRE_ERPC_BATCH || h.pkt_num || at > pkt + len)
		return;
	while (wire_erpc_frame_next(&f, &at, pkt + len))
		if (f.kind == WIRE_ERPC_FRAME_CALL)
			attacker->calls[attacker->call_cnt++ % ATTACKER_NAMES] = f.word;
}
