/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Golden bytes, written by hand from the segments of the programmer's manual. Where rdma-core's
 * <infiniband/mlx5dv.h> has a function for a segment, it must agree.
 */
#include "dev/mlx5/m5_wqe.h"

#include <infiniband/mlx5dv.h>
#include <stdalign.h>

#include "bytes.h"

TestSuite(m5_wqe, .timeout = 200);

static alignas(64) uint8_t at[256];

static struct m5_wqe begin(void)
{
	struct m5_wqe w;

	memset(at, 0xee, sizeof(at)); /* left by an earlier lap */
	m5_wqe_begin(&w, at);
	return w;
}

Test(m5_wqe, write_imm_with_one_gather_entry_is_48_bytes)
{
	struct m5_wqe w = begin();

	m5_wqe_raddr(&w, 0x1122334455667788, 0xaabbccdd);
	m5_wqe_data(&w, 0x0102030405060708, 0x1000, 0x00c0ffee);
	cr_expect_eq(m5_wqe_end(&w, 0xabcd, M5_OP_WRITE_IMM, 0x123456, M5_CTRL_SIGNAL, 0x11223344),
		     1);
	EXPECT_AT(at,
		  /* control: modifier, counter, opcode; QP number, 3 units; signal; immediate */
		  0x00, 0xab, 0xcd, 0x09, 0x12, 0x34, 0x56, 0x03, 0x00, 0x00, 0x00, 0x08, 0x11,
		  0x22, 0x33, 0x44,
		  /* remote address, key, reserved */
		  0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xaa, 0xbb, 0xcc, 0xdd, 0x00,
		  0x00, 0x00, 0x00,
		  /* length, key, address */
		  0x00, 0x00, 0x10, 0x00, 0x00, 0xc0, 0xff, 0xee, 0x01, 0x02, 0x03, 0x04, 0x05,
		  0x06, 0x07, 0x08,
		  /* nothing behind it */
		  0xee);
}

Test(m5_wqe, segments_equal_those_of_rdma_core)
{
	struct mlx5_wqe_ctrl_seg ctrl = { 0 };
	struct mlx5_wqe_data_seg data;
	struct m5_wqe w = begin();

	m5_wqe_data(&w, 0x7f0011223344, 77, 0x1234);
	m5_wqe_end(&w, 0xfffe, M5_OP_SEND_IMM, 0xabcdef, M5_CTRL_FENCE | M5_CTRL_SIGNAL, 5);
	mlx5dv_set_ctrl_seg(&ctrl, 0xfffe, MLX5_OPCODE_SEND_IMM, 0, 0xabcdef,
			    MLX5_WQE_CTRL_FENCE | MLX5_WQE_CTRL_CQ_UPDATE, 2, 0, htobe32(5));
	mlx5dv_set_data_seg(&data, 77, 0x1234, 0x7f0011223344);
	cr_expect_arr_eq(at, &ctrl, sizeof(ctrl));
	cr_expect_arr_eq(at + 16, &data, sizeof(data));
}

Test(m5_wqe, inline_bytes_follow_their_count_and_are_padded_with_zeros)
{
	struct m5_wqe w = begin();

	m5_wqe_raddr(&w, 0, 0);
	m5_wqe_inline(&w, "abcde", 5);
	cr_expect_eq(m5_wqe_end(&w, 0, M5_OP_WRITE_IMM, 1, 0, 0), 1);
	EXPECT_AT(at + 32, 0x80, 0, 0, 5, 'a', 'b', 'c', 'd', 'e', 0, 0, 0, 0, 0, 0, 0, 0xee);
	cr_expect_eq(at[7], 3);
}

Test(m5_wqe, inline_of_every_length_ends_on_a_unit)
{
	uint8_t bytes[M5_INLINE_MAX];
	uint32_t len, i;

	memset(bytes, 0x5a, sizeof(bytes));
	for (len = 1; len <= M5_INLINE_MAX; len++) {
		struct m5_wqe w = begin();
		uint32_t total = (36 + len + 15) / 16 * 16;

		m5_wqe_raddr(&w, 0, 0);
		m5_wqe_inline(&w, bytes, len);
		cr_assert_eq(m5_wqe_end(&w, 0, M5_OP_WRITE_IMM, 1, 0, 0), (total + 63) / 64);
		cr_assert_eq(at[7], total / 16);
		cr_assert_arr_eq(at + 36, bytes, len);
		for (i = 36 + len; i < total; i++)
			cr_assert_eq(at[i], 0);
		for (; i < sizeof(at); i++)
			cr_assert_eq(at[i], 0xee);
	}
}

