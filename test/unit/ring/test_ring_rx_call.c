/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls and responses: each response finds its call once, and no call claims more than was granted.
 * (ring_rx.h)
 */
#include "rx_see.h"

TestSuite(ring_rx_call, .init = start, .fini = stop);

Test(ring_rx_call, a_response_finds_its_call_once)
{
	uint32_t id = make_call();

	put_meta(0, 0, 1);
	put_hdr(32, id | WIRE_ID_RESPONSE, 0, 20);
	accepted(64);
	cr_expect_eq(reply_context, 1);
	put_meta(0, 0, 1);
	put_hdr(32, id | WIRE_ID_RESPONSE, 0, 20);
	refused(64);
	cr_expect_eq(reply_context, 1);
}

Test(ring_rx_call, responses_to_unknown_calls_are_refused)
{
	static const uint32_t ids[] = { 0, 1, 1u << 20, 0x7FFFFFFF };
	unsigned i;

	for (i = 0; i < 4; i++) {
		put_meta(0, 0, 1);
		put_hdr(32, ids[i] | WIRE_ID_RESPONSE, 0, 0);
		refused(64);
		stop();
		start();
	}
	cr_expect_eq(reply_cnt, 0);
}

Test(ring_rx_call, a_response_of_an_earlier_generation_is_refused)
{
	uint32_t id = make_call();

	put_meta(0, 0, 1);
	put_hdr(32, (id ^ 1u << 20) | WIRE_ID_RESPONSE, 0, 0);
	refused(64);
	cr_expect_eq(reply_context, 0);
}

Test(ring_rx_call, a_response_with_a_maximum_response_size_is_refused)
{
	uint32_t id = make_call();

	put_meta(0, 0, 1);
	put_hdr(32, id | WIRE_ID_RESPONSE, 1, 0);
	refused(64);
	cr_expect_eq(reply_context, 0);
}

Test(ring_rx_call, a_call_carries_its_maximum_response_size_and_claims_its_reservation)
{
	put_meta(0, 0, 1);
	put_hdr(32, 0x12345678, 2, 4);
	accepted(64);
	cr_expect_eq(call_cnt, 1);
	cr_expect_eq(seen_ref.call_id, 0x12345678);
	cr_expect_eq(seen_ref.resp_max, 52);
	cr_expect_eq(conn->tx.flow.claimed, 96);
}

Test(ring_rx_call, calls_claim_at_most_the_granted_credit)
{
	uint32_t blocks = (uint32_t)conn->tx.flow.granted / WIRE_ALIGN;

	put_meta(0, 0, 1);
	put_hdr(32, 1, blocks - 3, 0);
	accepted(64);
	put_meta(0, 0, 1);
	put_hdr(32, 2, 1, 0);
	accepted(64);
	cr_expect_eq(conn->tx.flow.claimed, conn->tx.flow.granted);
	put_meta(0, 0, 1);
	put_hdr(32, 3, 1, 0);
	refused(64);
	cr_expect_eq(call_cnt, 2);
	cr_expect(ring_flow_holds(&conn->tx.flow));
}

Test(ring_rx_call, an_overflowing_maximum_response_size_is_refused)
{
	static const uint32_t blocks[] = { UINT32_MAX, 1u << 27, (1u << 27) + 1, 1u << 31, 16 };
	unsigned i;

	for (i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		put_meta(0, 0, 1);
		put_hdr(32, 1, blocks[i], 0);
		refused(64);
		stop();
		start();
	}
	cr_expect_eq(call_cnt, 0);
}
