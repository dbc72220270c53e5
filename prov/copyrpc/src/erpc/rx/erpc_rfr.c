/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handler of RFR (request for response): sends further parts of a response, which is exposed
 * memory. An RFR may arrive while its request is lost; then the gap is reported.
 */
#include "erpc/rx/erpc_pkt.h"
#include "erpc/tx/erpc_respond.h"

bool erpc_rfr_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		 const struct dev_dgram_in *in)
{
	uint32_t slot = h->req_num % ERPC_SLOTS;
	struct erpc_rx *rx = &s->rx[slot];
	enum erpc_verdict verdict = erpc_server_take_rfr(&rx->s, h, in->len - WIRE_ERPC_HDR_LEN);

	if (verdict == ERPC_TAKE) {
		erpc_respond_run(s, slot, h->pkt_num, h->msg_size + 1);
		return false;
	}
	/* A client with several requests in flight may not have received the refusal yet. */
	if (verdict == ERPC_BAD && h->req_num == rx->s.req_num &&
	    rx->resp_type == WIRE_ERPC_REFUSED)
		verdict = ERPC_STALE;
	erpc_session_refuse(s, verdict);
	if (verdict == ERPC_EARLY)
		erpc_req_early(s, slot, h);
	return false;
}
