/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bytes of atomic calls, written by hand from docs/ring-protocol.md. */
#include "wire/wire_atomic.h"

#include <criterion/criterion.h>

#include "unit/wire/golden.h"

Test(wire_atomic, a_call_is_address_key_position_count_kind_type_and_operation)
{
	struct wire_atomic atomic = { .addr = 0x0102030405060708,
				      .key = 0x1112131415161718,
				      .first = 0x21222324,
				      .total = 0x31323334,
				      .count = 0x4142,
				      .kind = 2,
				      .type = 0x51,
				      .op = 0x61 };

	EXPECT_BYTES(atomic, 8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
		     0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31, 0x42, 0x41, 2, 0x51, 0x61, 0,
		     0, 0);
}

Test(wire_atomic, a_response_is_status_and_position)
{
	struct wire_atomic_reply reply = { .status = 0x0D, .first = 0x21222324 };

	EXPECT_BYTES(reply, 0x0D, 0, 0, 0, 0x24, 0x23, 0x22, 0x21);
}

Test(wire_atomic, a_list_holds_whole_elements_of_every_type)
{
	for (unsigned size = 1; size <= 32; size *= 2)
		cr_expect_eq(WIRE_ATOMIC_LEN_MAX % size, 0);
}
