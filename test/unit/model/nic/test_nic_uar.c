/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the rules of doorbells and of the send queue: each violation ends with its message, and
 * correct use does not.
 */
#include "model/nic/nic_be.h"
#include "unit/model/broken_rule.h"
#include "unit/model/nic/nic_bench.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_wqe.h"

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

/** Writes a WQE and its record, without the doorbell. */
static void put_and_record(void)
{
	bench_put(a, &nop);
	bench_record(a);
}

static void set_record(uint32_t cnt)
{
	nic_be32_put((uint8_t *)mdl_at(a->dbrec) + 4, cnt);
}

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
	put_and_record();
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
	broken_rule_expect("First the record");
	bench_put(a, &nop);
	bench_ring(a);
}

Test(nic_uar, a_doorbell_rung_twice, .signal = SIGABRT)
{
	broken_rule_expect("rung a second time for the WQE in send block 0");
	bench_post(a, &nop);
	bench_ring(a);
}

Test(nic_uar, a_doorbell_for_a_dc_target, .signal = SIGABRT)
{
	struct mdl_qp *dct = bench_dct(cq, bench_srq(4), 1);
	uint8_t bytes[8] = { 0 };

	broken_rule_expect("It has no send queue; post to a DC initiator");
	nic_be32_put(bytes + 4, dct->number << 8 | 1);
	nic_uar_write(0, 0, 0x800, bytes, 8);
}

Test(nic_uar, a_record_that_counts_wqes_and_not_blocks, .signal = SIGABRT)
{
	static const uint8_t bytes[200];
	struct bench_wr wr = long_write(bytes);

	broken_rule_expect("the record is 1, but the doorbell carries the control segment");
	bench_put(a, &wr);
	set_record(1);
	bench_ring(a);
}

Test(nic_uar, a_record_beyond_what_was_written, .signal = SIGABRT)
{
	broken_rule_expect("the record is 2, but the doorbell carries the control segment");
	bench_put(a, &nop);
	set_record(2);
	bench_ring(a);
}

Test(nic_uar, a_record_of_more_than_16_bits, .signal = SIGABRT)
{
	broken_rule_expect("its send record is 0x00010001. The count has 16 bits");
	bench_put(a, &nop);
	set_record(0x10001);
	bench_ring(a);
}

Test(nic_uar, a_record_in_the_wrong_byte_order, .signal = SIGABRT)
{
	broken_rule_expect(
		"its send record is 0x01000000. The count has 16 bits, most significant byte "
		"first");
	bench_put(a, &nop);
	set_record(0x01000000);
	bench_ring(a);
}

/* Posts two WQEs and corrupts the first: its 32-bit word at `off` becomes `value`. */
static void post_two(uint32_t off, uint32_t value)
{
	bench_put(a, &nop);
	bench_put(a, &nop);
	nic_be32_put((uint8_t *)mdl_at(a->sq) + off, value);
	bench_record(a);
	bench_ring(a);
}

Test(nic_uar, a_wqe_that_was_not_written, .signal = SIGABRT)
{
	broken_rule_expect(
		"send block 0: DS is 0. Either the WQE was not written before its doorbell");
	post_two(4, a->number << 8);
}

Test(nic_uar, an_index_that_jumps, .signal = SIGABRT)
{
	broken_rule_expect("the WQE in send block 0 has index 5");
	post_two(0, 5u << 8);
}

Test(nic_uar, another_queue_pairs_number, .signal = SIGABRT)
{
	broken_rule_expect("the WQE in send block 0 names QP");
	post_two(4, b->number << 8 | 1);
}

Test(nic_uar, a_wqe_that_reaches_beyond_the_record, .signal = SIGABRT)
{
	broken_rule_expect(
		"the WQE in send block 0 has 3 blocks, but the doorbell record ends after 2");
	post_two(4, a->number << 8 | 12);
}

Test(nic_uar, segments_that_are_missing, .signal = SIGABRT)
{
	broken_rule_expect(
		"(opcode 0x08 WRITE, 1 segments): the WQE ends before its remote address");
	post_two(0, NIC_OP_WRITE);
}

Test(nic_uar, a_doorbell_of_a_queue_pair_that_is_not_there, .signal = SIGABRT)
{
	uint8_t bytes[8] = { 0, 0, 0, 0, 0xab, 0xcd, 0xef, 1 };

	broken_rule_expect("a doorbell names QP 0xabcdef, but this process has no such QP");
	nic_uar_write(0, 0, 0x800, bytes, 8);
}

