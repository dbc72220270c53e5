/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the send WQE decoder against the programmer's manual.
 *
 * The bytes were written by hand from the field layouts of the control, remote address, atomic,
 * datagram and data segments; none is recorded from a run.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "model/nic/nic_wqe.h"

static struct nic_wqe wqe;

static const char *decode(const uint8_t *bytes, enum nic_transport transport)
{
	memset(&wqe, 0xee, sizeof(wqe));
	return nic_wqe_decode(&wqe, bytes, transport);
}

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

Test(nic_wqe, an_extended_address_vector_takes_48_bytes_and_a_compact_one_16)
{
	uint8_t bytes[128] = { 0,
			       0,
			       0,
			       NIC_OP_SEND,
			       0,
			       0,
			       1,
			       5,
			       0,
			       0,
			       0,
			       8,
			       0,
			       0,
			       0,
			       0,
			       /* qkey */ 0x11,
			       0x11,
			       0x11,
			       0x11,
			       0,
			       0,
			       0,
			       0,
			       /* dqp */ 0x80,
			       0x00,
			       0xab,
			       0xcd,
			       /* sl */ 0x03,
			       /* path */ 0x85,
			       /* rlid */ 0x00,
			       0x07,
			       0,
			       0,
			       0,
			       0,
			       /* rmac */ 1,
			       2,
			       3,
			       4,
			       5,
			       6,
			       /* tclass */ 0x60,
			       /* hops */ 64,
			       /* grh, sgid 3, flow 0x12345 */ 0x40,
			       0x31,
			       0x23,
			       0x45,
			       /* rgid */ 0xfe,
			       0x80,
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
			       0,
			       0,
			       0,
			       0x2a,
			       /* data */ 0,
			       0,
			       0,
			       32,
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
			       0 };

	cr_assert_null(decode(bytes, NIC_UD));
	cr_expect_eq(wqe.blocks, 2);
	cr_expect_eq(wqe.av.qkey, 0x11111111);
	cr_expect_eq(wqe.av.qpn, 0xabcd);
	cr_expect_eq(wqe.av.sl, 3);
	cr_expect_eq(wqe.av.src_path_bits, 5);
	cr_expect_eq(wqe.av.rlid, 7);
	cr_expect_eq(wqe.av.sgid_index, 3);
	cr_expect_eq(wqe.av.flow_label, 0x12345);
	cr_expect_eq(wqe.av.hop_limit, 64);
	cr_expect_eq(wqe.av.tclass, 0x60);
	cr_expect(wqe.av.grh);
	cr_expect_eq(wqe.av.rgid[15], 0x2a);
	cr_expect_eq(wqe.len, 32);

	bytes[7] = 3;
	bytes[24] = 0;
	memcpy(bytes + 32, bytes + 64, 16);
	cr_assert_null(decode(bytes, NIC_UD));
	cr_expect_eq(wqe.blocks, 1);
	cr_expect_eq(wqe.av.qpn, 0xabcd);
	cr_expect_not(wqe.av.extended);
	cr_expect_eq(wqe.len, 32);
}

