/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* CR: a part of a request of ours has arrived, and its credit is back. */
#include "erpc/erpc_kick.h"
#include "erpc/erpc_pkt.h"

bool erpc_cr_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		const struct dev_dgram_in *in)
{
	struct erpc_tx *tx = &s->tx[h->req_num % ERPC_SLOTS];
	uint32_t flying = erpc_client_in_flight(&tx->c);
	enum erpc_verdict verdict = erpc_client_take(&tx->c, h, in->len - WIRE_ERPC_HDR_LEN);

	if (verdict != ERPC_TAKE) {
		erpc_pkt_refuse(s, verdict);
		return false;
	}
	s->credits += flying - erpc_client_in_flight(&tx->c);
	erpc_kick_answered(s, tx, h);
	erpc_session_mark(s);
	return false;
}
