/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes on a ring, checked against docs/ring-protocol.md, section 3.
 *
 * The expected bytes were written by hand from the tables there, not taken from a run.
 */
#include <criterion/criterion.h>

#include "unit/wire/golden.h"
#include "wire/wire_op.h"
#include "wire/wire_ring.h"

Test(wire_ring, flow_metadata_is_32_bytes_in_this_order)
{
	struct wire_meta meta = {
		.consumer_pos = 0x1112131415161720,
		.credit_grant = 0x2122232425262740,
		.message_count = 0x31323334,
		.reserved = 0,
		.link_word = 0x4142434445464748,
	};

	EXPECT_BYTES(meta,
		     /* consumer_pos */ 0x20, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
		     /* credit_grant */ 0x40, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,
		     /* message_count */ 0x34, 0x33, 0x32, 0x31,
		     /* reserved */ 0, 0, 0, 0,
		     /* link_word */ 0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41);
}

Test(wire_ring, a_wrap_marker_counts_all_ones)
{
	struct wire_meta meta = { .consumer_pos = 64, .message_count = WIRE_COUNT_WRAP };

	EXPECT_BYTES(meta, 64, 0, 0, 0, 0, 0, 0, 0, /* no grant */ 0, 0, 0, 0, 0, 0, 0, 0,
		     /* wrap */ 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

Test(wire_ring, a_message_header_is_12_bytes_in_this_order)
{
	struct wire_hdr hdr = { .call_id = 0x01020304, .piggyback = 0x11121314, .len = 0x2122 };

	EXPECT_BYTES(hdr, 0x04, 0x03, 0x02, 0x01, 0x14, 0x13, 0x12, 0x11, 0x22, 0x21, 0, 0);
}

Test(wire_ring, a_response_has_bit_31_of_its_call_id)
{
	struct wire_hdr hdr = { .call_id = WIRE_ID_RESPONSE | 5, .len = 16 };

	EXPECT_BYTES(hdr, 0x05, 0, 0, 0x80, 0, 0, 0, 0, 16, 0, 0, 0);
}

Test(wire_ring, a_short_immediate_has_its_units_below_its_advance_and_bit_31)
{
	uint32_t imm = wire_imm_short(0x1234, 0x5678);

	cr_assert_eq(imm, 0xD6781234);
	cr_assert_eq(wire_imm_units(imm), 0x1234);
	cr_assert_eq(wire_imm_advance(imm), 0x5678);
	imm = wire_imm_short(WIRE_IMM_UNITS_MAX, WIRE_IMM_ADVANCE_MAX);
	cr_assert_eq(imm, 0xFFFFFFFF);
	cr_assert_eq(wire_imm_units(imm), 0xFFFF);
	cr_assert_eq(wire_imm_advance(imm), 0x7FFF);
	cr_assert_eq(wire_imm_units(0x04000000), 0x04000000,
		     "a plain immediate is the distance alone");
}

Test(wire_ring, wire_long_span_agrees_with_wire_msg_span)
{
	cr_assert_eq(wire_long_span(20), 32);
	cr_assert_eq(wire_long_span(21), 64);
	cr_assert_eq(wire_long_span(1ull << 62), (1ull << 62) + 32);
}

/* The span of a message: 32-byte blocks, header included. */
Test(wire_ring, a_message_of_up_to_20_bytes_takes_one_block_and_of_52_two)
{
	static const struct {
		uint32_t len, span;
	} cases[] = {
		{ 0, 32 },
		{ 1, 32 },
		{ 20, 32 },
		{ 21, 64 },
		{ 52, 64 },
		{ 53, 96 },
		{ 8192, 8224 },
		{ 65535, 65568 },
		{ 84, 96 },
		{ 85, 128 },
		{ 0x7FFFFFE0, 0x80000000u },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_eq(wire_msg_span(cases[i].len), cases[i].span, "%u", cases[i].len);
}

/* internal = align32(12 + a) + 32 */
Test(wire_ring, a_call_reserves_its_largest_response_and_the_metadata_of_its_batch)
{
	cr_assert_eq(wire_reservation(0), 64);
	cr_assert_eq(wire_reservation(16), 64);
	cr_assert_eq(wire_reservation(20), 64);
	cr_assert_eq(wire_reservation(21), 96);
	cr_assert_eq(wire_reservation(4096), 4128 + 32);
	for (uint64_t reserve = 0; reserve < 4096; reserve++) {
		uint32_t a = wire_resp_max(reserve);

		cr_assert(reserve < 64 ? !a
				       : wire_reservation(a) <= reserve &&
						 wire_reservation(a + 1) > reserve);
	}
}

/* Whole batch: 8 tagged bytes with CQ data fill one block exactly. */
Test(wire_ring, a_small_tagged_message_with_data_is_one_block)
{
	struct __attribute__((packed)) {
		struct wire_meta meta;
		struct wire_hdr hdr;
		uint64_t tag;
		uint32_t data;
		char user[8];
	} batch = {
		.meta = { .consumer_pos = 0x1000, .credit_grant = 96, .message_count = 1 },
		.hdr = { .call_id = WIRE_OP_MSG | WIRE_F_TAG | WIRE_F_DATA32, .len = 20 },
		.tag = 0xF1F2F3F4F5F6F7F8,
		.data = 0xE1E2E3E4,
		.user = { 'c', 'o', 'p', 'y', ' ', 'r', 'p', 'c' },
	};

	cr_assert_eq(wire_msg_span(batch.hdr.len), WIRE_ALIGN);
	EXPECT_BYTES(batch,
		     /* consumer_pos */ 0x00, 0x10, 0, 0, 0, 0, 0, 0,
		     /* credit_grant */ 96, 0, 0, 0, 0, 0, 0, 0,
		     /* message_count, reserved, link_word */ 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		     0, 0, 0,
		     /* call_id: operation 1, flags 1 and 2 */ 0x31, 0, 0, 0,
		     /* piggyback: one-way */ 0, 0, 0, 0,
		     /* len */ 20, 0, 0, 0,
		     /* tag */ 0xF8, 0xF7, 0xF6, 0xF5, 0xF4, 0xF3, 0xF2, 0xF1,
		     /* data */ 0xE4, 0xE3, 0xE2, 0xE1,
		     /* user */ 'c', 'o', 'p', 'y', ' ', 'r', 'p', 'c');
}
