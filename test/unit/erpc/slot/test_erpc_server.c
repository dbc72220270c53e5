/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Server side of a slot: each request is executed once, in order, with invalid packets at each
 * step.
 */
#include "erpc/slot/erpc_server.h"

#include <criterion/criterion.h>
#include <string.h>

#include "support/rng.h"

#define PAYLOAD 10u

static struct erpc_server s;

static enum wire_erpc_kind kind;
static uint16_t pkt_num;

static bool repeats(void)
{
	return erpc_server_repeat(&s, &pkt_num, &kind);
}

static void setup(void)
{
	erpc_server_init(&s, 5, PAYLOAD);
}

static enum erpc_verdict req(uint64_t req_num, uint16_t nth, uint32_t size, uint32_t len)
{
	struct wire_erpc_hdr h = {
		.kind = WIRE_ERPC_REQ, .pkt_num = nth, .req_num = req_num, .msg_size = size
	};

	return erpc_server_take_req(&s, &h, len);
}

static enum erpc_verdict rfr(uint64_t req_num, uint16_t nth, uint32_t size, uint32_t len)
{
	struct wire_erpc_hdr h = {
		.kind = WIRE_ERPC_RFR, .pkt_num = nth, .req_num = req_num, .msg_size = size
	};

	return erpc_server_take_rfr(&s, &h, len);
}

Test(erpc_server, executes_a_request_once_and_repeats_the_response, .init = setup)
{
	cr_expect_eq(req(5, 0, 4, 4), ERPC_LAST);
	cr_expect_eq(req(5, 0, 4, 4), ERPC_REPEAT);
	cr_expect_not(repeats(), "no response yet");
	cr_assert(erpc_server_respond(&s, 3));
	cr_expect_eq(req(5, 0, 4, 4), ERPC_REPEAT);
	cr_expect(repeats());
	cr_expect_eq(kind, WIRE_ERPC_RESP);
	cr_expect_eq(pkt_num, 0);
	cr_expect_eq(req(5 + ERPC_SLOTS, 0, 0, 0), ERPC_LAST);
	cr_expect_eq(req(5, 0, 4, 4), ERPC_STALE);
}

