/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_client.h. */
#include "erpc/slot/erpc_client.h"

void erpc_client_init(struct erpc_client *c, uint64_t first, uint32_t payload)
{
	*c = (struct erpc_client){ .req_num = first, .payload = payload };
}

bool erpc_client_begin(struct erpc_client *c, uint32_t size, uint32_t resp_max)
{
	uint32_t req_pkts = wire_erpc_pkts(size, c->payload);

	if (size > WIRE_ERPC_MSG_MAX || resp_max > WIRE_ERPC_MSG_MAX ||
	    req_pkts + wire_erpc_pkts(resp_max, c->payload) - 1 > WIRE_ERPC_PKT_MAX)
		return false;
	c->req_pkts = (uint16_t)req_pkts;
	c->resp_pkts = 0;
	c->resp_max = resp_max;
	c->tx = 0;
	c->tx_max = 0;
	c->rx = 0;
	return true;
}

enum wire_erpc_kind erpc_client_next(struct erpc_client *c, uint16_t *pkt_num)
{
	*pkt_num = c->tx++;
	if (c->tx > c->tx_max)
		c->tx_max = c->tx;
	return *pkt_num < c->req_pkts ? WIRE_ERPC_REQ : WIRE_ERPC_RFR;
}

/** Acknowledges all packets before `pkt_num`, and those received early behind them. */
static void erpc_client_pass(struct erpc_client *c, uint32_t pkt_num)
{
	if (!erpc_ahead_is_empty(&c->ahead)) {
		uint32_t n = pkt_num - c->rx;

		erpc_ahead_shift(&c->ahead, n < ERPC_AHEAD_MAX ? n : ERPC_AHEAD_MAX);
		pkt_num += erpc_ahead_take(&c->ahead);
	}
	c->rx = (uint16_t)pkt_num;
	if (c->tx < c->rx) /* counted as lost, but late */
		c->tx = c->rx;
}

/** Takes a part of the response. The first part sets the size. */
static enum erpc_verdict erpc_client_take_resp(struct erpc_client *c, const struct wire_erpc_hdr *h,
					       uint32_t len)
{
	uint32_t size = c->resp_pkts ? c->resp_size : h->msg_size;
	uint32_t part = h->pkt_num - (c->req_pkts - 1);

	if (h->msg_size != size || size > c->resp_max ||
	    len != wire_erpc_pkt_len(size, c->payload, part))
		return ERPC_BAD;
	c->resp_size = size;
	c->resp_pkts = (uint16_t)wire_erpc_pkts(size, c->payload);
	erpc_client_pass(c, h->pkt_num + 1u);
	return c->rx == c->req_pkts + c->resp_pkts - 1 ? ERPC_LAST : ERPC_TAKE;
}

/** Returns true if the packet can belong to the current request. */
static bool erpc_client_expects(const struct erpc_client *c, const struct wire_erpc_hdr *h,
				uint32_t len)
{
	bool is_cr = h->kind == WIRE_ERPC_CR;

	return h->pkt_num < c->tx_max && is_cr == (h->pkt_num < c->req_pkts - 1) && !(is_cr && len);
}

/** Returns TAKE for a packet of the current request, else the verdict. */
static inline enum erpc_verdict erpc_client_is_current(const struct erpc_client *c,
						       const struct wire_erpc_hdr *h)
{
	if ((h->kind != WIRE_ERPC_CR && h->kind != WIRE_ERPC_RESP) || h->req_num > c->req_num)
		return ERPC_BAD;
	return erpc_client_is_free(c) || h->req_num < c->req_num ? ERPC_STALE : ERPC_TAKE;
}

/** Returns TAKE for a packet of the current request that is valid and new, else the verdict. */
static inline enum erpc_verdict erpc_client_place(const struct erpc_client *c,
						  const struct wire_erpc_hdr *h, uint32_t len)
{
	enum erpc_verdict verdict = erpc_client_is_current(c, h);

	if (verdict != ERPC_TAKE)
		return verdict;
	if (!erpc_client_expects(c, h, len))
		return ERPC_BAD;
	return h->pkt_num < c->rx ? ERPC_STALE : ERPC_TAKE;
}

enum erpc_verdict erpc_client_take(struct erpc_client *c, const struct wire_erpc_hdr *h,
				   uint32_t len)
{
	enum erpc_verdict verdict = erpc_client_place(c, h, len);

	if (verdict != ERPC_TAKE)
		return verdict;
	/* No part of the response may be missing: it has bytes. */
	if (h->pkt_num > c->rx && h->pkt_num >= c->req_pkts)
		return ERPC_EARLY;
	if (h->kind == WIRE_ERPC_RESP)
		return erpc_client_take_resp(c, h, len);
	erpc_client_pass(c, h->pkt_num + 1u);
	return ERPC_TAKE;
}

bool erpc_client_keep(struct erpc_client *c, const struct wire_erpc_hdr *h, uint32_t len)
{
	uint32_t part = h->pkt_num - (c->req_pkts - 1);

	return len == wire_erpc_pkt_len(c->resp_size, c->payload, part) &&
	       erpc_ahead_keep(&c->ahead, h->pkt_num - c->rx);
}

enum erpc_verdict erpc_client_take_gap(struct erpc_client *c, const struct wire_erpc_hdr *h,
				       uint32_t len)
{
	enum erpc_verdict verdict = erpc_client_is_current(c, h);

	if (verdict != ERPC_TAKE)
		return verdict;
	/* A packet behind the missing one was sent. */
	if (h->pkt_num >= c->req_pkts || h->pkt_num + 1u >= c->tx_max || len)
		return ERPC_BAD;
	if (h->pkt_num < c->rx)
		return ERPC_STALE;
	erpc_client_pass(c, h->pkt_num);
	return ERPC_TAKE;
}

enum erpc_verdict erpc_client_take_kept(const struct erpc_client *c, const struct wire_erpc_hdr *h,
					uint32_t len)
{
	enum erpc_verdict verdict = erpc_client_is_current(c, h);

	if (verdict != ERPC_TAKE)
		return verdict;
	return h->pkt_num != c->req_pkts - 1 || h->pkt_num >= c->tx_max || len ? ERPC_BAD
									       : ERPC_TAKE;
}

uint32_t erpc_client_go_back(struct erpc_client *c)
{
	uint32_t credits = erpc_client_in_flight(c);

	c->tx = c->rx;
	return credits;
}
