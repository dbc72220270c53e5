/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Golden CQEs. Origin: the completion queue entry of the programmer's manual, by hand. */
#include "dev/mlx5/m5_cq.h"

#include "bytes.h"
#include "cq_device.h"

TestSuite(m5_cq, .timeout = 200);

static struct cq_device d;

static void expect_one(uint32_t imm)
{
	const struct m5_cqe *cqe = m5_cq_poll(&d.cq);

	cr_assert_not_null(cqe);
	cr_assert_eq(be32toh(cqe->imm), imm);
}

Test(m5_cq, fields_are_read_at_the_manuals_offsets)
{
	static const uint8_t golden[64] = {
		/* 36: immediate */
		[36] = 0x11,
		0x22,
		0x33,
		0x44,
		/* 44: length */
		[44] = 0,
		0,
		0x10,
		0x20,
		/* 56: opcode of the WQE, QP number; 60: counter; 63: WRITE_IMM received, owner 0 */
		[56] = 0x09,
		0x12,
		0x34,
		0x56,
		0xab,
		0xcd,
		0,
		0x10,
	};
	const struct m5_cqe *cqe;

	cq_device_init(&d, 4, 64, 0);
	memcpy(cq_device_at(&d, 0), golden, 64);
	cqe = m5_cq_poll(&d.cq);
	cr_assert_not_null(cqe);
	cr_expect_eq(m5_cqe_opcode(cqe), M5_CQE_RESP_WRITE_IMM);
	cr_expect(!m5_cqe_is_error(cqe));
	cr_expect_eq(m5_cqe_qpn(cqe), 0x123456);
	cr_expect_eq(m5_cqe_wqe_opcode(cqe), 0x09);
	cr_expect_eq(m5_cqe_counter(cqe), 0xabcd);
	cr_expect_eq(be32toh(cqe->imm), 0x11223344);
	cr_expect_eq(be32toh(cqe->len), 0x1020);
	cr_expect_null(m5_cqe_scattered(cqe));
	cq_device_fini(&d);
}

Test(m5_cq, nothing_of_the_first_lap_looks_written)
{
	static const uint32_t starts[] = { 0, 4, 0xfffffffc, 0xffffff, 7 };
	size_t i;

	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		unsigned n;

		cq_device_init(&d, 4, 64, starts[i]);
		for (n = 0; n < 4; n++, m5_cq_seek(&d.cq, d.cq.ci + 1))
			cr_expect(m5_cq_is_empty(&d.cq), "start %#x place %u", starts[i], n);
		cq_device_fini(&d);
	}
}

static void three_laps(uint32_t cqe_len, uint32_t start)
{
	uint32_t i, k, imm = 1, seen = 1;

	cq_device_init(&d, 4, cqe_len, start);
	for (i = 0; i < 24; i++) {
		cr_assert_null(m5_cq_poll(&d.cq));
		for (k = 0; k <= i % 4; k++) /* 4 fill it */
			cq_device_write(&d, M5_CQE_RESP_WRITE_IMM << 4, 1, 0, imm++);
		for (k = 0; k <= i % 4; k++)
			expect_one(seen++);
		cr_assert_null(m5_cq_poll(&d.cq));
	}
	cq_device_fini(&d);
}

Test(m5_cq, the_owner_bit_distinguishes_laps)
{
	three_laps(64, 0);
	three_laps(64, 0xfffffff9); /* the counter passes 32 bits */
	three_laps(64, 0x00fffff9); /* and the record's 24 bits */
}

Test(m5_cq, cqes_of_128_bytes_are_in_the_second_half)
{
	three_laps(128, 0);
	cq_device_init(&d, 4, 128, 0);
	cq_device_write(&d, M5_CQE_RESP_SEND << 4 | M5_CQE_SCATTER64, 1, 0, 5);
	memcpy(d.buf, "in the first half", 18);
	cr_expect_str_eq(m5_cqe_scattered(m5_cq_poll(&d.cq)), "in the first half");
	cq_device_fini(&d);
}

Test(m5_cq, scattered_data_of_up_to_32_bytes_is_in_the_cqe)
{
	const struct m5_cqe *cqe;

	cq_device_init(&d, 4, 64, 0);
	cq_device_write(&d, M5_CQE_REQ << 4 | M5_CQE_SCATTER32, 1, 0, 5);
	memcpy(cq_device_at(&d, 0), "12345678", 8);
	cqe = m5_cq_poll(&d.cq);
	cr_assert_not_null(cqe);
	cr_expect_arr_eq(m5_cqe_scattered(cqe), "12345678", 8);
	cq_device_fini(&d);
}

Test(m5_cq, consumer_index_is_published_in_24_bits)
{
	cq_device_init(&d, 4, 64, 0xfffffe);
	cq_device_write(&d, 0, 1, 0, 0);
	cq_device_write(&d, 0, 1, 0, 0);
	cq_device_write(&d, 0, 1, 0, 0);
	while (m5_cq_poll(&d.cq))
		;
	cr_expect_eq(d.record[0], 0);
	m5_cq_publish(&d.cq);
	EXPECT_AT(&d.record[0], 0, 0, 0, 1);
	cq_device_fini(&d);
}

