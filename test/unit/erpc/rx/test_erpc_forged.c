/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that no honest peer sends (docs/datagram-protocol.md, section 7): each is refused for the first
 * reason there is, counted there, and has changed nothing else.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/tx/erpc_kick.h"
#include "unit/erpc/rx/forged.h"

/* ---- before a session is known ---- */

Test(erpc_forged, what_is_no_packet, .init = forged_setup, .fini = forged_teardown)
{
	uint8_t bytes[WIRE_ERPC_HDR_LEN];
	struct packet pkt = forged_request(0);
	struct before b;
	uint32_t len;

	wire_erpc_put(bytes, &pkt.h);
	for (len = 0; len < WIRE_ERPC_HDR_LEN; len++) {
		forged_look(&b);
		forged_deliver_bytes(pkt.from, bytes, len);
		forged_only_counted(&b, MALFORMED, "shorter than a header");
	}
	for (len = 0; len < 16; len++) {
		if (len == WIRE_ERPC_MAGIC)
			continue;
		bytes[13] = (uint8_t)((bytes[13] & 0xF) | len << 4);
		forged_look(&b);
		forged_deliver_bytes(pkt.from, bytes, WIRE_ERPC_HDR_LEN);
		forged_only_counted(&b, MALFORMED, "another magic");
	}
	forged_goes_on();
}

/** Each packet has all the faults that are looked for later, too. */
Test(erpc_forged, the_first_reason_counts, .init = forged_setup, .fini = forged_teardown)
{
	struct packet pkt = forged_request(0);

	pkt.h.pkt_num = 5; /* it has no place */
	forged_refused(&pkt, BAD, "number");
	forged_pair.end[0].s->err = -FI_EIO;
	forged_refused(&pkt, BAD_STATE, "state");
	pkt.from = STRANGER;
	forged_refused(&pkt, BAD_SOURCE, "source");
	pkt.h.tag ^= 1;
	forged_refused(&pkt, BAD_TOKEN, "token");
	pkt.h.session++;
	forged_refused(&pkt, NO_SESSION, "session");
	forged_pair.end[0].s->err = 0;
	forged_goes_on();
}

Test(erpc_forged, every_bit_of_the_tag_and_all_other_numbers, .init = forged_setup,
     .fini = forged_teardown)
{
	struct packet pkt;
	unsigned bit;

	for (bit = 0; bit < 16; bit++) {
		pkt = forged_request(0);
		pkt.h.tag ^= (uint16_t)(1u << bit);
		forged_refused(&pkt, BAD_TOKEN, "tag");
		pkt = forged_request(0);
		pkt.h.session ^= (uint16_t)(1u << bit);
		forged_refused(&pkt, NO_SESSION, "session");
	}
	forged_goes_on();
}

Test(erpc_forged, who_knows_everything_and_is_somebody_else, .init = forged_setup,
     .fini = forged_teardown)
{
	uint32_t slot;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		struct packet pkt = forged_request(slot);

		pkt.from = STRANGER;
		forged_refused(&pkt, BAD_SOURCE, "a stranger");
		pkt.from = fake_port_of(forged_pair.end[0].port->dg)->number;
		forged_refused(&pkt, BAD_SOURCE, "we ourselves");
	}
	forged_goes_on();
}

/** A session's number may be another's tomorrow, and packets of the first one still be on their way. */
Test(erpc_forged, a_session_that_is_gone, .init = forged_setup, .fini = forged_teardown)
{
	struct erpc_session *a, *b;
	struct packet pkt = forged_request(0);
	struct erpc_stats before;

	erpc_pair_join(forged_pair.end[0].port, forged_pair.end[1].port, &a, &b);
	pkt.h.session = a->num;
	pkt.h.tag = a->tag;
	pkt.h.req_num = a->rx[0].s.req_num + ERPC_SLOTS;
	erpc_session_close(a);
	forged_refused(&pkt, NO_SESSION, "gone");
	before = forged_pair.end[0].port->stats;
	erpc_session_close(b);
	cr_expect(!memcmp(&before, &forged_pair.end[0].port->stats, sizeof(before)));
	forged_goes_on();
}

/* ---- requests ---- */

Test(erpc_forged, requests_that_are_not_their_slots, .init = forged_setup, .fini = forged_teardown)
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
	forged_goes_on();
}

Test(erpc_forged, requests_of_another_time, .init = forged_setup, .fini = forged_teardown)
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
		forged_refused(&pkt, STALE, "one too far");
		pkt.h.req_num = (pkt.h.req_num - 3 * ERPC_SLOTS) % WIRE_ERPC_REQ_MAX;
		forged_refused(&pkt, STALE, "long over");
	}
	forged_goes_on();
}

/** Sizes and packet numbers that do not agree with each other, or with the length of the packet. */
Test(erpc_forged, requests_whose_parts_do_not_fit, .init = forged_setup, .fini = forged_teardown)
{
	uint32_t payload = forged_pair.end[0].s->payload, slot;
	struct packet pkt;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		pkt = forged_request(slot);
		pkt.len--;
		forged_refused(&pkt, BAD, "shorter than it says");
		pkt.len += 2;
		forged_refused(&pkt, BAD, "longer than it says");
		pkt = forged_request(slot);
		pkt.h.pkt_num = 1;
		forged_refused(&pkt, BAD, "a second one of one");
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
		forged_refused(&pkt, BAD, "a part far behind its end");
	}
	forged_goes_on();
}