Test(m5_wqe, longest_inline_fills_the_register)
{
	uint8_t bytes[M5_INLINE_MAX] = { 0 };
	struct m5_wqe w = begin();

	m5_wqe_raddr(&w, 0, 0);
	m5_wqe_inline(&w, bytes, M5_INLINE_MAX);
	cr_expect_eq(w.end - at, 256);
	cr_expect_eq(m5_wqe_end(&w, 0, M5_OP_WRITE_IMM, 1, 0, 0), 4);
	EXPECT_AT(at + 32, 0x80, 0, 0, 220);
}

Test(m5_wqe, zero_bytes_add_no_segment)
{
	struct m5_wqe w = begin();

	m5_wqe_raddr(&w, 1, 2);
	m5_wqe_data(&w, 0x1000, 0, 3);
	m5_wqe_inline(&w, NULL, 0);
	cr_expect_eq(m5_wqe_end(&w, 0, M5_OP_WRITE_IMM, 1, 0, 0), 1);
	cr_expect_eq(at[7], 2);
	cr_expect_eq(at[32], 0xee);
}

Test(m5_wqe, a_read_has_the_peers_address_and_length)
{
	struct m5_wqe w = begin();

	m5_wqe_raddr(&w, 0xfeed, 0x77);
	m5_wqe_data(&w, 0xbeef, 8, 0x88);
	cr_expect_eq(m5_wqe_end(&w, 3, M5_OP_READ, 2, M5_CTRL_SIGNAL, 0), 1);
	EXPECT_AT(at, 0, 0, 3, 0x10, 0, 0, 2, 3, 0, 0, 0, 8, 0, 0, 0, 0);
}

Test(m5_wqe, datagram_has_48_bytes_of_address_if_extended_else_16)
{
	struct m5_av av = { .qkey = htobe32(0x11111111), .dqp_dct = htobe32(M5_AV_EXT | 0xabc) };
	struct mlx5_wqe_datagram_seg seg = { 0 };
	uint8_t gid[16] = { 0xfe, 0x80, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1 };
	uint8_t mac[6] = { 2, 3, 4, 5, 6, 7 };
	struct m5_wqe w = begin();

	memcpy(av.rgid, gid, sizeof(gid));
	memcpy(av.rmac, mac, sizeof(mac));
	av.tclass = 9;
	av.hop_limit = 64;
	av.rlid = htobe16(0xc000);
	av.grh_gid_fl = htobe32(1u << 30 | 3 << 20);
	m5_wqe_av(&w, &av);
	cr_expect_eq(w.end - at, 16 + 48);
	/* mlx5_wqe_av has DC's key of 64 bits, of which a Q_Key is the first half. */
	mlx5dv_set_dgram_seg(&seg, 0x11111111ull << 32, 0xabc, 1, 0, 0, 0xc000, mac, 9, 64,
			     1u << 30 | 3 << 20, gid);
	cr_expect_arr_eq(at + 16, &seg, sizeof(seg));

	av.dqp_dct = htobe32(0xabc);
	w = begin();
	m5_wqe_av(&w, &av);
	cr_expect_eq(w.end - at, 16 + 16);
	EXPECT_AT(at + 16, 0x11, 0x11, 0x11, 0x11, 0, 0, 0, 0, 0, 0, 0x0a, 0xbc, 0, 0, 0xc0, 0,
		  0xee);
}

Test(m5_wqe, nop_takes_whole_blocks)
{
	uint16_t bb;

	for (bb = 1; bb <= M5_WQE_MAX_BB; bb++) {
		begin();
		m5_wqe_nop(at, bb, 0x0102, 0x345678);
		EXPECT_AT(at, 0, 1, 2, 0, 0x34, 0x56, 0x78);
		cr_expect_eq(at[7], 4 * bb);
		cr_expect_eq(at[11], 0);
		cr_expect_eq(m5_wqe_blocks((void *)at), bb);
	}
}
