/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Are the rules of doorbells and of the send queue enforced, each of them, and nothing that is right?
 */
#include "model/nic_be.h"
#include "unit/model/nic_bench.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

static struct mdl_cq *cq;
static struct mdl_qp *a, *b;
static struct bench_wr nop = { .opcode = NIC_OP_NOP, .flags = 8 };
static struct bench_wr quiet = { .opcode = NIC_OP_NOP };

static void setup(void)
{
	bench_open();
	cq = bench_cq(16, 64);
	a = bench_qp(MDL_QPT_RC, cq, NULL, 4);
	b = bench_qp(MDL_QPT_RC, bench_cq(16, 64), NULL, 4);
	bench_connect(a, b);
}

TestSuite(nic_uar, .init = setup);

static struct bench_wr long_write(const void *bytes)
{
	return (struct bench_wr){ .opcode = NIC_OP_WRITE,
				  .flags = 8,
				  .raddr = (uintptr_t)bench.buf,
				  .rkey = bench.key,
				  .addr = bytes,
				  .len = 200,
				  .inl = true };
}

Test(nic_uar, a_blueflame_write_saves_the_fetch)
{
	static const uint8_t bytes[200];
	struct bench_wr wr = long_write(bytes);

	bench_put(a, &wr);
	bench_record(a);
	bench_ring_blueflame(a, 4);
	cr_expect_eq(bench_op(bench_poll(cq)), NIC_CQE_REQ);
	cr_expect_eq(bench_get(a, MDL_CNT_BF_BYTES), 256);
	cr_expect_eq(bench_get(a, MDL_CNT_WQE_FETCHES), 0);
}

Test(nic_uar, a_blueflame_write_may_carry_several_wqes)
{
	bench_put(a, &nop);
	bench_put(a, &nop);
	bench_record(a);
	bench_ring_blueflame(a, 2);
	cr_expect_eq(bench_get(a, MDL_CNT_WQES), 2);
	cr_expect_eq(bench_get(a, MDL_CNT_DOORBELLS), 1);
	cr_expect_eq(bench_get(a, MDL_CNT_WQE_FETCHES), 0);
}

Test(nic_uar, the_index_runs_over_65535)
{
	for (uint32_t i = 0; i < 65536 + 8; i++) {
		bench_post(a, &nop);
		cr_assert_not_null(bench_poll(cq), "%u", i);
	}
	cr_expect_eq(bench_get(a, MDL_CNT_WQES), 65536 + 8);
}

Test(nic_uar, a_doorbell_before_its_record, .signal = SIGABRT)
{
	bench_put(a, &nop);
	bench_ring(a);
}

Test(nic_uar, a_doorbell_rung_twice, .signal = SIGABRT)
{
	bench_post(a, &nop);
	bench_ring(a);
}

Test(nic_uar, a_record_that_counts_wqes_and_not_blocks, .signal = SIGABRT)
{
	static const uint8_t bytes[200];
	struct bench_wr wr = long_write(bytes);

	bench_put(a, &wr);
	nic_be32_put((uint8_t *)mdl_at(a->dbrec) + 4, 1);
	bench_ring(a);
}

Test(nic_uar, a_record_beyond_what_was_written, .signal = SIGABRT)
{
	bench_put(a, &nop);
	nic_be32_put((uint8_t *)mdl_at(a->dbrec) + 4, 2);
	bench_ring(a);
}

Test(nic_uar, a_record_of_more_than_16_bits, .signal = SIGABRT)
{
	bench_put(a, &nop);
	nic_be32_put((uint8_t *)mdl_at(a->dbrec) + 4, 0x10001);
	bench_ring(a);
}

Test(nic_uar, a_record_in_the_wrong_byte_order, .signal = SIGABRT)
{
	bench_put(a, &nop);
	nic_be32_put((uint8_t *)mdl_at(a->dbrec) + 4, 0x01000000);
	bench_ring(a);
}

Test(nic_uar, an_index_that_jumps, .signal = SIGABRT)
{
	bench_put(a, &nop);
	nic_be32_put(mdl_at(a->sq), 1u << 8);
	nic_be32_put((uint8_t *)mdl_at(a->dbrec) + 4, 2);
	bench_ring(a);
}

Test(nic_uar, another_queue_pairs_number, .signal = SIGABRT)
{
	bench_put(a, &nop);
	nic_be32_put((uint8_t *)mdl_at(a->sq) + 4, b->number << 8 | 1);
	bench_record(a);
	bench_ring(a);
}

