/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests for parts of responses: parts of exposed memory, or none. */
#include <criterion/criterion.h>
#include <string.h>

#include "erpc/rx/erpc_pkt.h"
#include "unit/erpc/rx/forged.h"

TestSuite(erpc_rfr, .init = forged_setup, .fini = forged_teardown);

Test(erpc_rfr, requests_for_parts_that_do_not_exist)
{
	struct packet pkt;
	uint32_t slot;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		const struct erpc_rx *rx = &forged_pair.end[0].s->rx[slot];
		bool had = rx->s.req_pkts && rx->resp_type != WIRE_ERPC_REFUSED;

		pkt = forged_request(slot);
		pkt.h.kind = WIRE_ERPC_RFR;
		pkt.h.msg_size = 0;
		pkt.h.pkt_num = 1;
		pkt.len = 0;
		forged_refused(&pkt, EARLY, "of a request that has not begun");
		pkt.h.req_num -= ERPC_SLOTS;
		pkt.h.pkt_num = (1u << 14) - 1;
		forged_refused(&pkt, had ? BAD : STALE, "behind the end");
		pkt.h.pkt_num = 0;
		forged_refused(&pkt, had ? BAD : STALE, "in place of a part of the request");
		pkt.h.pkt_num = 1;
		pkt.len = 1;
		forged_refused(&pkt, had ? BAD : STALE, "with bytes");
		pkt.h.req_num -= ERPC_SLOTS;
		forged_refused(&pkt, STALE, "of a completed request");
	}
	forged_check_traffic();
}

#define PARTS 5u

/** Requests the victim's memory. Returns the type of the response. */
static enum wire_erpc_sent respond_to(const struct core_exposure *exposure, const uint8_t *memory,
				      uint32_t len)
{
	struct wire_erpc_get req = { .addr = (uintptr_t)memory, .key = exposure->key, .len = len };
	struct packet pkt = forged_victim_packet(ERPC_GET_SLOT, WIRE_ERPC_REQ);

	memcpy(pkt.data, &req, sizeof(req));
	pkt.h.msg_size = pkt.len = sizeof(req);
	forged_record();
	forged_deliver(&pkt);
	cr_assert_eq(forged_sent.cnt, 1);
	cr_assert_eq(forged_sent.h[0].kind, WIRE_ERPC_RESP);
	return forged_sent.h[0].req_type;
}

static struct packet part_of_it(uint32_t pkt_num)
{
	struct packet pkt = forged_victim_packet(ERPC_GET_SLOT, WIRE_ERPC_RFR);

	pkt.h.req_num -= ERPC_SLOTS;
	pkt.h.req_type = 0;
	pkt.h.msg_size = 0;
	pkt.h.pkt_num = (uint16_t)pkt_num;
	pkt.len = 0;
	return pkt;
}

Test(erpc_rfr, parts_are_sent_in_any_order_and_repeatedly)
{
	static const uint32_t order[] = { 1, 2, 3, 2, 4, 1, 4 };
	uint32_t payload = forged_pair.end[0].s->payload, len = (PARTS - 1) * payload + 7, i;
	uint8_t *memory = forged_pair.end[0].memory;
	struct core_chan *chan;
	struct core_exposure exposure;
	struct packet pkt;

	for (i = 0; i < PARTS; i++)
		memory[i * payload] = (uint8_t)(100 + i);
	forged_victim_open(NULL);
	chan = &forged_victim->conn.chan;
	cr_assert_eq(chan->ops->expose(chan, memory, len, &exposure), 0);
	cr_assert_neq(respond_to(&exposure, memory, len), WIRE_ERPC_REFUSED);
	cr_expect_eq(forged_sent.first[0], 100);
	cr_expect_eq(forged_sent.len[0], payload);
	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		pkt = part_of_it(order[i]);
		forged_record();
		forged_deliver(&pkt);
		cr_assert_eq(forged_sent.cnt, 1);
		cr_expect_eq(forged_sent.h[0].kind, WIRE_ERPC_RESP);
		cr_expect_eq(forged_sent.h[0].pkt_num, order[i]);
		cr_expect_eq(forged_sent.h[0].msg_size, len);
		cr_expect_eq(forged_sent.first[0], 100 + order[i]);
		cr_expect_eq(forged_sent.len[0], order[i] == PARTS - 1 ? 7 : payload);
	}
	pkt = part_of_it(1);
	pkt.h.msg_size = PARTS - 2;
	forged_record();
	forged_deliver(&pkt);
	cr_assert_eq(forged_sent.cnt, PARTS - 1, "all of them at once");
	for (i = 0; i < PARTS - 1; i++) {
		cr_expect_eq(forged_sent.h[i].pkt_num, i + 1);
		cr_expect_eq(forged_sent.first[i], 101 + i);
	}
	pkt.h.msg_size++;
	forged_refused(&pkt, BAD, "and one more");
	pkt = part_of_it(PARTS);
	forged_refused(&pkt, BAD, "there is no further part");
	chan->ops->unexpose(chan, &exposure);
	forged_victim_close();
	forged_check_traffic();
}

/** A client that requested several parts at once may not have received the refusal yet. */
Test(erpc_rfr, further_requests_after_a_refusal_are_stale)
{
	uint8_t *memory = forged_pair.end[0].memory;
	struct core_exposure none = { .key = 12345 };
	struct packet pkt;
	uint32_t i;

	forged_victim_open(NULL);
	cr_assert_eq(respond_to(&none, memory, 4000), WIRE_ERPC_REFUSED);
	for (i = 1; i < PARTS; i++) {
		pkt = part_of_it(i);
		forged_refused(&pkt, STALE, "a part of a refused request");
	}
	cr_expect_eq(forged_victim->err, 0);
	forged_victim_close();
	forged_check_traffic();
}
