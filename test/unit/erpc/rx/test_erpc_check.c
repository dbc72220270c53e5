/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that are malformed, of no session or from a wrong sender are counted for the first
 * reason, and change nothing.
 */
#include "erpc/rx/erpc_pkt.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "unit/erpc/rx/forged.h"

TestSuite(erpc_check, .init = forged_setup, .fini = forged_teardown);

Test(erpc_check, malformed_packets)
{
	uint8_t bytes[WIRE_ERPC_HDR_LEN];
	struct packet pkt = forged_request(0);
	struct before b;
	uint32_t len;

	wire_erpc_put(bytes, &pkt.h);
	for (len = 0; len < WIRE_ERPC_HDR_LEN; len++) {
		forged_snapshot(&b);
		forged_deliver_bytes(pkt.from, bytes, len);
		forged_only_counted(&b, MALFORMED, "shorter than a header");
	}
	for (len = 0; len < 16; len++) {
		if (len == WIRE_ERPC_MAGIC)
			continue;
		bytes[13] = (uint8_t)((bytes[13] & 0xF) | len << 4);
		forged_snapshot(&b);
		forged_deliver_bytes(pkt.from, bytes, WIRE_ERPC_HDR_LEN);
		forged_only_counted(&b, MALFORMED, "another magic");
	}
	forged_check_traffic();
}

/** Each packet has all the faults of later checks, too. */
Test(erpc_check, the_first_reason_counts)
{
	struct packet pkt = forged_request(0);

	pkt.h.pkt_num = 5; /* out of range */
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
	forged_check_traffic();
}

Test(erpc_check, every_bit_of_the_tag_and_all_other_numbers)
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
	forged_check_traffic();
}

Test(erpc_check, a_wrong_source_address)
{
	uint32_t slot;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		struct packet pkt = forged_request(slot);

		pkt.from = STRANGER;
		forged_refused(&pkt, BAD_SOURCE, "a stranger");
		pkt.from = fake_port_of(forged_pair.end[0].ep->dg)->number;
		forged_refused(&pkt, BAD_SOURCE, "this end itself");
	}
	forged_check_traffic();
}

/** A number leads to its session, which has its peer's identity, until the session is closed. */
Test(erpc_check, a_number_that_was_used_before)
{
	struct erpc_ep *ep = forged_pair.end[0].ep;
	struct erpc_session **place = &ep->sessions[ep->next_num % ERPC_SESSIONS_MAX], *a, *b;

	erpc_pair_join(ep, forged_pair.end[1].ep, &a, &b);
	cr_expect_eq(*place, a);
	cr_expect(!memcmp(erpc_session_peer_id(a), &a->ah->id, sizeof(a->ah->id)));
	erpc_session_close(a);
	cr_expect_eq(*place, NULL);
	erpc_session_close(b);
	forged_check_traffic();
}

/** A session's number may be reused while packets of the first session are in flight. */
Test(erpc_check, a_closed_session)
{
	struct erpc_session *a, *b;
	struct packet pkt = forged_request(0);
	struct copyrpc_stats_packets before;

	erpc_pair_join(forged_pair.end[0].ep, forged_pair.end[1].ep, &a, &b);
	pkt.h.session = a->num;
	pkt.h.tag = a->tag;
	pkt.h.req_num = a->rx[0].s.req_num + ERPC_SLOTS;
	erpc_session_close(a);
	forged_refused(&pkt, NO_SESSION, "gone");
	before = *forged_pair.end[0].ep->stats;
	erpc_session_close(b);
	cr_expect(!memcmp(&before, forged_pair.end[0].ep->stats, sizeof(before)));
	forged_check_traffic();
}
