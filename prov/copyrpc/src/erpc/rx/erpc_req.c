/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handler of REQ, a part of a request: assembles it and has it acknowledged; the last part
 * completes the request.
 *
 * A request of one packet stays in the device's buffer. The first packet of a request frees the
 * previous response. Parts behind a missing one are kept; after ERPC_EARLY_MAX of them a CR reports
 * the gap.
 */
#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/bulk/erpc_expose.h"
#include "erpc/rx/erpc_deliver.h"
#include "erpc/rx/erpc_pkt.h"
#include "erpc/tx/erpc_piggyback.h"
#include "erpc/tx/erpc_respond.h"
#include "util/bits.h"

/** Returns true if the slot accepts the type. */
static bool erpc_req_is_for(uint32_t slot, uint8_t type)
{
	if (slot < ERPC_BATCH_SLOTS)
		return type == WIRE_ERPC_BATCH;
	return type == (slot == ERPC_REPLY_SLOT ? WIRE_ERPC_REPLIES : WIRE_ERPC_GET);
}

/** Returns true if the packet begins a request. */
static bool erpc_req_begins(const struct erpc_rx *rx, const struct wire_erpc_hdr *h)
{
	return h->req_num != rx->s.req_num && !h->pkt_num;
}

/** Allocates the body of a request of several packets. Returns false without memory. */
static bool erpc_req_room(struct erpc_session *s, const struct wire_erpc_hdr *h,
			  struct erpc_body **body)
{
	*body = erpc_body_new(s, h->msg_size);
	s->ep->stats->rx_no_memory += !*body;
	return *body;
}

static inline void erpc_req_forget_last(struct erpc_session *s, uint32_t slot)
{
	struct erpc_rx *rx = &s->rx[slot];

	erpc_piggyback_forget(s, slot);
	if (UTIL_UNLIKELY(rx->out.unsent))
		erpc_out_forget(&s->ep->out, &rx->out);
	if (rx->resp) {
		erpc_buf_free(&s->ep->bufs, rx->resp);
		rx->resp = NULL;
	}
	rx->resp_type = WIRE_ERPC_PROMPT;
	if (slot >= ERPC_BATCH_SLOTS)
		erpc_expose_leave(rx);
}

/** Responds again to a request received before, if there is a response. */
static void erpc_req_repeat(struct erpc_session *s, uint32_t slot)
{
	struct erpc_rx *rx = &s->rx[slot];
	enum wire_erpc_kind kind;
	uint16_t pkt_num;

	s->lossy = true;
	/* While the last response is in the burst it is not lost. */
	if (rx->out.unsent || !erpc_server_repeat(&rx->s, &pkt_num, &kind))
		return;
	if (rx->resp)
		rx->resp->resent = true;
	erpc_respond_packet(s, slot, pkt_num, kind);
}

void erpc_req_early(struct erpc_session *s, uint32_t slot, const struct wire_erpc_hdr *h)
{
	struct erpc_rx *rx = &s->rx[slot];

	/* A lower number: the sender has rewound, and the missing packet was lost again. */
	rx->early = h->pkt_num > rx->early_num ? rx->early + 1 : 1;
	rx->early_num = h->pkt_num;
	if (rx->early == ERPC_EARLY_MAX)
		erpc_respond_gap(s, h->req_num, h->req_num == rx->s.req_num ? rx->s.rx : 0);
}

static void erpc_req_whole(struct erpc_session *s, uint32_t slot)
{
	struct erpc_rx *rx = &s->rx[slot];
	struct erpc_body *body;

	if (slot < ERPC_BATCH_SLOTS) {
		erpc_deliver_batch(s, slot);
		return;
	}
	body = rx->body;
	rx->body = NULL;
	if (slot == ERPC_REPLY_SLOT) {
		erpc_respond_empty(s, slot);
		erpc_deliver_replies(s, body);
	} else {
		erpc_expose_reply(s, slot, body->data, body->len);
	}
	erpc_body_put(body);
}

