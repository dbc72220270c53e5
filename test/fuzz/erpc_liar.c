/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets that fit, and do not: see erpc_liar.h. */
#include "erpc_liar.h"

#include "wire/wire_erpc_msg.h"

static uint64_t take(struct liar *liar, unsigned bytes)
{
	return script_take(liar->script, bytes);
}

/** `honest`, or near it, or anything; mostly the first. */
static uint64_t bend(struct liar *liar, uint64_t honest)
{
	uint8_t how = (uint8_t)take(liar, 1);

	if (how < 0xC0)
		return honest;
	if (how < 0xE0)
		return honest + how % 32 - 16;
	if (how < 0xF0)
		return honest ^ 1ull << take(liar, 1) % 64;
	return take(liar, 8);
}

/* ---- frames ---- */

static uint32_t liar_name(struct liar *liar)
{
	unsigned cnt = liar->call_cnt < LIAR_NAMES ? liar->call_cnt : LIAR_NAMES;

	return cnt ? liar->calls[take(liar, 1) % cnt] : 0;
}

#define LIAR_BODY_MAX (LIAR_PKT_MAX - WIRE_ERPC_HDR_LEN) /* behind the header */

/** Appends a frame of a kind that belongs there, mostly: where the next one goes. */
static uint32_t liar_frame(struct liar *liar, uint8_t *buf, uint32_t at, bool answers)
{
	uint32_t kind = answers ? WIRE_ERPC_FRAME_REPLY : 1 + (uint32_t)take(liar, 1) % 3;
	uint32_t len = (uint32_t)take(liar, 1), span, word;
	uint64_t head;
	uint32_t resp_max = 0;

	kind = (uint32_t)bend(liar, kind) & 0xFF;
	word = kind == WIRE_ERPC_FRAME_REPLY ? liar_name(liar) : (uint32_t)take(liar, 1);
	if (kind == WIRE_ERPC_FRAME_CALL)
		resp_max = (uint32_t)bend(liar, 64 * take(liar, 1));
	head = len | kind << 24 | bend(liar, word) << 32;
	span = wire_erpc_frame_span((enum wire_erpc_frame_kind)kind, len);
	if (at + span + 16 > LIAR_BODY_MAX)
		return at;
	memset(buf + at, 0, span);
	memcpy(buf + at, &head, sizeof(head));
	memcpy(buf + at + sizeof(head), &resp_max, sizeof(resp_max));
	return at + (uint32_t)bend(liar, span) % (LIAR_BODY_MAX - at);
}

static uint32_t liar_frames(struct liar *liar, uint8_t *buf, uint32_t at, bool answers)
{
	unsigned cnt = (unsigned)take(liar, 1) % 8;

	while (cnt--)
		at = liar_frame(liar, buf, at, answers);
	return at;
}

/* ---- what requests and responses say ---- */

static uint32_t liar_batch(struct liar *liar, const struct erpc_session *s, uint8_t *buf)
{
	uint8_t how = (uint8_t)take(liar, 1);
	struct wire_erpc_batch head = {
		.seq = (uint32_t)bend(liar, s->order.next + (how & 3)),
		.ack = (uint32_t)bend(liar, how & 4 ? s->seq : s->seq_done),
	};

	memcpy(buf, &head, sizeof(head));
	return liar_frames(liar, buf, sizeof(head), false);
}

static uint32_t liar_replies(struct liar *liar, uint8_t *buf)
{
	memset(buf, 0, sizeof(struct wire_erpc_batch));
	return liar_frames(liar, buf, sizeof(struct wire_erpc_batch), true);
}

static uint32_t liar_get(struct liar *liar, uint8_t *buf)
{
	struct wire_erpc_get ask = {
		.addr = bend(liar, liar->loan_addr),
		.key = bend(liar, liar->loan_key),
		.len = (uint32_t)bend(liar, liar->loan_len),
	};

	memcpy(buf, &ask, sizeof(ask));
	return sizeof(ask);
}

/* ---- packets ---- */

static uint8_t liar_type(uint32_t slot)
{
	if (slot < ERPC_BATCH_SLOTS)
		return WIRE_ERPC_BATCH;
	return slot == ERPC_REPLY_SLOT ? WIRE_ERPC_REPLIES : WIRE_ERPC_GET;
}

