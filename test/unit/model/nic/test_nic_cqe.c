/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the CQE encoding against the manual.
 *
 * The expected bytes were written by hand from the field layouts.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "model/nic/nic_cqe.h"

static uint8_t slot[128];

static void encode(uint32_t size, const struct nic_cqe *cqe, bool owner)
{
	memset(slot, 0xff, sizeof(slot));
	nic_cqe_publish(slot, size, nic_cqe_encode(slot, size, cqe, owner));
}

Test(nic_cqe, a_receive_with_immediate_from_a_shared_queue)
{
	struct nic_cqe cqe = { .op = NIC_CQE_RESP_WRITE_IMM,
			       .wqe_counter = 0x1234,
			       .qpn = 0xabcdef,
			       .user_index = 0x112233,
			       .byte_cnt = 0x01020304,
			       .timestamp = 0x0807060504030201 };
	static const uint8_t want[64] = {
		0,
		0,
		/* wqe_id */ 0x12,
		0x34,
		[32] = 0,
		0x11,
		0x22,
		0x33,
		/* imm */ 0xde,
		0xad,
		0xbe,
		0xef,
		0,
		0,
		0,
		0,
		/* count */ 1,
		2,
		3,
		4,
		/* time */ 8,
		7,
		6,
		5,
		4,
		3,
		2,
		1,
		/* qpn */ 0,
		0xab,
		0xcd,
		0xef,
		/* counter */ 0x12,
		0x34,
		0,
		/* op 1, owner 1 */ 0x11,
	};

	memcpy(&cqe.imm, "\xde\xad\xbe\xef", 4);
	encode(64, &cqe, 1);
	cr_expect_arr_eq(slot, want, 64);
	cr_expect_eq(slot[64], 0xff);
}

Test(nic_cqe, the_cqe_of_128_bytes_is_its_second_half)
{
	struct nic_cqe cqe = { .op = NIC_CQE_REQ, .wqe_op = 0x08, .qpn = 5, .wqe_counter = 9 };

	encode(128, &cqe, 0);
	cr_expect_eq(slot[127], 0x00);
	cr_expect_arr_eq(slot + 64 + 56, "\x08\x00\x00\x05\x00\x09", 6);
}

Test(nic_cqe, a_datagram_has_its_source)
{
	struct nic_cqe cqe = { .op = NIC_CQE_RESP_SEND,
			       .grh = true,
			       .sl = 0xa,
			       .src_qpn = 0x123456,
			       .slid = 0x0708,
			       .path_bits = 3,
			       .solicited = true };

	encode(64, &cqe, 1);
	cr_expect_eq(slot[17], 3);
	cr_expect_arr_eq(slot + 22, "\x07\x08\x1a\x12\x34\x56", 6);
	cr_expect_eq(slot[63], 0x23);
}

Test(nic_cqe, an_error_has_its_syndromes_where_the_timestamp_ends)
{
	struct nic_cqe cqe = { .op = NIC_CQE_REQ_ERR,
			       .wqe_op = 0x0a,
			       .qpn = 7,
			       .wqe_counter = 3,
			       .syndrome = NIC_SYN_REMOTE_ACCESS,
			       .vendor_syndrome = 0x88,
			       .timestamp = ~0ull };

	encode(64, &cqe, 0);
	cr_expect_arr_eq(slot + 48, "\0\0\0\0\0\0\x88\x13\x0a\0\0\x07\0\x03\0\xd0", 16);
}

Test(nic_cqe, scattered_bytes_lie_at_the_start_and_are_flagged)
{
	struct nic_cqe cqe = { .op = NIC_CQE_RESP_SEND, .byte_cnt = 32, .scatter_len = 32 };

	for (int i = 0; i < 64; i++)
		cqe.scatter[i] = i + 1;
	encode(64, &cqe, 0);
	cr_expect_arr_eq(slot, cqe.scatter, 32);
	cr_expect_eq(slot[63], 0x24);

	cqe.byte_cnt = cqe.scatter_len = 64;
	encode(128, &cqe, 1);
	cr_expect_arr_eq(slot, cqe.scatter, 64);
	cr_expect_eq(slot[127], 0x29);
}

