/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handler of RESP, a part of a response. The last part ends the request: frees the slot and
 * acknowledges its messages.
 */
#include <rdma/fi_errno.h>

#include "erpc/bulk/erpc_get.h"
#include "erpc/rx/erpc_deliver.h"
#include "erpc/rx/erpc_pkt.h"
#include "erpc/tx/erpc_kick.h"
#include "erpc/tx/erpc_send.h"
#include "util/bits.h"

/** Delivers replies in the response. Returns true if the buffer was kept. */
static bool erpc_resp_replies(struct erpc_session *s, const struct dev_dgram_in *in)
{
	bool kept = false;
	struct erpc_body *body;

	if (UTIL_LIKELY(erpc_deliver_may_retain(s->ep)))
		return erpc_deliver_response(s, in);
	body = erpc_body_of(s, in, &kept);

	if (!body) {
		erpc_session_fail(s, -FI_ENOMEM, "out of memory for received packets");
		return false;
	}
	erpc_deliver_replies(s, body);
	erpc_body_put(body);
	return kept;
}

static bool erpc_resp_batch(struct erpc_session *s, uint32_t slot, const struct dev_dgram_in *in)
{
	uint32_t seq = s->tx[slot].seq;

	erpc_buf_free(&s->ep->bufs, erpc_kick_end(s, slot));
	erpc_session_freed(s);
	if (slot == ERPC_REPLY_SLOT)
		return false;
	erpc_send_acked(s, seq);
	return in->len > WIRE_ERPC_HDR_LEN && erpc_resp_replies(s, in);
}

/** Handles a response of one packet to a request of one packet that was sent once. */
static bool erpc_resp_single(struct erpc_session *s, uint32_t slot, const struct wire_erpc_hdr *h,
			     const struct dev_dgram_in *in)
{
	s->flow.credits++;
	erpc_kick_acked(s, &s->tx[slot], h);
	return erpc_resp_batch(s, slot, in);
}

/** Handles a part behind a missing one. */
static void erpc_resp_early(struct erpc_session *s, uint32_t slot, const struct wire_erpc_hdr *h,
			    const struct dev_dgram_in *in)
{
	struct erpc_tx *tx = &s->tx[slot];

	if (tx->get_op && erpc_client_keep(&tx->c, h, in->len - WIRE_ERPC_HDR_LEN))
		erpc_get_part(s, slot, h, in, false);
	erpc_kick_early(s, slot);
}

bool erpc_resp_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		  const struct dev_dgram_in *in)
{
	uint32_t slot = h->req_num % ERPC_SLOTS;
	struct erpc_tx *tx = &s->tx[slot];
	uint32_t flying = erpc_client_in_flight(&tx->c);
	enum erpc_verdict verdict;

	if (UTIL_LIKELY(tx->type != WIRE_ERPC_GET &&
			erpc_client_take_single(&tx->c, h, in->len - WIRE_ERPC_HDR_LEN)))
		return erpc_resp_single(s, slot, h, in);
	if (UTIL_UNLIKELY(tx->get_op && !erpc_get_check(s, tx, h, in->len)))
		return false;
	verdict = erpc_client_take(&tx->c, h, in->len - WIRE_ERPC_HDR_LEN);
	if (UTIL_UNLIKELY(verdict != ERPC_TAKE && verdict != ERPC_LAST)) {
		erpc_session_refuse(s, verdict);
		if (verdict == ERPC_EARLY)
			erpc_resp_early(s, slot, h, in);
		else if (verdict == ERPC_STALE)
			erpc_rto_twice(&s->flow.rto);
		return false;
	}
	s->flow.credits += flying - erpc_client_in_flight(&tx->c);
	s->send.pending_mask |= 1u << slot; /* further parts may be requested */
	erpc_kick_acked(s, tx, h);
	if (!tx->get_op)
		return erpc_resp_batch(s, slot, in);
	erpc_get_part(s, slot, h, in, verdict == ERPC_LAST);
	return false;
}