/** Handles the only packet of a request that is not the expected one. */
static void __attribute__((noinline))
erpc_req_single_cold(struct erpc_session *s, uint32_t slot, const struct wire_erpc_hdr *h,
		     const struct dev_dgram_in *in)
{
	enum erpc_verdict verdict =
		erpc_server_take_req(&s->rx[slot].s, h, in->len - WIRE_ERPC_HDR_LEN);

	erpc_session_refuse(s, verdict);
	if (verdict == ERPC_REPEAT)
		erpc_req_repeat(s, slot);
}

/** Handles the only packet of a request. */
static inline bool erpc_req_single(struct erpc_session *s, uint32_t slot,
				   const struct wire_erpc_hdr *h, const struct dev_dgram_in *in)
{
	struct erpc_rx *rx = &s->rx[slot];
	bool kept = false;

	if (UTIL_UNLIKELY(!erpc_server_take_single(&rx->s, h, in->len - WIRE_ERPC_HDR_LEN))) {
		erpc_req_single_cold(s, slot, h, in);
		return false;
	}
	erpc_req_forget_last(s, slot);
	if (UTIL_LIKELY(slot < ERPC_BATCH_SLOTS && erpc_deliver_is_plain(s, in)))
		return erpc_deliver_plain(s, slot, in);
	rx->body = erpc_body_of(s, in, &kept);
	if (UTIL_UNLIKELY(!rx->body)) {
		erpc_session_fail(s, -FI_ENOMEM, "out of memory for received packets");
		return false;
	}
	erpc_req_whole(s, slot);
	return kept;
}

static void erpc_req_put(const struct erpc_session *s, struct erpc_rx *rx,
			 const struct wire_erpc_hdr *h, const struct dev_dgram_in *in)
{
	memcpy(rx->body->heap + (size_t)h->pkt_num * s->payload, in->data + WIRE_ERPC_HDR_LEN,
	       in->len - WIRE_ERPC_HDR_LEN);
}

static void erpc_req_part_early(struct erpc_session *s, uint32_t slot,
				const struct wire_erpc_hdr *h, const struct dev_dgram_in *in)
{
	struct erpc_rx *rx = &s->rx[slot];

	if (erpc_server_keep(&rx->s, h))
		erpc_req_put(s, rx, h, in);
	erpc_req_early(s, slot, h);
}

/** Handles a packet of a longer request, or of a type that the slot refuses. */
static __attribute__((noinline)) bool erpc_req_part(struct erpc_session *s,
						    const struct wire_erpc_hdr *h,
						    const struct dev_dgram_in *in)
{
	uint32_t slot = h->req_num % ERPC_SLOTS, len = in->len - WIRE_ERPC_HDR_LEN;
	struct erpc_rx *rx = &s->rx[slot];
	struct erpc_body *body = NULL;
	enum erpc_verdict verdict;

	if (UTIL_UNLIKELY(!erpc_req_is_for(slot, h->req_type) || h->msg_size > ERPC_BUF_LARGE)) {
		erpc_session_refuse(s, ERPC_BAD);
		return false;
	}
	if (h->msg_size <= s->payload)
		return erpc_req_single(s, slot, h, in);
	if (erpc_req_begins(rx, h) && !erpc_req_room(s, h, &body))
		return false;
	verdict = erpc_server_take_req(&rx->s, h, len);
	if (verdict != ERPC_TAKE && verdict != ERPC_LAST) {
		if (body)
			erpc_body_put(body);
		erpc_session_refuse(s, verdict);
		if (verdict == ERPC_REPEAT)
			erpc_req_repeat(s, slot);
		else if (verdict == ERPC_EARLY)
			erpc_req_part_early(s, slot, h, in);
		return false;
	}
	rx->early = 0;
	rx->early_num = 0;
	if (body) {
		erpc_req_forget_last(s, slot);
		rx->body = body;
	}
	erpc_req_put(s, rx, h, in);
	if (verdict == ERPC_LAST)
		erpc_req_whole(s, slot);
	else
		erpc_respond_part(s, slot);
	return false;
}

bool erpc_req_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		 const struct dev_dgram_in *in)
{
	uint32_t slot = h->req_num % ERPC_SLOTS;

	if (UTIL_LIKELY(slot < ERPC_BATCH_SLOTS && h->req_type == WIRE_ERPC_BATCH &&
			h->msg_size <= s->payload))
		return erpc_req_single(s, slot, h, in);
	return erpc_req_part(s, h, in);
}
