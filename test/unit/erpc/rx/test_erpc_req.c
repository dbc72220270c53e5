/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parts of requests: valid ones are acknowledged and assembled, others change nothing. */
#include <criterion/criterion.h>
#include <string.h>

#include "erpc/rx/erpc_pkt.h"
#include "support/pool_used.h"
#include "unit/erpc/rx/forged.h"

TestSuite(erpc_req, .init = forged_setup);

Test(erpc_req, requests_of_a_wrong_type, .fini = forged_teardown)
{
	struct packet pkt;
	unsigned slot, type;

	for (slot = 0; slot < ERPC_SLOTS; slot++)
		for (type = 0; type < 256; type++) {
			pkt = forged_request(slot);
			if (pkt.h.req_type == type)
				continue;
			pkt.h.req_type = (uint8_t)type;
			forged_refused(&pkt, BAD, "type");
		}
	forged_check_traffic();
}

Test(erpc_req, requests_with_a_wrong_number, .fini = forged_teardown)
{
	struct packet pkt;
	unsigned slot, i;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		for (i = 1; i < 44 - 3; i++) {
			pkt = forged_request(slot);
			pkt.h.req_num ^= 1ull << (i + 3);
			forged_refused(&pkt, STALE, "number");
		}
		pkt = forged_request(slot);
		pkt.h.req_num = (pkt.h.req_num + ERPC_SLOTS) % WIRE_ERPC_REQ_MAX;
		forged_refused(&pkt, STALE, "two requests ahead");
		pkt.h.req_num = (pkt.h.req_num - 3 * ERPC_SLOTS) % WIRE_ERPC_REQ_MAX;
		forged_refused(&pkt, STALE, "long completed");
	}
	forged_check_traffic();
}

/** Sizes and packet numbers that contradict each other, or the length of the packet. */
Test(erpc_req, parts_with_inconsistent_sizes, .fini = forged_teardown)
{
	uint32_t payload = forged_pair.end[0].s->payload, slot;
	struct packet pkt;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		pkt = forged_request(slot);
		pkt.len--;
		forged_refused(&pkt, BAD, "shorter than its size");
		pkt.len += 2;
		forged_refused(&pkt, BAD, "longer than its size");
		pkt = forged_request(slot);
		pkt.h.pkt_num = 1;
		forged_refused(&pkt, BAD, "a second part of one");
		pkt = forged_request(slot);
		pkt.h.msg_size = WIRE_ERPC_MSG_MAX;
		pkt.len = payload;
		forged_refused(&pkt, BAD, "16 MiB");
		pkt.h.msg_size = ERPC_BUF_LARGE + 1;
		forged_refused(&pkt, BAD, "more than a request may have");
		pkt.h.msg_size = 2 * payload;
		pkt.len = payload - 1;
		forged_refused(&pkt, BAD, "a first part that is not full");
		pkt.len = payload;
		pkt.h.pkt_num = 1;
		forged_refused(&pkt, EARLY, "the second part first");
		pkt.h.pkt_num = (1u << 14) - 1;
		forged_refused(&pkt, BAD, "a part behind the end");
	}
	forged_check_traffic();
}

/** A request has begun: packets that do not belong to it change nothing, and it goes on. */
Test(erpc_req, parts_that_contradict_the_first)
{
	struct erpc_session *s = forged_pair.end[0].s;
	uint32_t payload = s->payload;
	struct packet first = forged_request(0), pkt;
	struct before b;

	first.h.msg_size = 4 * payload;
	first.len = payload;
	forged_deliver(&first);
	cr_assert_eq(s->rx[0].s.rx, 1);
	cr_assert_eq(s->rx[0].body->len, 4 * payload);
#define CHANGED(reason)                                                                            \
	do {                                                                                       \
		forged_snapshot(&b);                                                               \
		forged_deliver(&pkt);                                                              \
		cr_expect_eq(forged_counters(forged_pair.end[0].ep->stats)[reason],                \
			     forged_counters(&b.stats)[reason] + 1);                               \
		cr_expect(forged_is_unchanged(&b));                                                \
		cr_expect_eq(pool_used(&forged_pair.end[0].ep->bodies), 1);                        \
	} while (0)
	pkt = first;
	pkt.h.pkt_num = 1;
	pkt.h.msg_size = 3 * payload;
	CHANGED(BAD); /* another size */
	pkt.h.msg_size = 4 * payload;
	pkt.len = payload - 1;
	CHANGED(BAD); /* a part that is not full */
	pkt.len = payload;
	pkt.h.pkt_num = 2;
	forged_deliver(&pkt);
	cr_expect_eq(s->rx[0].s.ahead.word[0], 2, "the part is kept");
	CHANGED(EARLY); /* once */
	pkt = first;
	pkt.h.req_num += ERPC_SLOTS;
	CHANGED(BAD); /* the next request, before the response to this one */
	pkt.h.kind = WIRE_ERPC_RFR;
	pkt.h.req_num = first.h.req_num;
	pkt.h.msg_size = 0;
	pkt.h.pkt_num = 4;
	pkt.len = 0;
	CHANGED(BAD); /* a part of a missing response */
#undef CHANGED
	first.h.pkt_num = 1;
	forged_deliver(&first);
	cr_expect_eq(s->rx[0].s.rx, 3);
	erpc_pair_fini(&forged_pair);
}

