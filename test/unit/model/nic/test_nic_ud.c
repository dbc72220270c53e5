/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of datagrams: they arrive with their 40 bytes and the right source, or not at all. */
#include "model/nic/nic_be.h"
#include "unit/model/nic/nic_bench.h"
#include "model/nic/nic_av.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_ud.h"
#include "model/nic/nic_wqe.h"

#include <criterion/criterion.h>
#include <string.h>

static struct mdl_cq *cq_a, *cq_b;
static struct mdl_qp *a, *b;

static void setup(void)
{
	bench_open();
	cq_a = bench_cq(64, 64);
	cq_b = bench_cq(64, 64);
	a = bench_qp(MDL_QPT_UD, cq_a, NULL, 64);
	b = bench_qp(MDL_QPT_UD, cq_b, NULL, 64);
	for (int i = 0; i < 256; i++)
		bench.buf[i] = i + 1;
}

TestSuite(nic_ud, .init = setup);

static struct bench_wr to_b(uint32_t len)
{
	return (struct bench_wr){ .opcode = NIC_OP_SEND,
				  .flags = 8,
				  .addr = bench.buf,
				  .len = len,
				  .dqpn = b->number,
				  .qkey = 0x11111111,
				  .rlid = 1 };
}

Test(nic_ud, a_datagram_starts_after_40_bytes)
{
	struct bench_wr wr = to_b(100);
	const uint8_t *cqe;

	memset(bench.buf + 8192, 0x55, 200);
	bench_recv(b, bench.buf + 8192, 140, bench.key);
	bench_post(a, &wr);
	cqe = bench_poll(cq_b);
	cr_assert_eq(bench_op(cqe), NIC_CQE_RESP_SEND);
	cr_expect_eq(nic_be32_get(cqe + 44), 140);
	cr_expect_eq(nic_be16_get(cqe + 22), 1, "the sender's LID");
	cr_expect_eq(nic_be32_get(cqe + 24), a->number, "no GRH, SL 0");
	cr_expect_arr_eq(bench.buf + 8232, bench.buf, 100);
	cr_expect_eq(bench.buf[8192], 0x55, "nothing was written where the header would be");
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_REQ);
}

Test(nic_ud, a_header_has_source_and_destination)
{
	struct bench_wr wr = to_b(100);
	const uint8_t *cqe;

	wr.grh = true;
	bench_recv(b, bench.buf + 8192, 140, bench.key);
	bench_post(a, &wr);
	cqe = bench_poll(cq_b);
	cr_expect_eq(nic_be32_get(cqe + 24), 1u << 28 | a->number);
	cr_expect_eq(bench.buf[8192] >> 4, 6);
	cr_expect_eq(nic_be16_get(bench.buf + 8196), 12 + 8 + 100 + 4);
	cr_expect_eq(bench.buf[8198], 0x1b);
	cr_expect_eq(bench.buf[8192 + 23], 0x2a);
	cr_expect_eq(bench.buf[8192 + 39], 0x2a);
}

Test(nic_ud, over_ipv4_the_header_is_the_last_20_bytes)
{
	static const uint8_t gid[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 7 };
	struct nic_av av = { .hop_limit = 64 };
	uint8_t grh[40];

	mdl_self.seg->link = MDL_LINK_ROCE;
	mdl_self.seg->port[0].gid_type[0] = 2;
	memcpy(mdl_self.seg->port[0].gid[0], gid, 16);
	memcpy(av.rgid, gid, 16);
	av.rgid[15] = 9;
	nic_ud_grh(grh, a, &av, 100);
	cr_expect_eq(grh[0], 0);
	cr_expect_eq(grh[20], 0x45);
	cr_expect_arr_eq(grh + 32, "\x0a\0\0\x07\x0a\0\0\x09", 8);
}

static void expect_dropped(const struct bench_wr *wr)
{
	bench_post(a, wr);
	cr_expect_null(bench_poll(cq_b));
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_REQ, "the sender never knows");
}

Test(nic_ud, a_datagram_without_a_receiver_is_dropped)
{
	struct bench_wr wr = to_b(100);

	expect_dropped(&wr); /* no receive posted */
	bench_recv(b, bench.buf + 8192, 140, bench.key);
	wr.qkey = 5;
	expect_dropped(&wr);
	wr = to_b(100);
	wr.rlid = 2;
	expect_dropped(&wr);
	wr = to_b(100);
	wr.dqpn = 0xffffff;
	expect_dropped(&wr);
	wr = to_b(100);
	b->state = MDL_QPS_INIT;
	expect_dropped(&wr);
}

Test(nic_ud, the_high_bit_of_the_key_means_the_queue_pairs_own)
{
	struct bench_wr wr = to_b(100);

	bench_recv(b, bench.buf + 8192, 140, bench.key);
	wr.qkey = 0x80000000;
	bench_post(a, &wr);
	cr_expect_not_null(bench_poll(cq_b));
}

Test(nic_ud, a_receive_that_is_one_byte_short_is_a_local_length_error)
{
	struct bench_wr wr = to_b(100);

	bench_recv(b, bench.buf + 8192, 139, bench.key);
	bench_post(a, &wr);
	cr_expect_eq(bench_poll(cq_b)[55], NIC_SYN_LOCAL_LENGTH);
	cr_expect_eq(b->state, MDL_QPS_ERR);
}

Test(nic_ud, a_datagram_is_one_packet)
{
	struct bench_wr wr = to_b(4097);

	bench_post(a, &wr);
	cr_expect_eq(bench_poll(cq_a)[55], NIC_SYN_LOCAL_LENGTH);
	cr_expect_eq(a->state, MDL_QPS_SQE);
}
