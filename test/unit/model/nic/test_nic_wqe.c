/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the send WQE decoder against the programmer's manual: the control, remote address,
 * atomic and data segments, and the ring. Address vectors are in test_nic_wqe_av.c, operations on
 * the list of tag matching in test_nic_wqe_tm.c.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "unit/model/nic/wqe_decode.h"

Test(nic_wqe, a_write_with_immediate_and_one_sge_is_48_bytes_in_one_block)
{
	static const uint8_t bytes[64] = {
		/* ctrl */ 0x00,
		0x12,
		0x34,
		0x09,
		0x00,
		0xab,
		0xcd,
		0x03,
		0x00,
		0x00,
		0x00,
		0x08,
		0xde,
		0xad,
		0xbe,
		0xef,
		/* raddr */ 0x01,
		0x02,
		0x03,
		0x04,
		0x05,
		0x06,
		0x07,
		0x08,
		0x00,
		0x11,
		0x22,
		0x33,
		0x00,
		0x00,
		0x00,
		0x00,
		/* data */ 0x00,
		0x00,
		0x01,
		0x00,
		0x00,
		0x44,
		0x55,
		0x66,
		0x10,
		0x20,
		0x30,
		0x40,
		0x50,
		0x60,
		0x70,
		0x80,
		/* not of the WQE */ 0xff,
		0xff,
		0xff,
		0xff,
	};

	cr_assert_null(decode(bytes, NIC_RC));
	cr_expect_eq(wqe.opcode, NIC_OP_WRITE_IMM);
	cr_expect_eq(wqe.index, 0x1234);
	cr_expect_eq(wqe.qpn, 0xabcd);
	cr_expect_eq(wqe.ds, 3);
	cr_expect_eq(wqe.blocks, 1);
	cr_expect(wqe.signalled && !wqe.solicited && wqe.fence == NIC_FENCE_NONE);
	cr_expect_arr_eq(&wqe.imm, "\xde\xad\xbe\xef", 4);
	cr_expect_eq(wqe.raddr, 0x0102030405060708);
	cr_expect_eq(wqe.rkey, 0x00112233);
	cr_expect_eq(wqe.piece_cnt, 1);
	cr_expect_eq(wqe.piece[0].addr, 0x1020304050607080);
	cr_expect_eq(wqe.piece[0].lkey, 0x00445566);
	cr_expect_eq(wqe.len, 256);
	cr_expect_eq(wqe.inline_len, 0);
}

