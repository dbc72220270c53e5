/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Client side of a slot, packet by packet, with invalid packets at each step. */
#include "erpc/slot/erpc_client.h"

#include <criterion/criterion.h>
#include <string.h>

#include "support/rng.h"
#include "wire/wire_erpc_msg.h"

#define PAYLOAD 10u

static struct erpc_client c;

static void begin(uint32_t req_pkts, uint32_t resp_max)
{
	erpc_client_init(&c, 3, PAYLOAD);
	cr_assert(erpc_client_begin(&c, req_pkts * PAYLOAD, resp_max));
}

static void send_all(void)
{
	uint16_t pkt_num;

	while (erpc_client_sendable(&c))
		erpc_client_next(&c, &pkt_num);
}

static enum erpc_verdict take(enum wire_erpc_kind kind, uint16_t pkt_num, uint32_t size,
			      uint32_t len)
{
	struct wire_erpc_hdr h = {
		.kind = kind, .pkt_num = pkt_num, .req_num = 3, .msg_size = size
	};

	return erpc_client_take(&c, &h, len);
}

Test(erpc_client, small_request_is_one_packet_each_way)
{
	uint16_t pkt_num;

	begin(1, PAYLOAD);
	cr_expect_eq(erpc_client_sendable(&c), 1);
	cr_expect_eq(erpc_client_next(&c, &pkt_num), WIRE_ERPC_REQ);
	cr_expect_eq(pkt_num, 0);
	cr_expect_eq(erpc_client_sendable(&c), 0);
	cr_expect_eq(take(WIRE_ERPC_RESP, 0, 4, 4), ERPC_LAST);
	cr_expect_eq(c.resp_size, 4);
	cr_expect_eq(erpc_client_end(&c), 0);
	cr_expect(erpc_client_is_free(&c));
	cr_expect_eq(c.req_num, 3 + ERPC_SLOTS);
}

