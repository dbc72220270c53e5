/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the send WQE decoder: the address vectors of datagrams and of DC, and what stands behind
 * them.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "unit/model/nic/wqe_decode.h"

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