Test(nic_wqe, a_dc_wqe_has_a_key_a_target_and_a_stream_and_then_what_rc_has)
{
	/* six segments, stream 0x1234; access key, DCT number, LID */
	static const uint8_t head[32] = { 0,    0,    7,    NIC_OP_READ, 0,    0,    1,    6,
					  0,    0x12, 0x34, 8,           0,    0,    0,    0,
					  0x11, 0x22, 0x33, 0x44,        0x55, 0x66, 0x77, 0x88,
					  0x80, 0,    0xab, 0xcd,        0,    0,    0,    7 };
	/* remote address and rkey; length, lkey and address */
	static const uint8_t tail[32] = { [7] = 0x99, [11] = 5, [19] = 64, [23] = 9, [31] = 0x10 };
	uint8_t bytes[128] = { 0 };

	memcpy(bytes, head, sizeof(head));
	memcpy(bytes + 64, tail, sizeof(tail));
	cr_assert_null(decode(bytes, NIC_DC));
	cr_expect_eq(wqe.stream, 0x1234);
	cr_expect_eq(wqe.av.dc_key, 0x1122334455667788);
	cr_expect_eq(wqe.av.qpn, 0xabcd);
	cr_expect_eq(wqe.av.rlid, 7);
	cr_expect_eq(wqe.raddr, 0x99);
	cr_expect_eq(wqe.rkey, 5);
	cr_expect_eq(wqe.len, 64);
	cr_expect_eq(wqe.blocks, 2);
	/* the compact address vector: 16 + 16 + 16 + 16 are one block */
	bytes[7] = 4;
	bytes[24] = 0;
	memcpy(bytes + 32, tail, sizeof(tail));
	cr_assert_null(decode(bytes, NIC_DC));
	cr_expect_eq(wqe.blocks, 1);
	cr_expect_eq(wqe.raddr, 0x99);
	cr_expect_eq(wqe.len, 64);
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

/* ctrl: opcode 0x28 in block 0x1234 of QP 0xabcd; then the segment of tag matching, and data. */
static void list_op(uint8_t bytes[64], uint8_t ds, uint8_t op)
{
	static const uint8_t tag[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	memset(bytes, 0, 64);
	bytes[1] = 0x12;
	bytes[2] = 0x34;
	bytes[3] = 0x28;
	bytes[5] = 0xab;
	bytes[6] = 0xcd;
	bytes[7] = ds;
	bytes[16] = (uint8_t)(op << 4);
	bytes[17] = 0xc0;
	bytes[18] = 0x01; /* index */
	bytes[19] = 0x02;
	bytes[22] = 0xff; /* unexpected messages handled */
	bytes[23] = 0xfe;
	memcpy(bytes + 32, tag, 8);
	memset(bytes + 40, 0xff, 8);
	bytes[50] = 0x01; /* length 256, lkey 0x112200, address 0x1000 */
	bytes[53] = 0x11;
	bytes[54] = 0x22;
	bytes[62] = 0x10;
}

Test(nic_wqe, an_append_has_index_count_tag_mask_and_buffer)
{
	uint8_t bytes[64];

	list_op(bytes, 4, 1);
	cr_assert_null(decode(bytes, NIC_RC));
	cr_expect_eq(wqe.opcode, NIC_OP_TAG_MATCHING);
	cr_expect_eq(wqe.index, 0x1234);
	cr_expect_eq(wqe.blocks, 1);
	cr_expect(!wqe.signalled);
	cr_expect_eq(wqe.tm.op, NIC_TM_APPEND);
	cr_expect_eq(wqe.tm.flags, NIC_TM_WANTS_CQE | NIC_TM_HAS_COUNT);
	cr_expect_eq(wqe.tm.index, 0x102);
	cr_expect_eq(wqe.tm.sw_cnt, 0xfffe);
	cr_expect_arr_eq(&wqe.tm.tag, bytes + 32, 8, "as it lies in memory");
	cr_expect_eq(wqe.tm.mask, ~0ull);
	cr_expect_eq(wqe.piece_cnt, 1);
	cr_expect_eq(wqe.len, 256);
	cr_expect_eq(wqe.piece[0].lkey, 0x112200);
	cr_expect_eq(wqe.piece[0].addr, 0x1000);
}

Test(nic_wqe, an_empty_buffer_has_the_key_that_ends_lists)
{
	uint8_t bytes[64];

	list_op(bytes, 4, 1);
	memset(bytes + 48, 0, 16);
	bytes[54] = 1;
	cr_assert_null(decode(bytes, NIC_RC));
	cr_expect_eq(wqe.piece_cnt, 0);
	cr_expect_eq(wqe.len, 0);
	bytes[54] = 2;
	cr_expect_not_null(decode(bytes, NIC_RC));
}

static void expect_wrong(uint8_t ds, uint8_t op, enum nic_transport transport, const char *says)
{
	uint8_t bytes[64];
	const char *wrong;

	list_op(bytes, ds, op);
	wrong = decode(bytes, transport);
	cr_assert_not_null(wrong, "DS %u, operation %u", ds, op);
	cr_expect_not_null(strstr(wrong, says), "%s", wrong);
}

Test(nic_wqe, list_operations_have_the_segments_they_need)
{
	uint8_t bytes[64];

	list_op(bytes, 3, 2);
	cr_expect_null(decode(bytes, NIC_RC));
	list_op(bytes, 3, 0);
	cr_expect_null(decode(bytes, NIC_RC));
	expect_wrong(2, 0, NIC_RC, "DS is too small");
	expect_wrong(4, 0, NIC_RC, "only an APPEND has a data segment");
	expect_wrong(4, 2, NIC_RC, "only an APPEND has a data segment");
	expect_wrong(3, 1, NIC_RC, "one data segment");
	expect_wrong(4, 3, NIC_RC, "NOP (0), APPEND (1) or REMOVE (2)");
	expect_wrong(4, 1, NIC_UD, "RC queue pair");
	expect_wrong(4, 1, NIC_DC, "RC queue pair");
}
