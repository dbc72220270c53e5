/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* RFR: asks for a part of a response that is longer than a packet; only memory that is lent is. */
#include "erpc/erpc_answer.h"
#include "erpc/erpc_pkt.h"

bool erpc_rfr_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		 const struct dev_dgram_in *in)
{
	uint32_t slot = h->req_num % ERPC_SLOTS;
	enum erpc_verdict verdict =
		erpc_server_take_rfr(&s->rx[slot].s, h, in->len - WIRE_ERPC_HDR_LEN);

	if (verdict == ERPC_TAKE)
		erpc_answer_packet(s, slot, h->pkt_num, WIRE_ERPC_RESP);
	else
		erpc_pkt_refuse(s, verdict);
	return false;
}
