/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_get.h. */
#include "erpc/bulk/erpc_get.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "engine/eng_stats.h"
#include "erpc/bulk/erpc_direct.h"
#include "erpc/tx/erpc_kick.h"
#include "util/copy.h"

#define ERPC_GET_MASK (((1u << ERPC_GET_SLOTS) - 1) << ERPC_GET_SLOT)

int erpc_get(struct core_chan *chan, struct core_get *get)
{
	struct erpc_session *s = erpc_session_of(chan);
	struct erpc_get_op *op = (struct erpc_get_op *)get->engine;

	if (s->err)
		return s->err;
	get->status = 0;
	if (!get->len)
		return 1;
	op->get = get;
	op->requested = 0;
	op->open = 0;
	util_list_push_back(&s->gets.pending, &op->link);
	s->send.waits |= ERPC_WAITS_GETS;
	util_list_push_back(&s->gets.open, &op->open_link);
	erpc_session_mark(s);
	if (s->ep->running)
		return 0;
	erpc_get_flush(s);
	erpc_kick(s);
	erpc_ep_doorbell(s->ep);
	return 0;
}

/** Sends one request of a get. Returns false without memory. */
static bool erpc_get_begin(struct erpc_session *s, uint32_t slot, struct erpc_get_op *op)
{
	uint64_t rest = op->get->len - op->requested;
	struct wire_erpc_get req = {
		.addr = op->get->remote_addr + op->requested,
		.key = op->get->remote_key,
		.len = rest < s->gets.max ? (uint32_t)rest : s->gets.max,
	};
	struct erpc_buf *buf = erpc_buf_alloc(&s->ep->bufs, sizeof(req));

	if (!buf)
		return false;
	memcpy(buf->data, &req, sizeof(req));
	buf->len = sizeof(req);
	erpc_kick_begin(s, slot, WIRE_ERPC_GET, buf, req.len);
	erpc_client_knows(&s->tx[slot].c);
	s->tx[slot].get_op = op;
	s->tx[slot].c.window = (uint16_t)s->get_window;
	s->tx[slot].get_off = op->requested;
	erpc_direct_begin(s);
	op->requested += req.len;
	op->open++;
	if (op->requested == op->get->len)
		util_list_remove(&op->link);
	return true;
}

void erpc_get_flush(struct erpc_session *s)
{
	while (!util_list_is_empty(&s->gets.pending) && (s->send.free_mask & ERPC_GET_MASK)) {
		uint32_t slot = (uint32_t)__builtin_ctz(s->send.free_mask & ERPC_GET_MASK);

		if (!erpc_get_begin(
			    s, slot,
			    UTIL_CONTAINER_OF(s->gets.pending.next, struct erpc_get_op, link))) {
			erpc_session_mark(s);
			return;
		}
	}
	if (util_list_is_empty(&s->gets.pending))
		s->send.waits &= ~ERPC_WAITS_GETS;
}

/** Ends a request of a get, and the get with its last request. */
static void erpc_get_req_done(struct erpc_session *s, uint32_t slot, int status)
{
	struct erpc_tx *tx = &s->tx[slot];
	struct erpc_get_op *op = tx->get_op;
	struct core_get *get = op->get;

	erpc_buf_free(&s->ep->bufs, erpc_kick_end(s, slot));
	tx->get_op = NULL;
	erpc_session_mark(s);
	if (status) {
		get->status = status;
		util_list_remove(&op->link); /* no further requests */
	}
	if (--op->open || (!util_list_is_empty(&op->link)))
		return;
	util_list_remove(&op->open_link);
	eng_stats_get(&s->conn.chan, get);
	s->ep->up->on_get_done(&s->conn.chan, get);
}

bool erpc_get_check(struct erpc_session *s, struct erpc_tx *tx, const struct wire_erpc_hdr *h,
		    uint32_t pkt_len)
{
	if (h->req_num != tx->c.req_num)
		return true; /* the checks of the slot decide */
	if (h->req_type == WIRE_ERPC_REFUSED && pkt_len == WIRE_ERPC_HDR_LEN &&
	    h->kind == WIRE_ERPC_RESP && h->pkt_num < tx->c.tx_max) {
		erpc_get_req_done(s, (uint32_t)(tx - s->tx), -FI_EACCES);
		return false;
	}
	if (h->msg_size == tx->c.resp_max)
		return true;
	erpc_session_refuse(s, ERPC_BAD);
	return false;
}

void erpc_get_part(struct erpc_session *s, uint32_t slot, const struct wire_erpc_hdr *h,
		   const struct dev_dgram_in *in, bool last)
{
	struct erpc_tx *tx = &s->tx[slot];
	struct core_get *get = tx->get_op->get;
	uint64_t part = erpc_get_part_of(tx, h->pkt_num);

	erpc_direct_received(s, slot);
	if (!s->ep->direct_placed)
		util_iov_scatter(get->iov, get->iov_cnt, tx->get_off + part * s->payload,
				 in->data + WIRE_ERPC_HDR_LEN, in->len - WIRE_ERPC_HDR_LEN);
	if (last)
		erpc_get_req_done(s, slot, 0);
	else
		erpc_session_mark(s);
}

void erpc_get_fail(struct erpc_session *s, int err)
{
	struct util_list *first;
	uint32_t slot;

	for (slot = ERPC_GET_SLOT; slot < ERPC_GET_SLOT + ERPC_GET_SLOTS; slot++) {
		if (!s->tx[slot].get_op)
			continue;
		erpc_buf_free(&s->ep->bufs, erpc_kick_end(s, slot));
		s->tx[slot].get_op = NULL;
	}
	while ((first = util_list_pop(&s->gets.open))) {
		struct erpc_get_op *op = UTIL_CONTAINER_OF(first, struct erpc_get_op, open_link);

		util_list_remove(&op->link);
		op->get->status = err;
		eng_stats_get(&s->conn.chan, op->get);
		s->ep->up->on_get_done(&s->conn.chan, op->get);
	}
}
