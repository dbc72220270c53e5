/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes of operations and their fields, checked against the drawing in wire_op.h.
 *
 * The expected bytes were written by hand, not taken from a run. A change here changes the protocol
 * and needs a new version or a feature bit.
 */
#include <criterion/criterion.h>

#include "unit/wire/golden.h"
#include "wire/wire_op.h"
#include "wire/wire_ring.h"

Test(wire_op, operation_numbers_are_fixed)
{
	cr_assert_eq(WIRE_OP_FAILBACK, 0);
	cr_assert_eq(WIRE_OP_MSG, 1);
	cr_assert_eq(WIRE_OP_PART, 2);
	cr_assert_eq(WIRE_OP_CONT, 3);
	cr_assert_eq(WIRE_OP_RNDV, 4);
	cr_assert_eq(WIRE_OP_DLVR, 5);
	cr_assert_eq(WIRE_OP_WRITE, 6);
	cr_assert_eq(WIRE_OP_READ, 7);
	cr_assert_eq(WIRE_OP_RPC, 12);
	cr_assert_eq(WIRE_OP_LEASE, 13);
	cr_assert_eq(WIRE_OP_SYNC, 14);
	cr_assert_eq(WIRE_OP_DONE, 15);
	cr_assert_eq(WIRE_OP_LAST, WIRE_OP_DONE);
	cr_assert_eq(WIRE_F_TAG, 0x10);
	cr_assert_eq(WIRE_F_DATA32, 0x20);
	cr_assert_eq(WIRE_F_DATA64, 0x40);
	cr_assert_eq(WIRE_STATUS_PULL, 0xFFFFFFFF);
	cr_assert_eq(WIRE_STATUS_KEPT, 0xFFFFFFFE);
	cr_assert_eq(WIRE_CONT_SENT, 0);
	cr_assert_eq(WIRE_CONT_PULLED, 1);
}

Test(wire_op, an_rpc_word_carries_the_maximum_response_size_exactly)
{
	cr_assert_eq(wire_rpc_word(0), 0x0000000C);
	cr_assert_eq(wire_rpc_word(1), 0x0000010C);
	cr_assert_eq(wire_rpc_word(0x123456), 0x1234560C);
	cr_assert_eq(wire_rpc_word(WIRE_RPC_RESP_MAX), 0x7FFFFF0C);
	cr_assert_eq(wire_rpc_resp_max(wire_rpc_word(32)), 32);
	cr_assert_eq(wire_rpc_resp_max(0x7FFFFF0C), WIRE_RPC_RESP_MAX);
	/* all other bits belong to the operation or must be zero */
	cr_assert_eq(WIRE_RPC_RESP_MAX << 8 | WIRE_OP_MASK | WIRE_RPC_UNKNOWN, UINT32_MAX);
	cr_assert_eq((WIRE_RPC_RESP_MAX << 8 | WIRE_OP_MASK) & WIRE_RPC_UNKNOWN, 0);
}

Test(wire_op, every_bit_of_the_word_is_operation_flag_or_unknown)
{
	cr_assert_eq(WIRE_OP_MASK & WIRE_F_MASK, 0);
	cr_assert_eq(WIRE_F_TAG | WIRE_F_DATA32 | WIRE_F_DATA64, WIRE_F_MASK);
	cr_assert_eq(WIRE_OP_MASK | WIRE_F_MASK | WIRE_OP_UNKNOWN, UINT32_MAX);
	cr_assert_eq((WIRE_OP_MASK | WIRE_F_MASK) & WIRE_OP_UNKNOWN, 0);
	cr_assert_eq(WIRE_OP_UNKNOWN & WIRE_ID_RESPONSE, WIRE_ID_RESPONSE);
	cr_assert_eq(WIRE_OP_LAST & ~WIRE_OP_MASK, 0);
}