Test(nic_wqe, fence_completion_and_solicited_are_bits_of_byte_11)
{
	static const struct {
		uint8_t byte, fence;
		bool signalled, solicited;
	} cases[] = {
		{ 0x00, NIC_FENCE_NONE, false, false }, { 0x08, NIC_FENCE_NONE, true, false },
		{ 0x02, NIC_FENCE_NONE, false, true },  { 0x0a, NIC_FENCE_NONE, true, true },
		{ 0x80, NIC_FENCE_FULL, false, false }, { 0x20, NIC_FENCE_SMALL, false, false },
		{ 0x88, NIC_FENCE_FULL, true, false },  { 0x0c, NIC_FENCE_NONE, true, false },
		{ 0x04, NIC_FENCE_NONE, false, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t bytes[64] = { 0, 0, 0, NIC_OP_SEND, 0, 0, 1, 1 };

		bytes[11] = cases[i].byte;
		cr_assert_null(decode(bytes, NIC_RC));
		cr_expect_eq(wqe.fence, cases[i].fence, "byte %#x", cases[i].byte);
		cr_expect_eq(wqe.signalled, cases[i].signalled, "byte %#x", cases[i].byte);
		cr_expect_eq(wqe.solicited, cases[i].solicited, "byte %#x", cases[i].byte);
	}
}

Test(nic_wqe, inline_data_follows_its_length_with_bit_31)
{
	/* 20 bytes inline: 4 + 20, rounded up, are two segments. */
	static const uint8_t bytes[64] = {
		0,   0,   7,    NIC_OP_SEND, 0,   0,   1,   3,   0,   0,   0,   8,   0,   0,
		0,   0,   0x80, 0,           0,   20,  'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h',
		'i', 'j', 'k',  'l',         'm', 'n', 'o', 'p', 'q', 'r', 's', 't',
	};

	cr_assert_null(decode(bytes, NIC_RC));
	cr_expect_eq(wqe.piece_cnt, 1);
	cr_expect_eq(wqe.len, 20);
	cr_expect_eq(wqe.inline_len, 20);
	cr_expect_arr_eq(wqe.piece[0].inl, "abcdefghijklmnopqrst", 20);
}

Test(nic_wqe, inline_data_may_be_followed_by_a_pointer)
{
	static const uint8_t bytes[64] = {
		0,   0,   7,   NIC_OP_SEND, 0,    0,   1,   3,   0,   0,   0,    8,
		0,   0,   0,   0,           0x80, 0,   0,   12,  'a', 'b', 'c',  'd',
		'e', 'f', 'g', 'h',         'i',  'j', 'k', 'l', 0,   0,   0,    64,
		0,   0,   0,   9,           0,    0,   0,   0,   0,   0,   0x10, 0,
	};

	cr_assert_null(decode(bytes, NIC_RC));
	cr_expect_eq(wqe.piece_cnt, 2);
	cr_expect_eq(wqe.len, 76);
	cr_expect_not_null(wqe.piece[0].inl);
	cr_expect_null(wqe.piece[1].inl);
	cr_expect_eq(wqe.piece[1].addr, 0x1000);
}

Test(nic_wqe, compare_and_swap_has_swap_before_compare)
{
	static const uint8_t bytes[64] = {
		0,
		0,
		0,
		NIC_OP_CAS,
		0,
		0,
		1,
		4,
		0,
		0,
		0,
		8,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0x20,
		0,
		0,
		0,
		0,
		5,
		0,
		0,
		0,
		0,
		/* swap */ 1,
		2,
		3,
		4,
		5,
		6,
		7,
		8,
		/* compare */ 8,
		7,
		6,
		5,
		4,
		3,
		2,
		1,
		0,
		0,
		0,
		8,
		0,
		0,
		0,
		9,
		0,
		0,
		0,
		0,
		0,
		0,
		0x10,
		0,
	};

	cr_assert_null(decode(bytes, NIC_RC));
	cr_expect_eq(wqe.swap_add, 0x0102030405060708);
	cr_expect_eq(wqe.compare, 0x0807060504030201);
	cr_expect_eq(wqe.raddr, 0x2000);
}

Test(nic_wqe, a_wqe_wraps_at_the_end_of_the_ring)
{
	uint8_t ring[4 * 64], out[NIC_WQE_MAX_BYTES + 48];

	for (size_t i = 0; i < sizeof(ring); i++)
		ring[i] = i / 64 + 10;
	ring[3 * 64 + 4] = ring[3 * 64 + 5] = ring[3 * 64 + 6] = 0;
	ring[3 * 64 + 7] = 12;
	/* Index 7 of a ring of 4 blocks is block 3, on the second lap. */
	cr_assert_eq(nic_wqe_copy(out, ring, 4, 7), 12);
	cr_expect_eq(out[63], 13);
	cr_expect_eq(out[64], 10);
	cr_expect_eq(out[127], 10);
	cr_expect_eq(out[128], 11);
	cr_expect_eq(out[191], 11);
}

Test(nic_wqe, the_index_continues_over_65535)
{
	uint8_t ring[2 * 64] = { 0 }, out[NIC_WQE_MAX_BYTES + 48];

	ring[64 + 7] = 5;
	ring[0] = 0x77;
	cr_assert_eq(nic_wqe_copy(out, ring, 2, 0xffff), 5);
	cr_expect_eq(out[64], 0x77);
}

Test(nic_wqe, a_nop_of_any_size_decodes_to_its_blocks)
{
	for (uint8_t ds = 1; ds <= 63; ds++) {
		uint8_t bytes[64] = { 0, 0, 0, NIC_OP_NOP, 0, 0, 1, ds };

		memset(bytes + 16, 0xff, 48);
		cr_assert_null(decode(bytes, NIC_RC));
		cr_expect_eq(wqe.blocks, (ds + 3) / 4);
		cr_expect_eq(wqe.piece_cnt, 0);
	}
}

Test(nic_wqe, what_cannot_be_is_refused_with_a_sentence)
{
	static const struct {
		const char *sentence;
		uint8_t bytes[64];
		enum nic_transport transport;
	} cases[] = {
		{ "DS is 0: a WQE has at least", { 0, 0, 0, NIC_OP_SEND, 0, 0, 1, 0 }, NIC_RC },
		{ "the model knows no such opcode", { 0, 0, 0, 0x3f, 0, 0, 1, 1 }, NIC_RC },
		{ "only an RC queue pair", { 0, 0, 0, NIC_OP_READ, 0, 0, 1, 2 }, NIC_UC },
		{ "a UD queue pair only sends", { 0, 0, 0, NIC_OP_WRITE, 0, 0, 1, 2 }, NIC_UD },
		{ "before its remote address", { 0, 0, 0, NIC_OP_WRITE, 0, 0, 1, 1 }, NIC_RC },
		{ "before its atomic segment", { 0, 0, 0, NIC_OP_CAS, 0, 0, 1, 2 }, NIC_RC },
		{ "before its address vector", { 0, 0, 0, NIC_OP_SEND, 0, 0, 1, 1 }, NIC_UD },
		{ "before its address vector", { 0, 0, 0, NIC_OP_READ, 0, 0, 1, 1 }, NIC_DC },
		{ "before its remote address", { 0, 0, 0, NIC_OP_READ, 0, 0, 1, 2 }, NIC_DC },
		{ "before its address vector (48 bytes",
		  { 0, 0, 0, NIC_OP_SEND, 0, 0, 1, 3, [24] = 0x80 },
		  NIC_UD },
		{ "length 0 means 2 GiB", { 0, 0, 0, NIC_OP_SEND, 0, 0, 1, 2 }, NIC_RC },
		{ "inline data reaches beyond the WQE",
		  { 0, 0, 0, NIC_OP_SEND, 0, 0, 1, 2, [16] = 0x80, [19] = 13 },
		  NIC_RC },
		{ "length 0 stands beside inline data",
		  { 0, 0, 0, NIC_OP_SEND, 0, 0, 1, 3, [16] = 0x80, [19] = 12 },
		  NIC_RC },
		{ "a READ takes no inline data",
		  { 0, 0, 0, NIC_OP_READ, 0, 0, 1, 3, [32] = 0x80, [35] = 12 },
		  NIC_RC },
		{ "an atomic operation takes no inline data",
		  { 0, 0, 0, NIC_OP_FETCH_ADD, 0, 0, 1, 4, [48] = 0x80, [51] = 8 },
		  NIC_RC },
		{ "one data segment of 8 bytes",
		  { 0, 0, 0, NIC_OP_FETCH_ADD, 0, 0, 1, 4, [51] = 4 },
		  NIC_RC },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *said = decode(cases[i].bytes, cases[i].transport);

		cr_expect(said && strstr(said, cases[i].sentence), "expected \"%s\", got \"%s\"",
			  cases[i].sentence, said ? said : "nothing");
	}
}