Test(nic_uar, a_doorbell_beside_the_start_of_a_register, .signal = SIGABRT)
{
	broken_rule_expect("a doorbell was written to 0x808, which is no start of a register half");
	put_and_record();
	nic_uar_write(0, 0, 0x808, mdl_at(a->sq), 8);
}

Test(nic_uar, what_is_no_register_at_all, .signal = SIGABRT)
{
	broken_rule_expect(
		"8 bytes were written to offset 0x100 of UAR page 0. The arm register is");
	bench_put(a, &nop);
	nic_uar_write(0, 0, 0x100, mdl_at(a->sq), 8);
}

Test(nic_uar, a_copy_with_a_block_that_is_empty, .signal = SIGABRT)
{
	broken_rule_expect("a BlueFlame copy of 128 bytes holds no WQE at byte 64 (DS is 0)");
	put_and_record();
	nic_uar_write(0, 0, 0x800, mdl_at(a->sq), 128);
}

Test(nic_uar, a_copy_with_a_wqe_of_another_queue_pair, .signal = SIGABRT)
{
	broken_rule_expect("a BlueFlame copy holds a WQE of QP");
	bench_put(a, &nop);
	bench_put(a, &nop);
	nic_be32_put((uint8_t *)mdl_at(a->sq) + 64 + 4, b->number << 8 | 1);
	bench_record(a);
	nic_uar_write(0, 0, 0x800, mdl_at(a->sq), 128);
}

Test(nic_uar, a_wqe_that_is_not_in_the_queue, .signal = SIGABRT)
{
	uint8_t copy[64];

	broken_rule_expect(
		"differs from send block 0 of the queue. A WQE always stands in the queue too");
	put_and_record();
	memcpy(copy, mdl_at(a->sq), 64);
	memset(mdl_at(a->sq), 0, 64);
	nic_uar_write(0, 0, 0x800, copy, 64);
}

Test(nic_uar, a_copy_that_is_longer_than_the_register, .signal = SIGABRT)
{
	broken_rule_expect("320 bytes were written to the register half at 0x800, which has 256");
	put_and_record();
	nic_uar_write(0, 0, 0x800, mdl_at(a->sq), 320);
}

Test(nic_uar, a_copy_that_is_not_made_of_blocks, .signal = SIGABRT)
{
	broken_rule_expect("a BlueFlame copy has 48 bytes. It is made of whole 64-byte blocks");
	put_and_record();
	nic_uar_write(0, 0, 0x800, mdl_at(a->sq), 48);
}

Test(nic_uar, a_copy_of_half_a_wqe, .signal = SIGABRT)
{
	static const uint8_t bytes[200];
	struct bench_wr wr = long_write(bytes);

	broken_rule_expect(
		"a BlueFlame copy of 128 bytes ends inside the WQE of block 0, which has 4 blocks");
	bench_put(a, &wr);
	bench_record(a);
	nic_uar_write(0, 0, 0x800, mdl_at(a->sq), 128);
}

Test(nic_uar, a_register_of_another_page, .signal = SIGABRT)
{
	broken_rule_expect("rung on UAR page 1 of context 0; the QP was created on page 0");
	put_and_record();
	nic_uar_write(0, 1, 0x800, mdl_at(a->sq), 8);
}

Test(nic_uar, a_queue_pair_that_is_not_ready, .signal = SIGABRT)
{
	broken_rule_expect("its doorbell was rung in state RTR");
	a->state = MDL_QPS_RTR;
	bench_post(a, &nop);
}

/* Four unsignalled WQEs fill the queue. No completion reports any of them as done. */
Test(nic_uar, a_slot_reused_before_a_completion, .signal = SIGABRT)
{
	broken_rule_expect("WQEs that may still be needed were overwritten");
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

	broken_rule_expect("a data segment of length 0 stands beside inline data");
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
	broken_rule_expect("but no doorbell was rung since");
	put_and_record();
	look_at_records(8);
}

Test(nic_uar, a_doorbell_that_comes_late_is_in_time)
{
	put_and_record();
	nic_service(mdl_now_ns());
	nic_service(mdl_now_ns() + 60000000000ull); /* the process was stopped for a minute */
	bench_ring(a);
	look_at_records(20);
	cr_expect_eq(bench_get(a, MDL_CNT_WQES), 1);
}

Test(nic_uar, an_arm_before_its_record, .signal = SIGABRT)
{
	uint8_t bytes[8] = { 0, 0, 0, 1 };

	broken_rule_expect("but its arm record is 0x00000000. Write the record first");
	nic_be32_put(bytes + 4, cq->number);
	nic_uar_write(0, 0, 0x20, bytes, 8);
}

/* In poll mode the service may process a doorbell late; order and contents stay. */
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