Test(wire_op, flags_announce_their_bytes)
{
	cr_assert_eq(wire_ext_len(WIRE_OP_MSG), 0);
	cr_assert_eq(wire_ext_len(WIRE_OP_MSG | WIRE_F_TAG), 8);
	cr_assert_eq(wire_ext_len(WIRE_OP_MSG | WIRE_F_DATA32), 4);
	cr_assert_eq(wire_ext_len(WIRE_OP_MSG | WIRE_F_DATA64), 8);
	cr_assert_eq(wire_ext_len(WIRE_OP_MSG | WIRE_F_TAG | WIRE_F_DATA32), 12);
	cr_assert_eq(wire_ext_len(WIRE_OP_RNDV | WIRE_F_TAG | WIRE_F_DATA64), 16);
}

/* 12 bytes of header, 8 of tag, 4 of data: 8 user bytes remain in a block. */
Test(wire_op, the_common_extension_leaves_eight_bytes_in_a_block)
{
	uint32_t ext = wire_ext_len(WIRE_F_TAG | WIRE_F_DATA32);

	cr_assert_eq(WIRE_HDR_LEN + ext + 8, WIRE_ALIGN);
}

Test(wire_op, first_part_is_total_length_and_id)
{
	struct wire_part part = { .total_len = 0x0102030405060708, .send_id = 0x11121314 };

	EXPECT_BYTES(part, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x14, 0x13, 0x12, 0x11,
		     0, 0, 0, 0);
}

Test(wire_op, later_part_is_offset_id_and_kind_of_id)
{
	struct wire_cont cont = {
		.offset = 0x0102030405060708,
		.id = 0x11121314,
		.kind = WIRE_CONT_PULLED,
	};

	EXPECT_BYTES(cont, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x14, 0x13, 0x12, 0x11,
		     1, 0, 0, 0);
}

Test(wire_op, rendezvous_is_total_length_address_key_and_id)
{
	struct wire_rndv rndv = {
		.total_len = 0x0102030405060708,
		.addr = 0x1112131415161718,
		.key = 0x2122232425262728,
		.send_id = 0x31323334,
	};

	EXPECT_BYTES(rndv, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x18, 0x17, 0x16, 0x15,
		     0x14, 0x13, 0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, 0x34,
		     0x33, 0x32, 0x31, 0, 0, 0, 0);
}

Test(wire_op, a_match_complete_message_begins_with_its_id)
{
	struct wire_sync sync = { .send_id = 0x01020304 };

	EXPECT_BYTES(sync, 0x04, 0x03, 0x02, 0x01);
}

Test(wire_op, the_end_of_a_kept_message_is_id_status_and_id_of_the_receiver)
{
	struct wire_done done = { .send_id = 0x01020304,
				  .status = 0x11121314,
				  .recv_id = 0x21222324 };

	EXPECT_BYTES(done, 0x04, 0x03, 0x02, 0x01, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21,
		     0, 0, 0, 0);
}

Test(wire_op, leaving_is_a_kind_and_paths)
{
	struct wire_failback failback = { .kind = WIRE_FAILBACK_ASK, .paths = 0x01020304 };

	EXPECT_BYTES(failback, 1, 0, 0, 0, 0x04, 0x03, 0x02, 0x01);
	cr_assert_eq(WIRE_FAILBACK_YES, 2);
	cr_assert_eq(WIRE_FAILBACK_NO, 3);
	cr_assert_eq(WIRE_FAILBACK_LATER, 4);
}

Test(wire_op, status_is_error_id_and_length)
{
	struct wire_status delivered = { .status = 0, .len = 0x0102030405060708 };
	struct wire_status pull = { .status = WIRE_STATUS_PULL, .recv_id = 0x11121314 };

	EXPECT_BYTES(delivered, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02,
		     0x01);
	EXPECT_BYTES(pull, 0xFF, 0xFF, 0xFF, 0xFF, 0x14, 0x13, 0x12, 0x11, 0, 0, 0, 0, 0, 0, 0, 0);
}
