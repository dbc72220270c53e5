/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of the receive WQE decoder against the manual. */
#include <criterion/criterion.h>

#include "model/nic/nic_rwqe.h"

Test(nic_rwqe, segments_end_at_the_invalid_key)
{
	static const uint8_t stride[64] = {
		0, 0, 0, 100, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 1,    0, 0, 0,
		0, 8, 1, 2,   3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0,    0, 1, 0, 0,    0, 0, 0,
		0, 0, 0, 0,   0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0,    0, 0, 0, 0x10, 0,
	};
	struct nic_rwqe rwqe;

	nic_rwqe_decode(&rwqe, stride, sizeof(stride));
	cr_assert_eq(rwqe.seg_cnt, 2);
	cr_expect_eq(rwqe.len, 356);
	cr_expect_eq(rwqe.seg[0].addr, 0x1000);
	cr_expect_eq(rwqe.seg[0].lkey, 9);
	cr_expect_eq(rwqe.seg[1].addr, 0x0102030405060708);
}

Test(nic_rwqe, a_full_stride_needs_no_end)
{
	static const uint8_t stride[16] = { 0, 0, 0, 100, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0x10, 0 };
	struct nic_rwqe rwqe;

	nic_rwqe_decode(&rwqe, stride, sizeof(stride));
	cr_expect_eq(rwqe.seg_cnt, 1);
	cr_expect_eq(rwqe.len, 100);
}

Test(nic_rwqe, a_shared_stride_starts_with_the_next_index)
{
	static const uint8_t stride[32] = {
		0xee, 0xee, 0x12, 0x34, 0xee, 0xee, 0xee, 0xee, 0, 0, 0, 0, 0, 0, 0,    0,
		0,    0,    0,    100,  0,    0,    0,    9,    0, 0, 0, 0, 0, 0, 0x10, 0,
	};
	struct nic_rwqe rwqe;

	cr_expect_eq(nic_rwqe_decode_shared(&rwqe, stride, sizeof(stride)), 0x1234);
	cr_expect_eq(rwqe.seg_cnt, 1);
	cr_expect_eq(rwqe.seg[0].len, 100);
}
