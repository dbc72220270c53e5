/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of the send WQE decoder: operations on the list of tag matching. */
#include <criterion/criterion.h>
#include <string.h>

#include "unit/model/nic/wqe_decode.h"

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
