/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bytes of collective messages, written by hand from docs/ring-protocol.md. */
#include "wire/wire_coll.h"

#include <criterion/criterion.h>

#include "unit/wire/golden.h"

Test(wire_coll, a_call_is_group_operation_sender_length_offset_kind_and_status)
{
	struct wire_coll coll = { .group = 0x0102030405060708,
				  .seq = 0x11121314,
				  .from = 0x21222324,
				  .len = 0x3132333435363738,
				  .off = 0x4142434445464748,
				  .what = WIRE_COLL_ABORT,
				  .status = 0x6B };

	EXPECT_BYTES(coll, 8, 7, 6, 5, 4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21,
		     0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 0x48, 0x47, 0x46, 0x45, 0x44,
		     0x43, 0x42, 0x41, 3, 0, 0, 0, 0x6B, 0, 0, 0);
}

Test(wire_coll, a_response_is_status_and_offset)
{
	struct wire_coll_reply reply = { .status = 0x0D, .off = 0x0102030405060708 };

	EXPECT_BYTES(reply, 0x0D, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1);
}

Test(wire_coll, kinds_have_the_numbers_of_the_protocol)
{
	cr_expect_eq(WIRE_COLL_PUT, 1);
	cr_expect_eq(WIRE_COLL_READ, 2);
	cr_expect_eq(WIRE_COLL_ABORT, 3);
}