Test(nic_cqe, mini_cqes_stand_in_slots_1_8_16)
{
	static const struct {
		uint32_t k, slot, byte;
	} cases[] = { { 0, 1, 0 },   { 1, 1, 8 },   { 7, 1, 56 },   { 8, 8, 0 },
		      { 15, 8, 56 }, { 16, 16, 0 }, { 23, 16, 56 }, { 24, 24, 0 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t byte, at = nic_mini_place(cases[i].k, &byte);

		cr_expect_eq(at, cases[i].slot, "mini %u", cases[i].k);
		cr_expect_eq(byte, cases[i].byte, "mini %u", cases[i].k);
	}
}

Test(nic_cqe, a_requesters_mini_cqe_has_its_counter_and_a_responders_none)
{
	struct nic_cqe cqe = {
		.op = NIC_CQE_REQ, .wqe_counter = 0x1234, .wqe_op = 9, .byte_cnt = 7
	};
	uint8_t mini[8];

	encode(64, &cqe, 0);
	nic_mini_encode(mini, slot, true);
	cr_expect_arr_eq(mini, "\x12\x34\x09\0\0\0\0\x07", 8);
	nic_mini_encode(mini, slot, false);
	cr_expect_arr_eq(mini, "\0\0\0\0\0\0\0\x07", 8);
}

Test(nic_cqe, a_title_has_format_3_and_the_number_of_completions)
{
	struct nic_cqe cqe = { .op = NIC_CQE_RESP_SEND, .byte_cnt = 7 };
	uint8_t op_own = nic_cqe_encode(slot, 64, &cqe, 1);

	cr_expect_eq(nic_mini_title(slot, op_own, 9), 0x2d);
	cr_expect_arr_eq(slot + 44, "\0\0\0\x09", 4);
}

/* Returns true if B fits into a run behind A, whose index in the run is K - 1. */
static bool joins(const struct nic_cqe *a, const struct nic_cqe *b, uint32_t k)
{
	uint8_t first[64], second[64];
	uint8_t first_op_own = nic_cqe_encode(first, 64, a, 0);
	uint8_t second_op_own = nic_cqe_encode(second, 64, b, 1);

	return nic_cqe_joins(first, first_op_own, second, second_op_own, k);
}

Test(nic_cqe, only_like_completions_join)
{
	struct nic_cqe a = { .op = NIC_CQE_RESP_SEND, .qpn = 1, .wqe_counter = 0xffff };
	struct nic_cqe b = a;

	b.wqe_counter = 1;
	b.byte_cnt = 99;
	cr_expect(joins(&a, &b, 2), "over 65535");
	cr_expect_not(joins(&a, &b, 1), "a gap");
	b.imm = 1;
	cr_expect_not(joins(&a, &b, 2), "another immediate");
	b.imm = 0;
	b.qpn = 2;
	cr_expect_not(joins(&a, &b, 2), "another QP");
	b.qpn = 1;
	b.scatter_len = 1;
	cr_expect_not(joins(&a, &b, 2), "scattered");
	b.scatter_len = 0;
	b.op = NIC_CQE_RESP_SEND_IMM;
	cr_expect_not(joins(&a, &b, 2), "another opcode");
	a.op = b.op = NIC_CQE_REQ;
	b.wqe_op = 9;
	b.wqe_counter = 77;
	cr_expect(joins(&a, &b, 1), "requesters say all in the mini CQE");
	a.op = b.op = NIC_CQE_REQ_ERR;
	cr_expect_not(joins(&a, &b, 1), "errors");
}

Test(nic_cqe, a_match_has_the_header_of_its_message_and_its_entry)
{
	struct nic_cqe cqe = { .op = NIC_CQE_NO_PACKET,
			       .app_op = NIC_APP_CONSUMED,
			       .app_info = 0x0102,
			       .qpn = 0xabcdef,
			       .user_index = 0x112233,
			       .head = { 3, 0, 0, 0, 9, 8, 7, 6, 1, 2, 3, 4, 5, 6, 7, 8 } };
	static const uint8_t want[64] = {
		/* TMH: opcode, 3 reserved, app_ctx, tag */
		[0] = 3,
		[4] = 9,
		[5] = 8,
		[6] = 7,
		[7] = 6,
		[8] = 1,
		[9] = 2,
		[10] = 3,
		[11] = 4,
		[12] = 5,
		[13] = 6,
		[14] = 7,
		[15] = 8,
		/* user index */
		[33] = 0x11,
		[34] = 0x22,
		[35] = 0x33,
		/* app, app_op, app_info */
		[40] = 1,
		[41] = 1,
		[42] = 1,
		[43] = 2,
		/* qpn, op_own */
		[57] = 0xab,
		[58] = 0xcd,
		[59] = 0xef,
		[63] = 0x60,
	};

	encode(64, &cqe, false);
	cr_expect_arr_eq(slot, want, 64);
}

Test(nic_cqe, completions_of_tag_matching_are_not_compressed)
{
	struct nic_cqe cqe = { .op = NIC_CQE_RESP_SEND, .app_op = NIC_APP_UNEXPECTED };
	uint8_t first[64], second[64], op_own;

	nic_cqe_encode(first, 64, &cqe, false);
	cqe.wqe_counter = 1;
	op_own = nic_cqe_encode(second, 64, &cqe, false);
	cr_expect(!nic_cqe_joins(first, op_own, second, op_own, 1));
	first[40] = second[40] = 0;
	cr_expect(nic_cqe_joins(first, op_own, second, op_own, 1));
}