Test(nic_uar, a_wqe_that_is_not_in_the_queue, .signal = SIGABRT)
{
	uint8_t copy[64];

	bench_put(a, &nop);
	bench_record(a);
	memcpy(copy, mdl_at(a->sq), 64);
	memset(mdl_at(a->sq), 0, 64);
	nic_uar_write(0, 0, 0x800, copy, 64);
}

Test(nic_uar, a_copy_that_is_longer_than_the_register, .signal = SIGABRT)
{
	bench_put(a, &nop);
	bench_record(a);
	nic_uar_write(0, 0, 0x800, mdl_at(a->sq), 320);
}

Test(nic_uar, a_copy_that_is_not_made_of_blocks, .signal = SIGABRT)
{
	bench_put(a, &nop);
	bench_record(a);
	nic_uar_write(0, 0, 0x800, mdl_at(a->sq), 48);
}

Test(nic_uar, a_copy_of_half_a_wqe, .signal = SIGABRT)
{
	static const uint8_t bytes[200];
	struct bench_wr wr = long_write(bytes);

	bench_put(a, &wr);
	bench_record(a);
	nic_uar_write(0, 0, 0x800, mdl_at(a->sq), 128);
}

Test(nic_uar, a_register_of_another_page, .signal = SIGABRT)
{
	bench_put(a, &nop);
	bench_record(a);
	nic_uar_write(0, 1, 0x800, mdl_at(a->sq), 8);
}

Test(nic_uar, a_queue_pair_that_is_not_ready, .signal = SIGABRT)
{
	a->state = MDL_QPS_RTR;
	bench_post(a, &nop);
}

/* Four unsignalled WQEs fill the queue; nothing says that any of them is done. */
Test(nic_uar, a_slot_reused_before_a_completion, .signal = SIGABRT)
{
	for (int i = 0; i < 5; i++)
		bench_post(a, &quiet);
}

Test(nic_uar, a_slot_reused_after_a_completion_is_right)
{
	for (int i = 0; i < 3; i++)
		bench_post(a, &quiet);
	bench_post(a, &nop);
	for (int i = 0; i < 3; i++)
		bench_post(a, &quiet);
	cr_expect_eq(bench_get(a, MDL_CNT_WQES), 7);
}

Test(nic_uar, an_empty_segment_beside_inline_data, .signal = SIGABRT)
{
	uint8_t *wqe = mdl_at(a->sq);

	bench_put(a, &nop);
	memset(wqe, 0, 64);
	nic_be32_put(wqe, NIC_OP_SEND);
	nic_be32_put(wqe + 4, a->number << 8 | 3);
	nic_be32_put(wqe + 16, 0x80000000u | 12);
	bench_record(a);
	bench_ring(a);
}

static void look_at_records(int times)
{
	uint64_t now = mdl_now_ns();

	for (int i = 0; i < times; i++)
		nic_service(now + i * 500000000ull);
}

Test(nic_uar, a_record_without_a_doorbell_is_found_out, .signal = SIGABRT)
{
	bench_put(a, &nop);
	bench_record(a);
	look_at_records(8);
}

Test(nic_uar, a_doorbell_that_comes_late_is_in_time)
{
	bench_put(a, &nop);
	bench_record(a);
	nic_service(mdl_now_ns());
	nic_service(mdl_now_ns() + 60000000000ull); /* the process was stopped for a minute */
	bench_ring(a);
	look_at_records(20);
	cr_expect_eq(bench_get(a, MDL_CNT_WQES), 1);
}

Test(nic_uar, an_arm_before_its_record, .signal = SIGABRT)
{
	uint8_t bytes[8] = { 0, 0, 0, 1 };

	nic_be32_put(bytes + 4, cq->number);
	nic_uar_write(0, 0, 0x20, bytes, 8);
}

/* In poll mode a doorbell may be looked at late, by the service; order and contents stay. */
Test(nic_uar, poll_mode_gets_there_late_but_in_order)
{
	uint32_t late = 0;

	mdl_self.config.mode = MDL_MODE_POLL;
	for (int i = 0; i < 100; i++) {
		bench_post(a, &nop);
		if (!bench_poll(cq)) {
			late++;
			while (a->nic_stalled)
				nic_service(mdl_now_ns());
			cr_assert_not_null(bench_poll(cq), "%d", i);
		}
	}
	cr_expect(late > 10 && late < 95, "%u of 100 were late", late);
}