/** Records the packets of end 0 for a request of end 1, of 10 packets that arrive together. */
static void receive_ten_parts(void)
{
	struct pair_end *us = &forged_pair.end[0], *them = &forged_pair.end[1];
	uint32_t received = us->received;

	them->len_exact = 10 * us->s->payload - 100;
	cr_assert_eq(pair_send(them, 0), 0);
	erpc_ep_progress(them->ep, forged_pair.net.now_ns);
	fake_net_run(&forged_pair.net, forged_pair.net.now_ns + forged_pair.net.latency_ns);
	forged_record();
	erpc_ep_progress(us->ep, forged_pair.net.now_ns);
	cr_expect_eq(us->received, received + 1, "they are delivered as one");
}

Test(erpc_req, the_response_acknowledges_parts_that_arrived_with_the_last, .fini = forged_teardown)
{
	receive_ten_parts();
	cr_assert_eq(forged_sent.cnt, 1);
	cr_expect_eq(forged_sent.h[0].kind, WIRE_ERPC_RESP);
	cr_expect_eq(forged_sent.h[0].pkt_num, 9);
	forged_check_traffic();
}

/** Each packet measures a round trip there. */
Test(erpc_req, parts_of_a_paced_endpoint_are_acknowledged_each, .fini = forged_teardown)
{
	uint32_t i;

	forged_pair.end[0].ep->paces = true;
	receive_ten_parts();
	cr_assert_eq(forged_sent.cnt, 10);
	for (i = 0; i < 10; i++) {
		cr_expect_eq(forged_sent.h[i].pkt_num, i);
		cr_expect_eq(forged_sent.h[i].kind, i < 9 ? WIRE_ERPC_CR : WIRE_ERPC_RESP);
		cr_expect_lt(forged_sent.h[i].req_type, WIRE_ERPC_GAP);
	}
	forged_pair.end[0].ep->paces = false;
	forged_check_traffic();
}

/** Returns a request of 6 packets, of which none is delivered. */
static struct packet six_parts(void)
{
	struct packet pkt = forged_request(0);

	pkt.len = forged_pair.end[0].s->payload;
	pkt.h.msg_size = 6 * pkt.len;
	return pkt;
}

Test(erpc_req, parts_of_one_progress_call_are_acknowledged_by_one_packet)
{
	struct packet pkt = six_parts();
	uint32_t i;

	forged_record();
	for (i = 0; i < 3; i++) {
		pkt.h.pkt_num = (uint16_t)i;
		forged_send(&pkt);
	}
	forged_progress();
	cr_assert_eq(forged_sent.cnt, 1);
	cr_expect_eq(forged_sent.h[0].kind, WIRE_ERPC_CR);
	cr_expect_lt(forged_sent.h[0].req_type, WIRE_ERPC_GAP);
	cr_expect_eq(forged_sent.h[0].pkt_num, 2);
	pkt.h.pkt_num = 3;
	forged_deliver(&pkt);
	cr_assert_eq(forged_sent.cnt, 2);
	cr_expect_eq(forged_sent.h[1].pkt_num, 3);
	forged_pair.net.hook = NULL;
	erpc_pair_fini(&forged_pair);
}

/** A batch that waits for an earlier one has no response, and its parts hold no credits. */
Test(erpc_req, parts_of_a_batch_without_a_response_are_acknowledged)
{
	struct packet pkt = six_parts();
	struct wire_erpc_batch head = { .seq = forged_pair.end[1].s->send.seq + 1 };
	bool acked = false;
	uint32_t i;

	memcpy(pkt.data, &head, sizeof(head));
	forged_record();
	for (i = 0; i < 6; i++) {
		pkt.h.pkt_num = (uint16_t)i;
		forged_send(&pkt);
	}
	forged_progress();
	for (i = 0; i < forged_sent.cnt; i++) {
		cr_expect_eq(forged_sent.h[i].kind, WIRE_ERPC_CR);
		if (forged_sent.h[i].req_type != WIRE_ERPC_KEPT) {
			cr_expect_eq(forged_sent.h[i].pkt_num, 4);
			acked = true;
		}
	}
	cr_expect(acked);
	cr_expect_eq(forged_sent.cnt, 2, "and KEPT");
	forged_pair.net.hook = NULL;
	erpc_pair_fini(&forged_pair);
}

/** A missing part is reported when the third one behind it arrives, not earlier, and once. */
Test(erpc_req, the_third_part_behind_a_missing_one_reports_the_gap)
{
	struct packet pkt = forged_request(0);
	uint32_t payload = forged_pair.end[0].s->payload, i;

	pkt.h.msg_size = 8 * payload;
	pkt.len = payload;
	forged_deliver(&pkt);
	forged_record();
	for (i = 2; i < 7; i++) {
		pkt.h.pkt_num = (uint16_t)i;
		forged_deliver(&pkt);
		cr_expect_eq(forged_sent.cnt, i >= 4, "after packet %u", i);
	}
	cr_expect_eq(forged_sent.h[0].kind, WIRE_ERPC_CR);
	cr_expect_eq(forged_sent.h[0].req_type, WIRE_ERPC_GAP);
	cr_expect_eq(forged_sent.h[0].pkt_num, 1);
	pkt.h.pkt_num = 1;
	forged_deliver(&pkt);
	cr_assert_eq(forged_sent.cnt, 2, "all of them were kept");
	cr_expect_lt(forged_sent.h[1].req_type, WIRE_ERPC_GAP);
	cr_expect_eq(forged_sent.h[1].pkt_num, 6);
	forged_pair.net.hook = NULL;
	erpc_pair_fini(&forged_pair);
}