/* Origin: the arm doorbell as rdma-core's libmlx5 writes it. */
Test(m5_cq, the_arm_doorbell_has_sequence_consumer_and_queue)
{
	cq_device_init(&d, 4, 64, 0x345678);
	m5_cq_arm(&d.cq);
	EXPECT_AT(&d.record[0], 0, 0x34, 0x56, 0x78);
	EXPECT_AT(&d.record[1], 0x00, 0x34, 0x56, 0x78);
	EXPECT_AT(&d.page[4], 0x00, 0x34, 0x56, 0x78, 0x00, 0x00, 0xab, 0xcd);
	m5_cq_event(&d.cq);
	m5_cq_arm(&d.cq);
	EXPECT_AT(&d.page[4], 0x10, 0x34, 0x56, 0x78, 0x00, 0x00, 0xab, 0xcd);
	d.cq.arm_sn = 7;
	m5_cq_arm(&d.cq);
	EXPECT_AT(&d.page[4], 0x30);
	cq_device_fini(&d);
}

Test(m5_cq, forget_removes_a_qp_from_all_cqes)
{
	const struct m5_cqe *cqe;
	unsigned i, of_nobody = 0;

	cq_device_init(&d, 8, 64, 6);
	for (i = 0; i < 8; i++) /* full, across the end */
		cq_device_write(&d, 0x10, i % 2 ? 77 : 78, (uint16_t)i, i);
	cr_expect_eq(m5_cq_forget(&d.cq, 77), 4);
	cr_expect_eq(m5_cq_forget(&d.cq, 77), 0);
	for (i = 0; (cqe = m5_cq_poll(&d.cq)); i++) {
		cr_expect_eq(be32toh(cqe->imm), i, "order");
		cr_expect_neq(m5_cqe_qpn(cqe), 77);
		of_nobody += m5_cqe_qpn(cqe) == M5_QPN_MASK;
	}
	cr_expect_eq(i, 8);
	cr_expect_eq(of_nobody, 4);
	cq_device_fini(&d);
}

/* Cleans queues of all fills, across the end, with CQEs of both sizes. */
static void expect_clean(uint32_t cqe_len, uint32_t ci, uint32_t cnt, unsigned mask)
{
	const struct m5_cqe *cqe;
	uint32_t i, of_77 = 0;

	cq_device_init(&d, 8, cqe_len, ci);
	for (i = 0; i < cnt; i++) {
		bool gone = mask >> i & 1;

		cq_device_write(&d, 0x10, gone ? 77 : 78, (uint16_t)i, i);
		memset(cq_device_at(&d, ci + i) + 64 - cqe_len, (int)i, cqe_len - 64);
		of_77 += gone;
	}
	cr_assert_eq(m5_cq_clean(&d.cq, 77), of_77);
	cr_assert_eq(be32toh(d.record[0]), ci + of_77, "their room is free");
	for (i = 0; i < cnt; i++) {
		if (mask >> i & 1)
			continue;
		cqe = m5_cq_poll(&d.cq);
		cr_assert_not_null(cqe);
		cr_assert_eq(be32toh(cqe->imm), i, "order");
		cr_assert_eq(m5_cqe_counter(cqe), i);
		cr_assert(cqe_len == 64 || ((const uint8_t *)cqe)[-1] == i, "its first half");
	}
	cr_assert_null(m5_cq_poll(&d.cq));
	cq_device_write(&d, 0x10, 78, 0, 99);
	cqe = m5_cq_poll(&d.cq);
	cr_assert_not_null(cqe, "what the device writes next is found");
	cr_assert_eq(be32toh(cqe->imm), 99);
	cq_device_fini(&d);
}

Test(m5_cq, clean_takes_a_qp_out_and_keeps_the_others_in_order)
{
	for (uint32_t ci = 4; ci < 13; ci += 4)
		for (uint32_t cnt = 0; cnt <= 7; cnt++)
			for (unsigned mask = 0; mask < 1u << cnt; mask++) {
				expect_clean(64, ci, cnt, mask);
				expect_clean(128, ci, cnt, mask);
			}
}

Test(m5_cq, forget_id_removes_the_writes_of_one_link)
{
	const struct m5_cqe *cqe;
	unsigned left = 0;

	cq_device_init(&d, 8, 64, 6);
	for (uint32_t i = 0; i < 8; i++)
		cq_device_write(&d, 0x10, i < 6 ? 77 : 78, 0, (5 + i % 2) << 16 | i);
	cr_expect_eq(m5_cq_forget_id(&d.cq, 77, 5), 3);
	cr_expect_eq(m5_cq_forget_id(&d.cq, 77, 5), 0);
	while ((cqe = m5_cq_poll(&d.cq)))
		left += m5_cqe_qpn(cqe) == 77 || m5_cqe_qpn(cqe) == 78;
	cr_expect_eq(left, 5);
	cq_device_fini(&d);
}
