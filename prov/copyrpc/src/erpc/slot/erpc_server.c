/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_server.h. */
#include "erpc/slot/erpc_server.h"

#include "util/bits.h"

void erpc_server_init(struct erpc_server *s, uint64_t first, uint32_t payload)
{
	/* Starts as if the previous request were completed. */
	*s = (struct erpc_server){ .req_num = first - ERPC_SLOTS, .payload = payload };
}

static bool erpc_server_fits(const struct wire_erpc_hdr *h, uint32_t payload, uint32_t len)
{
	uint32_t pkts = wire_erpc_pkts(h->msg_size, payload);

	return pkts <= WIRE_ERPC_PKT_MAX && h->pkt_num < pkts &&
	       len == wire_erpc_pkt_len(h->msg_size, payload, h->pkt_num);
}

static bool erpc_server_is_next(const struct erpc_server *s, uint64_t req_num)
{
	return req_num == ((s->req_num + ERPC_SLOTS) & (WIRE_ERPC_REQ_MAX - 1));
}

/** Returns true if the last request was responded to, so the client may begin another. */
static bool erpc_server_is_idle(const struct erpc_server *s)
{
	return !s->req_pkts || s->responded;
}

static void erpc_server_begin(struct erpc_server *s, const struct wire_erpc_hdr *h)
{
	s->req_num = h->req_num;
	s->req_type = h->req_type;
	s->size = h->msg_size;
	s->req_pkts = wire_erpc_pkts(h->msg_size, s->payload);
	s->rx = 0;
	erpc_ahead_clear(&s->ahead);
	s->responded = false;
}

enum erpc_verdict erpc_server_take_req(struct erpc_server *s, const struct wire_erpc_hdr *h,
				       uint32_t len)
{
	if (!erpc_server_fits(h, s->payload, len))
		return ERPC_BAD;
	if (erpc_server_is_next(s, h->req_num)) {
		if (!erpc_server_is_idle(s))
			return ERPC_BAD;
		if (h->pkt_num)
			return ERPC_EARLY;
		erpc_server_begin(s, h);
	} else if (h->req_num != s->req_num || !s->req_pkts) {
		return ERPC_STALE;
	} else if (h->msg_size != s->size || h->req_type != s->req_type) {
		return ERPC_BAD;
	}
	if (h->pkt_num != s->rx)
		return h->pkt_num < s->rx ? ERPC_REPEAT : ERPC_EARLY;
	s->rx++;
	if (UTIL_UNLIKELY(!erpc_ahead_is_empty(&s->ahead))) {
		erpc_ahead_shift(&s->ahead, 1);
		s->rx += erpc_ahead_take(&s->ahead);
	}
	return s->rx == s->req_pkts ? ERPC_LAST : ERPC_TAKE;
}

bool erpc_server_keep(struct erpc_server *s, const struct wire_erpc_hdr *h)
{
	return h->req_num == s->req_num && erpc_ahead_keep(&s->ahead, h->pkt_num - s->rx);
}

enum erpc_verdict erpc_server_take_rfr(const struct erpc_server *s, const struct wire_erpc_hdr *h,
				       uint32_t len)
{
	if (h->req_num != s->req_num || !s->req_pkts)
		return erpc_server_is_next(s, h->req_num) ? ERPC_EARLY : ERPC_STALE;
	if (!s->responded || len || h->msg_size >= WIRE_ERPC_RUN_MAX || h->pkt_num < s->req_pkts ||
	    erpc_server_part(s, h->pkt_num) + h->msg_size >=
		    wire_erpc_pkts(s->resp_size, s->payload))
		return ERPC_BAD;
	return ERPC_TAKE;
}

bool erpc_server_respond(struct erpc_server *s, uint32_t size)
{
	if (size > WIRE_ERPC_MSG_MAX ||
	    s->req_pkts + wire_erpc_pkts(size, s->payload) - 1 > WIRE_ERPC_PKT_MAX)
		return false;
	s->resp_size = size;
	s->responded = true;
	return true;
}

bool erpc_server_repeat(const struct erpc_server *s, uint16_t *pkt_num, enum wire_erpc_kind *kind)
{
	uint32_t said = s->rx;

	if (said == s->req_pkts && !s->responded)
		said--; /* the response alone acknowledges the last one */
	if (!said)
		return false;
	*pkt_num = (uint16_t)(said - 1);
	*kind = said < s->req_pkts ? WIRE_ERPC_CR : WIRE_ERPC_RESP;
	return true;
}