/** A request has begun: what does not belong to it changes nothing of it, and then it goes on. */
Test(erpc_forged, a_request_that_changes_its_mind, .init = forged_setup)
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
		forged_look(&b);                                                                   \
		forged_deliver(&pkt);                                                              \
		cr_expect_eq(forged_counters(&forged_pair.end[0].port->stats)[reason],             \
			     forged_counters(&b.stats)[reason] + 1);                               \
		cr_expect(forged_is_same(&b));                                                     \
		cr_expect_eq(forged_pair.end[0].port->bodies.used_cnt, 1);                         \
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
	cr_expect_eq(s->rx[0].s.ahead, 2, "it is kept");
	CHANGED(EARLY); /* once */
	pkt = first;
	pkt.h.req_num += ERPC_SLOTS;
	CHANGED(BAD); /* the next one, before this one was answered */
	pkt.h.kind = WIRE_ERPC_RFR;
	pkt.h.req_num = first.h.req_num;
	pkt.h.msg_size = 0;
	pkt.h.pkt_num = 4;
	pkt.len = 0;
	CHANGED(BAD); /* part of a response that there is not */
#undef CHANGED
	first.h.pkt_num = 1;
	forged_deliver(&first);
	cr_expect_eq(s->rx[0].s.rx, 3);
	erpc_pair_fini(&forged_pair);
}

Test(erpc_forged, parts_of_responses_that_are_not_there, .init = forged_setup,
     .fini = forged_teardown)
{
	struct packet pkt;
	uint32_t slot;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		const struct erpc_rx *rx = &forged_pair.end[0].s->rx[slot];
		bool had = rx->s.req_pkts && rx->said != WIRE_ERPC_REFUSED;

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
		forged_refused(&pkt, had ? BAD : STALE, "where a part of the request was");
		pkt.h.pkt_num = 1;
		pkt.len = 1;
		forged_refused(&pkt, had ? BAD : STALE, "with bytes");
		pkt.h.req_num -= ERPC_SLOTS;
		forged_refused(&pkt, STALE, "of a request that is over");
	}
	forged_goes_on();
}

/* ---- answers ---- */

Test(erpc_forged, answers_that_nobody_waits_for, .init = forged_setup, .fini = forged_teardown)
{
	static const enum wire_erpc_kind kinds[] = { WIRE_ERPC_CR, WIRE_ERPC_RESP };
	struct packet pkt;
	uint32_t slot, k;

	for (slot = 0; slot < ERPC_SLOTS; slot++)
		for (k = 0; k < 2; k++) {
			pkt = forged_response(slot, kinds[k]);
			forged_refused(&pkt, STALE, "to nothing");
			pkt.h.req_type = WIRE_ERPC_REFUSED;
			forged_refused(&pkt, STALE, "a refusal of nothing");
			pkt.h.req_num -= ERPC_SLOTS;
			forged_refused(&pkt, STALE, "to what is over");
			pkt.h.req_num += 2 * ERPC_SLOTS;
			forged_refused(&pkt, BAD, "to what was never asked");
		}
	forged_goes_on();
}

Test(erpc_forged, answers_that_do_not_fit_what_is_under_way, .init = forged_setup,
     .fini = forged_teardown)
{
	uint32_t payload = forged_pair.end[0].s->payload;
	struct packet pkt;

	forged_pair.net.hook = forged_swallow;
	cr_assert_eq(pair_send(&forged_pair.end[0], 0), 0);
	cr_assert_eq(forged_pair.end[0].s->free_mask, ERPC_FREE_ALL & ~1u);
	erpc_port_progress(forged_pair.end[0].port, forged_pair.net.now_ns);
	pkt = forged_response(0, WIRE_ERPC_CR);
	forged_refused(&pkt, BAD, "the only part of a request has no CR");
	pkt = forged_response(0, WIRE_ERPC_RESP);
	pkt.h.pkt_num = 1;
	forged_refused(&pkt, BAD, "to a packet that was not sent");
	pkt = forged_response(0, WIRE_ERPC_RESP);
	pkt.len = 8;
	forged_refused(&pkt, BAD, "longer than it says");
	pkt.h.msg_size = 16;
	forged_refused(&pkt, BAD, "shorter than it says");
	pkt.h.msg_size = payload + 1;
	pkt.len = payload;
	forged_refused(&pkt, BAD, "more than fits one packet");
	forged_pair.net.hook = NULL;
	forged_goes_on();
}

Test(erpc_forged, answers_that_are_not_what_a_get_asked_for, .init = forged_setup,
     .fini = forged_teardown)
{
	uint32_t payload = forged_pair.end[0].s->payload, slot = ERPC_GET_SLOT;
	struct packet pkt;

	forged_pair.net.hook = forged_swallow;
	cr_assert(pair_get(&forged_pair.end[0]));
	cr_assert_gt(forged_pair.end[0].gets[0].get.len, payload + 1);
	erpc_port_progress(forged_pair.end[0].port, forged_pair.net.now_ns);
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
	forged_refused(&pkt, BAD, "a part that was not asked for");
	pkt.h.req_type = WIRE_ERPC_REFUSED;
	pkt.h.msg_size = 0;
	pkt.len = 0;
	forged_refused(&pkt, BAD, "a refusal of what was not asked for");
	forged_pair.net.hook = NULL;
	forged_goes_on();
}
