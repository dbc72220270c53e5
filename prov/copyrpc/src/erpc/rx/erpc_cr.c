/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handler of CR (credit return). A plain CR acknowledges a part of our request and all parts before
 * it, and returns their credits. GAP reports a missing part, which is sent again at once. KEPT
 * reports a batch that arrived before its turn.
 */
#include "erpc/rx/erpc_pkt.h"
#include "erpc/tx/erpc_kick.h"
#include "util/bits.h"

static void erpc_cr_kept(struct erpc_session *s, const struct wire_erpc_hdr *h, uint32_t len)
{
	uint32_t slot = h->req_num % ERPC_SLOTS;
	enum erpc_verdict verdict = erpc_client_take_kept(&s->tx[slot].c, h, len);

	if (verdict == ERPC_TAKE && slot < ERPC_BATCH_SLOTS)
		erpc_kick_kept(s, slot, h->msg_size);
	else
		erpc_session_refuse(s, verdict == ERPC_TAKE ? ERPC_BAD : verdict);
}

bool erpc_cr_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		const struct dev_dgram_in *in)
{
	uint32_t slot = h->req_num % ERPC_SLOTS, len = in->len - WIRE_ERPC_HDR_LEN;
	struct erpc_tx *tx = &s->tx[slot];
	uint32_t flying = erpc_client_in_flight(&tx->c), rx = tx->c.rx;
	bool gap = h->req_type == WIRE_ERPC_GAP;
	enum erpc_verdict verdict;

	if (UTIL_UNLIKELY(h->req_type == WIRE_ERPC_KEPT)) {
		erpc_cr_kept(s, h, len);
		return false;
	}
	verdict = gap ? erpc_client_take_gap(&tx->c, h, len) : erpc_client_take(&tx->c, h, len);
	if (verdict != ERPC_TAKE) {
		erpc_session_refuse(s, verdict);
		return false;
	}
	s->flow.credits += flying - erpc_client_in_flight(&tx->c);
	s->send.pending_mask |= 1u << slot;
	if (tx->c.rx != rx)
		erpc_kick_acked(s, tx, h);
	if (gap)
		erpc_kick_missing(s, slot);
	erpc_session_mark(s);
	return false;
}