Test(erpc_server, large_messages_follow_the_table, .init = setup)
{
	cr_expect_eq(req(5, 0, 25, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(req(5, 2, 25, 5), ERPC_EARLY);
	cr_expect_eq(req(5, 1, 25, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(req(5, 0, 25, PAYLOAD), ERPC_REPEAT);
	cr_expect(repeats());
	cr_expect_eq(kind, WIRE_ERPC_CR);
	cr_expect_eq(pkt_num, 1, "the CR covers all packets so far");
	cr_expect_eq(req(5, 2, 25, 5), ERPC_LAST);
	cr_expect(repeats());
	cr_expect_eq(kind, WIRE_ERPC_CR);
	cr_expect_eq(pkt_num, 1, "only the response acknowledges the last one");
	cr_assert(erpc_server_respond(&s, 2 * PAYLOAD));
	cr_expect(repeats());
	cr_expect_eq(kind, WIRE_ERPC_RESP);
	cr_expect_eq(pkt_num, 2);
	cr_expect_eq(rfr(5, 3, 0, 0), ERPC_TAKE);
	cr_expect_eq(erpc_server_part(&s, 3), 1);
	cr_expect_eq(rfr(5, 3, 0, 0), ERPC_TAKE, "again");
}

static bool keep(uint64_t req_num, uint16_t num)
{
	struct wire_erpc_hdr h = { .req_num = req_num, .pkt_num = num };

	return erpc_server_keep(&s, &h);
}

Test(erpc_server, early_packets_count_once_the_missing_one_arrives, .init = setup)
{
	cr_assert_eq(req(5, 0, 55, PAYLOAD), ERPC_TAKE);
	cr_assert_eq(req(5, 2, 55, PAYLOAD), ERPC_EARLY);
	cr_expect(keep(5, 2));
	cr_expect_not(keep(5, 2), "received before");
	cr_expect_eq(req(5, 2, 55, PAYLOAD), ERPC_EARLY);
	cr_assert_eq(req(5, 4, 55, PAYLOAD), ERPC_EARLY, "not kept");
	cr_assert_eq(req(5, 5, 55, 5), ERPC_EARLY);
	cr_expect(keep(5, 5));
	cr_expect_eq(s.rx, 1);
	cr_expect_eq(req(5, 1, 55, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(s.rx, 3, "two at once");
	cr_expect(repeats());
	cr_expect_eq(pkt_num, 2);
	cr_expect_eq(req(5, 2, 55, PAYLOAD), ERPC_REPEAT);
	cr_expect_eq(req(5, 3, 55, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(req(5, 4, 55, PAYLOAD), ERPC_LAST);
}

Test(erpc_server, early_packets_belong_to_the_current_request, .init = setup)
{
	cr_assert_eq(req(5, 1, 25, PAYLOAD), ERPC_EARLY);
	cr_expect_not(keep(5, 1), "the request has not begun");
	cr_assert_eq(req(5, 0, 25, PAYLOAD), ERPC_TAKE);
	cr_assert_eq(req(5, 1, 25, PAYLOAD), ERPC_TAKE);
	cr_assert_eq(req(5, 2, 25, 5), ERPC_LAST);
	erpc_server_respond_empty(&s);
	cr_assert_eq(req(5 + ERPC_SLOTS, 2, 25, 5), ERPC_EARLY);
	cr_expect_not(keep(5 + ERPC_SLOTS, 2));
}

Test(erpc_server, early_packets_are_bounded_by_the_packets_in_flight, .init = setup)
{
	const uint32_t size = (ERPC_AHEAD_MAX + 12) * PAYLOAD;
	uint16_t i;

	cr_assert_eq(req(5, 0, size, PAYLOAD), ERPC_TAKE);
	for (i = 2; i < ERPC_AHEAD_MAX + 12; i++) {
		cr_assert_eq(req(5, i, size, PAYLOAD), ERPC_EARLY);
		cr_expect_eq(keep(5, i), i < 1 + ERPC_AHEAD_MAX, "packet %u", i);
	}
	cr_expect_eq(req(5, 1, size, PAYLOAD), ERPC_TAKE);
	cr_expect_eq(s.rx, 1 + ERPC_AHEAD_MAX, "all of them");
	cr_expect(erpc_ahead_is_empty(&s.ahead));
}

Test(erpc_server, invalid_packets_change_nothing, .init = setup)
{
	struct erpc_server before = s;

	cr_expect_eq(req(5, 1, 25, PAYLOAD), ERPC_EARLY, "the first packet is missing");
	cr_expect_eq(req(5, 3, 25, 5), ERPC_BAD, "behind the end");
	cr_expect_eq(req(5, 0, 25, 9), ERPC_BAD, "not full");
	cr_expect_eq(req(5, 2, 25, 6), ERPC_BAD, "more bytes than its size");
	cr_expect_eq(req(5 + ERPC_SLOTS, 0, 4, 4), ERPC_STALE, "two requests ahead");
	cr_expect_eq(rfr(5 - ERPC_SLOTS, 1, 0, 0), ERPC_STALE, "no such request");
	cr_expect(!memcmp(&before, &s, sizeof(s)));
	cr_assert_eq(req(5, 0, 25, PAYLOAD), ERPC_TAKE);
	before = s;
	cr_expect_eq(req(5, 1, 26, PAYLOAD), ERPC_BAD, "another length");
	cr_expect_eq(req(5 + ERPC_SLOTS, 0, 4, 4), ERPC_BAD, "this one has no response yet");
	cr_expect_eq(rfr(5, 3, 0, 0), ERPC_BAD, "there is no response yet");
	cr_expect(!memcmp(&before, &s, sizeof(s)));
	cr_assert_eq(req(5, 1, 25, PAYLOAD), ERPC_TAKE);
	cr_assert_eq(req(5, 2, 25, 5), ERPC_LAST);
	cr_assert(erpc_server_respond(&s, 11));
	cr_expect_eq(rfr(5, 2, 0, 0), ERPC_BAD, "the first part is not requested by RFR");
	cr_expect_eq(rfr(5, 4, 0, 0), ERPC_BAD, "behind the end");
	cr_expect_eq(rfr(5, 3, 0, 1), ERPC_BAD, "with bytes");
	cr_expect_eq(rfr(5, 3, 1, 0), ERPC_BAD, "and the one behind the end");
	cr_expect_eq(rfr(5 + ERPC_SLOTS, 3, 0, 0), ERPC_EARLY, "of a request that has not begun");
	cr_expect_eq(rfr(5, 3, 0, 0), ERPC_TAKE);
}

Test(erpc_server, a_request_keeps_its_type, .init = setup)
{
	struct wire_erpc_hdr h = { .req_num = 5, .msg_size = 25, .req_type = 1 };
	struct erpc_server before;

	cr_assert_eq(erpc_server_take_req(&s, &h, PAYLOAD), ERPC_TAKE);
	before = s;
	h.pkt_num = 1;
	h.req_type = 2;
	cr_expect_eq(erpc_server_take_req(&s, &h, PAYLOAD), ERPC_BAD);
	cr_expect(!memcmp(&before, &s, sizeof(s)));
}

Test(erpc_server, several_parts_are_requested_at_once, .init = setup)
{
	uint32_t parts = 2 * WIRE_ERPC_RUN_MAX;

	cr_assert_eq(req(5, 0, 4, 4), ERPC_LAST);
	cr_assert(erpc_server_respond(&s, parts * PAYLOAD));
	cr_expect_eq(rfr(5, 1, WIRE_ERPC_RUN_MAX - 1, 0), ERPC_TAKE);
	cr_expect_eq(rfr(5, 1, WIRE_ERPC_RUN_MAX, 0), ERPC_BAD, "more than a packet may request");
	cr_expect_eq(rfr(5, 1, WIRE_ERPC_MSG_MAX, 0), ERPC_BAD);
	cr_expect_eq(rfr(5, (uint16_t)(parts - 10), 9, 0), ERPC_TAKE);
	cr_expect_eq(rfr(5, (uint16_t)(parts - 10), 10, 0), ERPC_BAD, "one behind the end");
}

/** A long response is completed, and its memory may be gone. */
Test(erpc_server, parts_of_an_earlier_response_are_not_sent, .init = setup)
{
	cr_assert_eq(req(5, 0, 4, 4), ERPC_LAST);
	cr_assert(erpc_server_respond(&s, 3 * PAYLOAD));
	cr_assert_eq(rfr(5, 1, 0, 0), ERPC_TAKE);
	cr_assert_eq(req(5 + ERPC_SLOTS, 0, 4, 4), ERPC_LAST);
	cr_expect_eq(rfr(5 + ERPC_SLOTS, 1, 0, 0), ERPC_BAD, "no response yet");
	cr_expect_eq(rfr(5, 1, 0, 0), ERPC_STALE);
}

Test(erpc_server, responses_beyond_the_packet_numbers_are_refused)
{
	erpc_server_init(&s, 0, 1024);
	cr_assert_eq(req(0, 0, 1025, 1024), ERPC_TAKE);
	cr_assert_eq(req(0, 1, 1025, 1), ERPC_LAST);
	cr_expect_not(erpc_server_respond(&s, WIRE_ERPC_MSG_MAX + 1));
	cr_expect_not(erpc_server_respond(&s, WIRE_ERPC_MSG_MAX));
	cr_expect(erpc_server_respond(&s, WIRE_ERPC_MSG_MAX - 1023));
}

/*
 * The fast path for a packet that is a whole request accepts the same packets as the general one.
 */
Test(erpc_server, the_fast_path_takes_requests_of_one_packet, .init = setup)
{
	struct rng rng = { 3 };
	unsigned i, taken = 0;

	for (i = 0; i < 20000; i++) {
		struct wire_erpc_hdr h = { .kind = WIRE_ERPC_REQ,
					   .pkt_num = (uint16_t)rng_below(&rng, 2),
					   .req_num = s.req_num + 8 * rng_below(&rng, 3),
					   .msg_size = (uint32_t)rng_below(&rng, PAYLOAD + 1) };
		uint32_t len = rng_chance(&rng, 1, 5) ? 3 : h.msg_size;
		struct erpc_server other = s;
		bool is_single = erpc_server_take_single(&s, &h, len);

		cr_assert_eq(is_single, erpc_server_take_req(&other, &h, len) == ERPC_LAST);
		cr_assert_eq(s.req_num, other.req_num);
		cr_assert(!is_single || (s.rx == 1 && s.req_pkts == 1 && s.size == other.size));
		taken += is_single;
		if (rng_chance(&rng, 1, 2))
			erpc_server_respond_empty(&s);
	}
	cr_assert_gt(taken, 1000);
}
