/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Credit returns: each returns its credits once, and reports select the packets to resend. */
#include <criterion/criterion.h>
#include <string.h>

#include "erpc/rx/erpc_pkt.h"
#include "erpc/tx/erpc_kick.h"
#include "unit/erpc/rx/forged.h"

#define PARTS 10u

/** Sends a batch of PARTS packets from end 0, all of which arrive; drops the response. */
static void begin_batch(void)
{
	struct pair_end *e = &forged_pair.end[0];

	e->len_exact = PARTS * e->s->payload - 100;
	cr_assert_eq(pair_send(e, 0), 0);
	e->len_exact = 0;
	erpc_ep_progress(e->ep, forged_pair.net.now_ns);
	forged_record();
	fake_net_run(&forged_pair.net, forged_pair.net.now_ns + forged_pair.net.latency_ns);
	erpc_ep_progress(forged_pair.end[1].ep, forged_pair.net.now_ns);
	cr_assert_eq(forged_sent.cnt, 1, "the response acknowledges all");
	cr_assert_eq(e->s->flow.credits, e->s->credit_max - PARTS);
	forged_record();
}

static void end_batch(void)
{
	forged_check_traffic();
}

static void return_of(uint32_t pkt_num)
{
	struct packet pkt = forged_response(0, WIRE_ERPC_CR);

	pkt.h.pkt_num = (uint16_t)pkt_num;
	forged_deliver(&pkt);
}

TestSuite(erpc_cr, .init = forged_setup, .fini = forged_teardown);

Test(erpc_cr, credit_returns_without_a_request)
{
	forged_without_request(WIRE_ERPC_CR);
	forged_check_traffic();
}

Test(erpc_cr, the_only_part_of_a_request_has_no_credit_return)
{
	struct packet pkt;

	forged_record();
	cr_assert_eq(pair_send(&forged_pair.end[0], 0), 0);
	erpc_ep_progress(forged_pair.end[0].ep, forged_pair.net.now_ns);
	pkt = forged_response(0, WIRE_ERPC_CR);
	forged_refused(&pkt, BAD, "a credit return");
	pkt.h.req_type = WIRE_ERPC_GAP;
	forged_refused(&pkt, BAD, "a gap with no packet behind it");
	forged_check_traffic();
}

Test(erpc_cr, a_credit_return_covers_earlier_parts_and_counts_once)
{
	static const uint32_t nums[] = { 0, 1, 5, PARTS - 2 };
	const struct erpc_session *s = forged_pair.end[0].s;
	struct packet pkt;
	unsigned i;

	begin_batch();
	for (i = 0; i < 4; i++) {
		return_of(nums[i]);
		cr_expect_eq(s->flow.credits, s->credit_max - PARTS + nums[i] + 1);
		pkt = forged_response(0, WIRE_ERPC_CR);
		for (pkt.h.pkt_num = 0; pkt.h.pkt_num <= nums[i]; pkt.h.pkt_num++)
			forged_refused(&pkt, STALE, "once more");
	}
	pkt.h.pkt_num = PARTS - 1;
	forged_refused(&pkt, BAD, "the last part has a response");
	cr_expect_eq(forged_sent.cnt, 0, "nothing was resent");
	end_batch();
}

Test(erpc_cr, a_gap_resends_the_missing_part_at_once)
{
	const struct erpc_session *s = forged_pair.end[0].s;
	struct packet pkt;
	unsigned i;

	begin_batch();
	pkt = forged_response(0, WIRE_ERPC_CR);
	pkt.h.req_type = WIRE_ERPC_GAP;
	pkt.h.pkt_num = PARTS - 1;
	forged_refused(&pkt, BAD, "no packet behind it was sent");
	pkt.h.pkt_num = 4;
	forged_deliver(&pkt);
	cr_expect_eq(s->ep->unread.losses, 1);
	cr_assert_gt(forged_sent.cnt, 0);
	for (i = 0; i < forged_sent.cnt; i++) {
		cr_expect_eq(forged_sent.h[i].kind, WIRE_ERPC_REQ);
		cr_expect_eq(forged_sent.h[i].pkt_num, 4 + i, "no packet that arrived");
	}
	cr_expect_eq(s->flow.credits, s->credit_max - forged_sent.cnt);
	end_batch();
}

Test(erpc_cr, a_kept_batch_is_not_acknowledged)
{
	const struct erpc_session *s = forged_pair.end[0].s;
	struct packet pkt;
	uint32_t credits;

	begin_batch();
	return_of(PARTS - 2);
	credits = s->flow.credits;
	pkt = forged_response(0, WIRE_ERPC_CR);
	pkt.h.req_type = WIRE_ERPC_KEPT;
	forged_refused(&pkt, BAD, "not the last part");
	pkt.h.pkt_num = PARTS - 1;
	pkt.h.msg_size = 1u << 23; /* behind a batch of another session */
	forged_deliver(&pkt);
	cr_expect_eq(s->flow.credits, credits);
	cr_expect_eq(s->send.free_mask, ERPC_FREE_ALL & ~1u);
	cr_expect_eq(forged_sent.cnt, 0);
	end_batch();
}

Test(erpc_cr, only_batches_are_kept)
{
	struct packet pkt;

	forged_record();
	cr_assert(pair_get(&forged_pair.end[0]));
	erpc_ep_progress(forged_pair.end[0].ep, forged_pair.net.now_ns);
	pkt = forged_response(ERPC_GET_SLOT, WIRE_ERPC_CR);
	pkt.h.req_type = WIRE_ERPC_KEPT;
	forged_refused(&pkt, BAD, "a get");
	forged_check_traffic();
}
