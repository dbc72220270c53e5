/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Layout: the compressed CQEs of the programmer's manual, as Linux' mlx5 Ethernet driver and UCX
 * before 1.14 read them. The holes are filled with bytes that look like valid CQEs of the next lap.
 */
#include "dev/mlx5/m5_cqe_zip.h"

#include "bytes.h"
#include "cq_device.h"

TestSuite(m5_cqe_zip, .timeout = 200);

static struct cq_device d;

/** Writes the compressed form of cnt CQEs; CQE i has length 1000 + i and counter first + 3 * i. */
static void write_zipped(uint8_t opcode, uint32_t cnt, uint16_t first)
{
	uint32_t start = d.pi, i, v;
	uint8_t owner = cq_device_owner(&d);

	for (i = 0; i < cnt; i++)
		memset(cq_device_at(&d, start + i), 0x10 | !owner, 64);
	for (i = 0; i < cnt; i++) {
		uint32_t place = i < 8 ? start + 1 : start + i / 8 * 8;
		uint8_t *mini = cq_device_at(&d, place) + 8 * (i % 8);
		uint16_t counter = (uint16_t)(first + 3 * i);

		if (cnt == 1)
			break;
		mini[0] = (uint8_t)(counter >> 8);
		mini[1] = (uint8_t)counter;
		mini[2] = 0x09;
		mini[3] = 0;
		v = htobe32(1000 + i);
		memcpy(mini + 4, &v, 4);
	}
	d.pi = start;
	cq_device_write(&d, (uint8_t)(opcode << 4 | M5_CQE_ZIPPED), 0x0a000042, first, 0xfeed);
	v = htobe32(cnt);
	memcpy(cq_device_at(&d, start) + 44, &v, 4);
	d.pi = start + cnt;
}

static void expect_zipped(uint8_t opcode, uint32_t cnt, uint16_t first)
{
	uint32_t i;

	for (i = 0; i < cnt; i++) {
		const struct m5_cqe *cqe = m5_cq_poll(&d.cq);

		cr_assert_not_null(cqe, "CQE %u of %u", i, cnt);
		cr_assert_eq(m5_cqe_opcode(cqe), opcode);
		cr_assert_eq(m5_cqe_qpn(cqe), 0x42);
		cr_assert_eq(be32toh(cqe->imm), 0xfeed);
		cr_assert_null(m5_cqe_scattered(cqe));
		cr_assert_eq(be32toh(cqe->len), 1000 + i);
		if (opcode == M5_CQE_REQ) {
			cr_assert_eq(m5_cqe_counter(cqe), (uint16_t)(first + 3 * i));
			cr_assert_eq(m5_cqe_wqe_opcode(cqe), 0x09);
		} else {
			cr_assert_eq(m5_cqe_counter(cqe), (uint16_t)(first + i));
		}
	}
}

Test(m5_cqe_zip, every_count_expands_to_that_many_cqes)
{
	uint32_t cnt;

	for (cnt = 2; cnt <= 64; cnt++) {
		cq_device_init(&d, 64, 64, 0);
		write_zipped(M5_CQE_RESP_WRITE_IMM, cnt, 0xfffe);
		expect_zipped(M5_CQE_RESP_WRITE_IMM, cnt, 0xfffe);
		cr_assert_null(m5_cq_poll(&d.cq), "behind %u", cnt);
		cq_device_fini(&d);
	}
}

Test(m5_cqe_zip, requester_counters_come_from_the_mini_cqes)
{
	cq_device_init(&d, 64, 64, 0);
	write_zipped(M5_CQE_REQ, 20, 0xfff0);
	expect_zipped(M5_CQE_REQ, 20, 0xfff0);
	cr_expect_null(m5_cq_poll(&d.cq));
	cq_device_fini(&d);
}

Test(m5_cqe_zip, holes_do_not_look_written_in_later_laps)
{
	uint32_t cnt, lap;

	for (cnt = 2; cnt <= 16; cnt++) {
		cq_device_init(&d, 16, 64, 13);
		for (lap = 0; lap < 12; lap++) {
			write_zipped(M5_CQE_RESP_SEND, cnt, (uint16_t)lap);
			expect_zipped(M5_CQE_RESP_SEND, cnt, (uint16_t)lap);
			cr_assert_null(m5_cq_poll(&d.cq), "%u in lap %u", cnt, lap);
			cq_device_write(&d, M5_CQE_RESP_SEND << 4, 5, 0, lap);
			cr_assert_eq(be32toh(m5_cq_poll(&d.cq)->imm), lap);
			cr_assert_null(m5_cq_poll(&d.cq));
		}
		cq_device_fini(&d);
	}
}

Test(m5_cqe_zip, an_impossible_count_is_an_error_cqe)
{
	static const uint32_t counts[] = { 0, 17, 0xffffffff };
	size_t i;

	for (i = 0; i < 3; i++) {
		const struct m5_cqe *cqe;
		uint32_t v = htobe32(counts[i]);

		cq_device_init(&d, 16, 64, 0);
		cq_device_write(&d, M5_CQE_RESP_SEND << 4 | M5_CQE_ZIPPED, 5, 0, 0);
		memcpy(cq_device_at(&d, 0) + 44, &v, 4);
		cqe = m5_cq_poll(&d.cq);
		cr_assert_not_null(cqe);
		cr_expect(m5_cqe_is_error(cqe));
		cr_expect_eq(m5_cqe_qpn(cqe), 0);
		cr_expect_null(m5_cq_poll(&d.cq));
		cq_device_fini(&d);
	}
}

Test(m5_cqe_zip, forget_removes_a_qp_from_compressed_cqes)
{
	unsigned i;

	cq_device_init(&d, 32, 64, 0);
	write_zipped(M5_CQE_RESP_SEND, 10, 0);
	write_zipped(M5_CQE_RESP_SEND, 9, 0);
	m5_cq_poll(&d.cq);
	cr_expect_eq(m5_cq_forget(&d.cq, 0x42), 18);
	for (i = 0; i < 18; i++)
		cr_assert_eq(m5_cqe_qpn(m5_cq_poll(&d.cq)), M5_QPN_MASK);
	cr_expect_null(m5_cq_poll(&d.cq));
	cq_device_fini(&d);
}
