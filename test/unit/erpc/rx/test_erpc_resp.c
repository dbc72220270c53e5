/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Responses: a valid one ends its request. */
#include <criterion/criterion.h>
#include <string.h>

#include "erpc/rx/erpc_pkt.h"
#include "erpc/tx/erpc_kick.h"
#include "unit/erpc/rx/forged.h"

TestSuite(erpc_resp, .init = forged_setup, .fini = forged_teardown);

Test(erpc_resp, responses_without_a_request)
{
	forged_without_request(WIRE_ERPC_RESP);
	forged_check_traffic();
}

Test(erpc_resp, responses_that_do_not_fit_their_request)
{
	uint32_t payload = forged_pair.end[0].s->payload;
	struct packet pkt;

	forged_record();
	cr_assert_eq(pair_send(&forged_pair.end[0], 0), 0);
	cr_assert_eq(forged_pair.end[0].s->send.free_mask, ERPC_FREE_ALL & ~1u);
	erpc_ep_progress(forged_pair.end[0].ep, forged_pair.net.now_ns);
	pkt = forged_response(0, WIRE_ERPC_RESP);
	pkt.h.pkt_num = 1;
	forged_refused(&pkt, BAD, "for a packet that was not sent");
	pkt = forged_response(0, WIRE_ERPC_RESP);
	pkt.len = 8;
	forged_refused(&pkt, BAD, "longer than its size");
	pkt.h.msg_size = 16;
	forged_refused(&pkt, BAD, "shorter than its size");
	pkt.h.msg_size = payload + 1;
	pkt.len = payload;
	forged_refused(&pkt, BAD, "more than fits one packet");
	forged_check_traffic();
}

Test(erpc_resp, responses_that_do_not_fit_their_get)
{
	uint32_t payload = forged_pair.end[0].s->payload, slot = ERPC_GET_SLOT;
	struct packet pkt;

	forged_record();
	cr_assert(pair_get(&forged_pair.end[0]));
	cr_assert_gt(forged_pair.end[0].gets[0].get.len, payload + 1);
	erpc_ep_progress(forged_pair.end[0].ep, forged_pair.net.now_ns);
	pkt = forged_response(slot, WIRE_ERPC_RESP);
	forged_refused(&pkt, BAD, "nothing");
	pkt.h.msg_size = (uint32_t)forged_pair.end[0].gets[0].get.len - 1;
	pkt.len = payload;
	forged_refused(&pkt, BAD, "less");
	pkt.h.msg_size += 2;
	forged_refused(&pkt, BAD, "more");
	pkt.h.msg_size--;
	pkt.len--;
	forged_refused(&pkt, BAD, "a part that is not full");
	pkt.len++;
	pkt.h.pkt_num = (uint16_t)forged_pair.end[0].s->tx[slot].c.tx;
	forged_refused(&pkt, BAD, "a part that was not requested");
	pkt.h.req_type = WIRE_ERPC_REFUSED;
	pkt.h.msg_size = 0;
	pkt.len = 0;
	forged_refused(&pkt, BAD, "a refusal of a part that was not requested");
	forged_check_traffic();
}

/** The peer has the packet, and the acknowledgement is reported once. */
Test(erpc_resp, a_response_ends_its_request_once)
{
	struct pair_end *e = &forged_pair.end[0];
	struct packet pkt;
	uint32_t slot;

	for (slot = 0; slot < 3; slot++) {
		cr_assert_eq(pair_send(e, CORE_SEND_NOW), 0);
		erpc_ep_progress(e->ep, forged_pair.net.now_ns);
	}
	forged_record();
	fake_net_run(&forged_pair.net, forged_pair.net.now_ns + forged_pair.net.latency_ns);
	erpc_ep_progress(forged_pair.end[1].ep, forged_pair.net.now_ns);
	cr_assert_eq(e->s->send.free_mask, ERPC_FREE_ALL & ~7u);
	for (slot = 0; slot < 3; slot++) {
		uint64_t arrived = e->acked;

		pkt = forged_response(slot, WIRE_ERPC_RESP);
		forged_deliver(&pkt);
		cr_expect(e->s->send.free_mask & 1u << slot);
		cr_expect_gt(e->acked, arrived);
		cr_expect_eq(e->s->flow.credits, e->s->credit_max - (2 - slot));
		forged_refused(&pkt, STALE, "once more");
	}
	cr_expect_eq(e->acked, e->s->flow.posted);
	forged_check_traffic();
}
