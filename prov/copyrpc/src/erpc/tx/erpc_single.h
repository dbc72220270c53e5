/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fast path of a small message, call or reply that leaves in a batch of its own. Called by
 * erpc_send.c, erpc_call.c and erpc_reply.c.
 *
 * If nothing of the session is in flight or waits, and no flag announces more, the packet is made
 * in one step, without opening, marking, flushing and closing a batch. Packet and session state
 * equal those of the general path.
 *
 * Tested in test/unit/erpc/tx/test_erpc_single.c, which compares both paths.
 */
#ifndef ERPC_TX_ERPC_SINGLE_H
#define ERPC_TX_ERPC_SINGLE_H

#include "erpc/base/erpc_body.h"
#include "erpc/tx/erpc_batch.h"
#include "erpc/tx/erpc_respond.h"
#include "util/copy.h"

/**
 * Returns true if a frame of `span` bytes, `len` of them the user's, may leave alone now, and there
 * is a buffer for it.
 */
static inline bool erpc_single_may(const struct erpc_session *s, uint32_t span, size_t len,
				   unsigned flags)
{
	const struct erpc_ep *ep = s->ep;

	return !flags && len <= UTIL_COPY_SHORT && !s->batch.buf && !s->err && !ep->running &&
	       !erpc_batch_gathers(s) && erpc_first_may(s, ERPC_BATCH_HEAD + span) &&
	       erpc_buf_has_tiny(&ep->bufs);
}

/** Takes that buffer. Requires erpc_single_may. */
static inline struct erpc_buf *erpc_single_buf(struct erpc_session *s, uint32_t span)
{
	struct erpc_buf *buf = erpc_buf_take(&s->ep->bufs, 0);

	buf->len = ERPC_BATCH_HEAD + span;
	return buf;
}

/** Sends the buffer after its frame was written. */
static inline void erpc_single_go(struct erpc_session *s, struct erpc_buf *buf)
{
	s->send.posted_pos += ERPC_POS_STEP;
	erpc_batch_is_single(s);
	s->ep->stats.frames++;
	erpc_batch_leave(s, buf, s->send.posted_pos, true);
	erpc_ep_doorbell(s->ep);
}

/**
 * Returns true if a reply of `len` bytes, in a frame of `span`, is the last one that the only
 * waiting batch needs, and may leave at once.
 */
static inline bool erpc_single_replies(const struct erpc_session *s, uint32_t span, size_t len,
				       unsigned flags)
{
	const struct erpc_ep *ep = s->ep;

	return !flags && len <= UTIL_COPY_SHORT && s->resp.calls_pending == 1 &&
	       s->resp.wait_mask && !(s->resp.wait_mask & (s->resp.wait_mask - 1)) &&
	       util_list_is_empty(&s->resp.replies) && !s->resp.release_mask &&
	       s->retained_len <= ERPC_RETAINED_MAX && !s->err && !s->stopped && !ep->running &&
	       ep->out.cnt < ERPC_BURST && ERPC_BATCH_HEAD + span <= s->payload &&
	       erpc_buf_has_tiny(&ep->bufs);
}

/** Sends the reply as the response to the batch that waits for it. */
static inline void erpc_single_reply(struct erpc_session *s, struct erpc_buf *buf)
{
	uint32_t slot = (uint32_t)__builtin_ctz(s->resp.wait_mask);
	struct erpc_rx *rx = &s->rx[slot];
	struct wire_erpc_hdr h = {
		.req_type = WIRE_ERPC_LATE,
		.msg_size = buf->len,
		.session = s->peer_num,
		.kind = WIRE_ERPC_RESP,
		.pkt_num = (uint16_t)(rx->s.req_pkts - 1),
		.req_num = rx->s.req_num,
		.tag = s->peer_tag,
	};

	s->resp.wait_mask = 0;
	util_list_remove(&s->wait_link);
	memset(buf->data, 0, ERPC_BATCH_HEAD);
	rx->resp = buf;
	erpc_server_respond_single(&rx->s, buf->len);
	s->last_resp_ns = s->ep->now_ns;
	s->ep->stats.tx_pkts++;
	erpc_out_put_first(&s->ep->out, s->ah, buf, buf->len, &h, &rx->out);
	erpc_ep_doorbell(s->ep);
}

#endif