/** The next request of a slot, or the next part of the one that has begun: `size` bytes, or in parts. */
static uint32_t liar_req(struct liar *liar, const struct erpc_session *s, struct wire_erpc_hdr *h,
			 uint32_t slot, uint8_t *buf)
{
	const struct erpc_server *server = &s->rx[slot].s;
	uint32_t len;

	h->req_type = (uint8_t)bend(liar, liar_type(slot));
	h->req_num = server->req_num + ERPC_SLOTS;
	if (slot < ERPC_BATCH_SLOTS)
		len = liar_batch(liar, s, buf);
	else
		len = slot == ERPC_REPLY_SLOT ? liar_replies(liar, buf) : liar_get(liar, buf);
	h->msg_size = len;
	if (server->rx < server->req_pkts) {
		h->req_num = server->req_num;
		h->msg_size = server->size;
		h->pkt_num = (uint16_t)server->rx;
		len = wire_erpc_pkt_len(server->size, s->payload, server->rx);
	} else if (take(liar, 1) > 0xD0) {
		h->msg_size = s->payload + 1 + (uint32_t)take(liar, 2);
		len = s->payload;
	}
	return len;
}

/** An answer to what is under way in a slot. */
static uint32_t liar_answer(struct liar *liar, const struct erpc_session *s,
			    struct wire_erpc_hdr *h, uint32_t slot, uint8_t *buf)
{
	const struct erpc_tx *tx = &s->tx[slot];
	uint32_t part;

	h->req_num = tx->c.req_num;
	h->pkt_num = (uint16_t)tx->c.rx;
	h->req_type = (uint8_t)(take(liar, 1) % 3);
	if (h->kind == WIRE_ERPC_CR)
		return 0;
	if (!tx->get_op) {
		h->msg_size = take(liar, 1) & 1 ? liar_replies(liar, buf) : 0;
		return h->msg_size;
	}
	part = h->pkt_num + 1 > tx->c.req_pkts ? h->pkt_num + 1 - tx->c.req_pkts : 0;
	h->msg_size = tx->c.resp_max;
	return wire_erpc_pkt_len(h->msg_size, s->payload, part);
}

static uint32_t liar_rfr(const struct erpc_session *s, struct wire_erpc_hdr *h, uint32_t slot,
			 uint32_t part)
{
	h->req_num = s->rx[slot].s.req_num;
	h->pkt_num = (uint16_t)(s->rx[slot].s.req_pkts + part);
	return 0;
}

static void liar_bend_header(struct liar *liar, struct wire_erpc_hdr *h)
{
	h->kind = (enum wire_erpc_kind)(bend(liar, h->kind) & 3);
	h->msg_size = (uint32_t)bend(liar, h->msg_size) & WIRE_ERPC_MSG_MAX;
	h->pkt_num = (uint16_t)(bend(liar, h->pkt_num) & (WIRE_ERPC_PKT_MAX - 1));
	h->req_num = bend(liar, h->req_num) & (WIRE_ERPC_REQ_MAX - 1);
	h->session = (uint16_t)bend(liar, h->session);
	h->tag = (uint16_t)bend(liar, h->tag);
}

uint32_t liar_packet(struct liar *liar, const struct erpc_session *s, uint8_t *buf)
{
	uint8_t what = (uint8_t)take(liar, 1);
	uint32_t slot = what % ERPC_SLOTS, len = 0;
	struct wire_erpc_hdr h = {
		.session = s->num,
		.tag = s->tag,
		.kind = (enum wire_erpc_kind)(what >> 3 & 3),
	};

	memset(buf, 0, LIAR_PKT_MAX);
	switch (h.kind) {
	case WIRE_ERPC_REQ: len = liar_req(liar, s, &h, slot, buf + WIRE_ERPC_HDR_LEN); break;
	case WIRE_ERPC_RFR: len = liar_rfr(s, &h, slot, (uint32_t)take(liar, 1)); break;
	case WIRE_ERPC_CR:
	case WIRE_ERPC_RESP: len = liar_answer(liar, s, &h, slot, buf + WIRE_ERPC_HDR_LEN); break;
	}
	if (what & 0x80) {
		liar_bend_header(liar, &h);
		len = (uint32_t)bend(liar, len);
	}
	wire_erpc_put(buf, &h);
	return (len < LIAR_PKT_MAX - WIRE_ERPC_HDR_LEN ? len : 0) + WIRE_ERPC_HDR_LEN;
}

void liar_hears(struct liar *liar, const uint8_t *pkt, uint32_t len)
{
	const uint8_t *at = pkt + WIRE_ERPC_HDR_LEN + sizeof(struct wire_erpc_batch);
	struct wire_erpc_frame f;
	struct wire_erpc_hdr h;

	if (!wire_erpc_get(&h, pkt, len) || h.kind != WIRE_ERPC_REQ ||
	    h.req_type != WIRE_ERPC_BATCH || h.pkt_num || at > pkt + len)
		return;
	while (wire_erpc_frame_next(&f, &at, pkt + len))
		if (f.kind == WIRE_ERPC_FRAME_CALL)
			liar->calls[liar->call_cnt++ % LIAR_NAMES] = f.word;
}