Test(erpc_client, large_messages_follow_the_table)
{
	uint16_t pkt_num;

	begin(3, 3 * PAYLOAD);
	cr_expect_eq(erpc_client_sendable(&c), 3);
	send_all();
	cr_expect_eq(take(WIRE_ERPC_CR, 0, 0, 0), ERPC_TAKE);
	cr_expect_eq(take(WIRE_ERPC_CR, 1, 0, 0), ERPC_TAKE);
	cr_expect_eq(erpc_client_sendable(&c), 0, "the length of the response is unknown");
	cr_expect_eq(take(WIRE_ERPC_RESP, 2, 25, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(erpc_client_sendable(&c), 2);
	cr_expect_eq(erpc_client_next(&c, &pkt_num), WIRE_ERPC_RFR);
	cr_expect_eq(pkt_num, 3);
	cr_expect_eq(erpc_client_next(&c, &pkt_num), WIRE_ERPC_RFR);
	cr_expect_eq(pkt_num, 4);
	cr_expect_eq(take(WIRE_ERPC_RESP, 3, 25, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(take(WIRE_ERPC_RESP, 4, 25, 5), ERPC_LAST);
}

Test(erpc_client, invalid_packets_change_nothing)
{
	struct erpc_client before;

	begin(3, 2 * PAYLOAD);
	send_all();
	cr_assert_eq(take(WIRE_ERPC_CR, 0, 0, 0), ERPC_TAKE);
	before = c;
	cr_expect_eq(take(WIRE_ERPC_CR, 0, 0, 0), ERPC_STALE, "again");
	cr_expect_eq(take(WIRE_ERPC_CR, 1, 0, 1), ERPC_BAD, "CR with bytes");
	cr_expect_eq(take(WIRE_ERPC_CR, 2, 0, 0), ERPC_BAD, "CR for the last packet");
	cr_expect_eq(take(WIRE_ERPC_RESP, 1, 4, 4), ERPC_BAD, "RESP in the place of a CR");
	cr_expect_eq(take(WIRE_ERPC_RESP, 3, 14, 4), ERPC_BAD, "not requested");
	cr_expect_eq(take(WIRE_ERPC_REQ, 1, 30, PAYLOAD), ERPC_BAD, "a server sends no REQ");
	cr_expect(!memcmp(&before, &c, sizeof(c)));
	cr_assert_eq(take(WIRE_ERPC_CR, 1, 0, 0), ERPC_TAKE);
	before = c;
	cr_expect_eq(take(WIRE_ERPC_RESP, 2, 2 * PAYLOAD + 1, PAYLOAD), ERPC_BAD, "too long");
	cr_expect_eq(take(WIRE_ERPC_RESP, 2, 4, 5), ERPC_BAD, "more bytes than its size");
	cr_expect_eq(take(WIRE_ERPC_RESP, 2, 14, 4), ERPC_BAD, "a part that is not full");
	cr_expect(!memcmp(&before, &c, sizeof(c)));
	cr_assert_eq(take(WIRE_ERPC_RESP, 2, 14, PAYLOAD), ERPC_TAKE);
	send_all();
	cr_expect_eq(take(WIRE_ERPC_RESP, 3, 15, 5), ERPC_BAD, "another length than before");
	cr_expect_eq(take(WIRE_ERPC_RESP, 3, 15, 4), ERPC_BAD, "another length, and its bytes");
	cr_expect_eq(take(WIRE_ERPC_RESP, 3, 14, 4), ERPC_LAST);
}

Test(erpc_client, a_later_acknowledgement_covers_earlier_ones)
{
	begin(5, 3 * PAYLOAD);
	send_all();
	cr_expect_eq(take(WIRE_ERPC_CR, 2, 0, 0), ERPC_TAKE);
	cr_expect_eq(c.rx, 3);
	cr_expect_eq(take(WIRE_ERPC_CR, 1, 0, 0), ERPC_STALE);
	cr_expect_eq(erpc_client_go_back(&c), 2);
	cr_expect_eq(take(WIRE_ERPC_RESP, 4, 3 * PAYLOAD, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(erpc_client_in_flight(&c), 0, "the credits were returned before");
	send_all();
	cr_expect_eq(take(WIRE_ERPC_RESP, 6, 3 * PAYLOAD, PAYLOAD), ERPC_EARLY,
		     "bytes of the response are missing");
	cr_expect_eq(take(WIRE_ERPC_RESP, 5, 3 * PAYLOAD, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(take(WIRE_ERPC_RESP, 6, 3 * PAYLOAD, PAYLOAD), ERPC_LAST);
}

static bool keep(uint16_t pkt_num, uint32_t len)
{
	struct wire_erpc_hdr h = { .kind = WIRE_ERPC_RESP, .pkt_num = pkt_num, .req_num = 3 };

	return erpc_client_keep(&c, &h, len);
}

Test(erpc_client, early_packets_count_once_the_missing_one_arrives)
{
	const uint32_t size = 4 * PAYLOAD + 2;

	begin(1, size);
	erpc_client_knows(&c);
	send_all();
	cr_assert_eq(take(WIRE_ERPC_RESP, 1, size, PAYLOAD), ERPC_EARLY);
	cr_expect_not(keep(1, PAYLOAD - 1), "not full");
	cr_expect(keep(1, PAYLOAD));
	cr_expect_not(keep(1, PAYLOAD), "received before");
	cr_assert_eq(take(WIRE_ERPC_RESP, 4, size, 2), ERPC_EARLY);
	cr_expect(keep(4, 2));
	cr_expect_eq(erpc_client_in_flight(&c), 5, "no credit is returned");
	cr_expect_eq(take(WIRE_ERPC_RESP, 0, size, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(c.rx, 2);
	cr_expect_eq(erpc_client_go_back(&c), 3);
	cr_expect_eq(take(WIRE_ERPC_RESP, 2, size, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(c.tx, 3, "a late packet is not requested again");
	cr_expect_eq(take(WIRE_ERPC_RESP, 3, size, PAYLOAD), ERPC_LAST);
	cr_expect_eq(erpc_client_in_flight(&c), 0);
}

Test(erpc_client, early_packets_are_dropped_with_their_request)
{
	const uint32_t size = 3 * PAYLOAD;

	begin(1, size);
	erpc_client_knows(&c);
	send_all();
	cr_expect(keep(2, PAYLOAD));
	erpc_client_end(&c);
	cr_assert(erpc_client_begin(&c, 1, size));
	erpc_client_knows(&c);
	cr_expect(erpc_ahead_is_empty(&c.ahead));
}

static enum erpc_verdict gap(uint16_t pkt_num)
{
	struct wire_erpc_hdr h = {
		.kind = WIRE_ERPC_CR, .req_type = WIRE_ERPC_GAP, .pkt_num = pkt_num, .req_num = 3
	};

	return erpc_client_take_gap(&c, &h, 0);
}

Test(erpc_client, a_gap_covers_earlier_packets_but_not_its_own)
{
	begin(5, PAYLOAD);
	send_all();
	cr_expect_eq(gap(0), ERPC_TAKE);
	cr_expect_eq(c.rx, 0);
	cr_expect_eq(gap(2), ERPC_TAKE);
	cr_expect_eq(c.rx, 2);
	cr_expect_eq(erpc_client_in_flight(&c), 3);
	cr_expect_eq(gap(1), ERPC_STALE);
	cr_expect_eq(gap(4), ERPC_BAD, "no packet was sent behind the last one");
	cr_expect_eq(gap(5), ERPC_BAD);
	cr_expect_eq(c.rx, 2);
}

Test(erpc_client, a_response_of_known_length_is_requested_at_once)
{
	const uint32_t size = 3 * PAYLOAD;

	begin(1, 3 * PAYLOAD);
	cr_expect_eq(erpc_client_sendable(&c), 1);
	erpc_client_knows(&c);
	cr_expect_eq(erpc_client_sendable(&c), 3);
	send_all();
	cr_expect_eq(take(WIRE_ERPC_RESP, 1, size, PAYLOAD), ERPC_EARLY, "one is missing");
	cr_expect_eq(gap(0), ERPC_TAKE, "RFR arrived, and their request did not");
	cr_expect_eq(take(WIRE_ERPC_RESP, 0, size - 1, PAYLOAD), ERPC_BAD, "another length");
	cr_expect_eq(take(WIRE_ERPC_RESP, 0, size, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(gap(0), ERPC_STALE);
	cr_expect_eq(take(WIRE_ERPC_RESP, 1, size, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(take(WIRE_ERPC_RESP, 2, size, PAYLOAD), ERPC_LAST);
}

Test(erpc_client, a_kept_report_changes_nothing)
{
	struct wire_erpc_hdr h = {
		.kind = WIRE_ERPC_CR, .req_type = WIRE_ERPC_KEPT, .pkt_num = 2, .req_num = 3
	};
	struct erpc_client before;

	begin(3, PAYLOAD);
	before = c;
	cr_expect_eq(erpc_client_take_kept(&c, &h, 0), ERPC_BAD, "not sent yet");
	send_all();
	before = c;
	cr_expect_eq(erpc_client_take_kept(&c, &h, 0), ERPC_TAKE);
	cr_expect_eq(erpc_client_take_kept(&c, &h, 1), ERPC_BAD, "with bytes");
	h.pkt_num = 1;
	cr_expect_eq(erpc_client_take_kept(&c, &h, 0), ERPC_BAD, "not the last one");
	h.pkt_num = 2;
	h.req_num = 2;
	cr_expect_eq(erpc_client_take_kept(&c, &h, 0), ERPC_STALE);
	h.req_num = 4;
	cr_expect_eq(erpc_client_take_kept(&c, &h, 0), ERPC_BAD);
	cr_expect(!memcmp(&before, &c, sizeof(c)));
}

Test(erpc_client, earlier_and_later_requests_are_distinguished)
{
	struct wire_erpc_hdr h = { .kind = WIRE_ERPC_RESP };

	begin(1, PAYLOAD);
	send_all();
	h.req_num = 2;
	cr_expect_eq(erpc_client_take(&c, &h, 0), ERPC_STALE);
	h.req_num = 4;
	cr_expect_eq(erpc_client_take(&c, &h, 0), ERPC_BAD);
	h.req_num = 3;
	cr_expect_eq(erpc_client_take(&c, &h, 0), ERPC_LAST);
	erpc_client_end(&c);
	cr_expect_eq(erpc_client_take(&c, &h, 0), ERPC_STALE, "the slot is free");
}

Test(erpc_client, a_rewind_resends_and_accepts_late_packets)
{
	uint16_t pkt_num;

	begin(3, PAYLOAD);
	send_all();
	cr_assert_eq(take(WIRE_ERPC_CR, 0, 0, 0), ERPC_TAKE);
	cr_expect_eq(erpc_client_go_back(&c), 2, "credits of the packets in flight");
	cr_expect_eq(take(WIRE_ERPC_CR, 1, 0, 0), ERPC_TAKE, "late");
	cr_expect_eq(erpc_client_in_flight(&c), 0, "the credit was returned before");
	cr_expect_eq(erpc_client_sendable(&c), 1);
	cr_expect_eq(erpc_client_next(&c, &pkt_num), WIRE_ERPC_REQ);
	cr_expect_eq(pkt_num, 2);
	cr_expect_eq(erpc_client_end(&c), 1, "ended with one in flight");
}

/** A packet that counts as lost may still get a response, from any sender. */
Test(erpc_client, an_invalid_response_after_a_rewind_changes_nothing)
{
	struct erpc_client before;

	begin(1, PAYLOAD);
	send_all();
	cr_assert_eq(erpc_client_go_back(&c), 1);
	before = c;
	cr_expect_eq(take(WIRE_ERPC_RESP, 0, 4, 5), ERPC_BAD);
	cr_expect_eq(take(WIRE_ERPC_RESP, 0, PAYLOAD + 1, PAYLOAD), ERPC_BAD);
	cr_expect(!memcmp(&before, &c, sizeof(c)), "no credit either");
	cr_expect_eq(take(WIRE_ERPC_RESP, 0, 4, 4), ERPC_LAST);
	cr_expect_eq(erpc_client_end(&c), 0);
}

Test(erpc_client, messages_beyond_the_packet_numbers_are_refused)
{
	erpc_client_init(&c, 0, 1024);
	cr_expect_not(erpc_client_begin(&c, WIRE_ERPC_MSG_MAX + 1, 0));
	cr_expect_not(erpc_client_begin(&c, 0, WIRE_ERPC_MSG_MAX + 1));
	cr_expect(erpc_client_begin(&c, WIRE_ERPC_MSG_MAX, 1024));
	cr_expect_not(erpc_client_begin(&c, WIRE_ERPC_MSG_MAX, 1025));
	cr_expect_not(erpc_client_begin(&c, 1025, WIRE_ERPC_MSG_MAX));
}

Test(erpc_client, the_fast_path_takes_responses_of_one_packet)
{
	struct rng rng = { 4 };
	unsigned i, taken = 0;
	uint16_t pkt_num;

	for (i = 0; i < 20000; i++) {
		struct wire_erpc_hdr h = { .kind = (enum wire_erpc_kind)rng_below(&rng, 4),
					   .pkt_num = (uint16_t)rng_below(&rng, 2),
					   .req_num = 3 + 8 * rng_below(&rng, 2),
					   .msg_size = (uint32_t)rng_below(&rng, PAYLOAD + 2) };
		uint32_t len = rng_chance(&rng, 1, 5) ? 3 : h.msg_size;
		struct erpc_client other;
		bool is_single;

		begin(rng_chance(&rng, 1, 5) ? 2 : 1, (uint32_t)rng_below(&rng, PAYLOAD + 1));
		if (rng_chance(&rng, 4, 5))
			erpc_client_next(&c, &pkt_num);
		if (rng_chance(&rng, 1, 5))
			erpc_client_go_back(&c);
		other = c;
		is_single = erpc_client_take_single(&c, &h, len);
		if (is_single)
			cr_assert_eq(erpc_client_take(&other, &h, len), ERPC_LAST);
		else if (c.tx == 1 && c.req_pkts == 1)
			cr_assert_neq(erpc_client_take(&other, &h, len), ERPC_LAST);
		else
			continue;
		other.resp_size = c.resp_size;
		cr_assert(!is_single || !memcmp(&c, &other, sizeof(c)));
		taken += is_single;
	}
	cr_assert_gt(taken, 200);
}
