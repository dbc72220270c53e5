/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bytes of remote memory access, written by hand from docs/ring-protocol.md. */
#include <criterion/criterion.h>

#include "unit/wire/golden.h"
#include "wire/wire_rma.h"

Test(wire_rma, an_access_is_address_key_length_offset_total)
{
	struct wire_rma rma = { .addr = 0x0102030405060708,
				.key = 0x1112131415161718,
				.len = 0x21,
				.offset = 0x31,
				.total = 0x4142 };
	static const uint8_t want[40] = { 8,    7,    6,    5,    4,    3,    2,    1,    0x18,
					  0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x21, 0,
					  0,    0,    0,    0,    0,    0,    0x31, 0,    0,
					  0,    0,    0,    0,    0,    0x42, 0x41 };

	cr_assert_arr_eq((uint8_t *)&rma, want, sizeof(want));
}

Test(wire_rma, a_response_is_status_and_offset)
{
	struct wire_rma_reply reply = { .status = 0x0D, .offset = 0x0102030405060708 };
	static const uint8_t want[16] = { 0x0D, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1 };

	cr_assert_arr_eq((uint8_t *)&reply, want, sizeof(want));
}

Test(wire_rma, an_exposure_is_address_key_and_id_and_ends_with_a_status)
{
	struct wire_rma_exposure exposure = { .addr = 0x0102030405060708,
					      .key = 0x1112131415161718,
					      .exposure_id = 0x21222324 };
	struct wire_rma_return back = { .exposure_id = 0x21222324, .status = 0x0D };

	EXPECT_BYTES(exposure, 8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12,
		     0x11, 0x24, 0x23, 0x22, 0x21, 0, 0, 0, 0);
	EXPECT_BYTES(back, 0x24, 0x23, 0x22, 0x21, 0x0D, 0, 0, 0);
}
