/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of completions: slots, laps, events, and compression. */
#include "model/fabric/mdl_table.h"
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
static struct bench_wr send_solicited = { .opcode = NIC_OP_SEND, .flags = 2 };
static struct bench_wr send_plain = { .opcode = NIC_OP_SEND };

static void setup_size(uint32_t cnt, uint32_t size)
{
	bench_open();
	cq = bench_cq(cnt, size);
	a = bench_qp(MDL_QPT_RC, bench_cq(64, 64), NULL, 32);
	b = bench_qp(MDL_QPT_RC, cq, NULL, 32);
	bench_connect(a, b);
}

static void setup(void)
{
	setup_size(4, 64);
}

TestSuite(nic_cq, .init = setup);

Test(nic_cq, three_laps_of_128_byte_cqes)
{
	setup_size(4, 128);
	for (int i = 0; i < 12; i++) {
		bench_post(b, &nop);
		cr_assert_eq(bench_op(bench_poll(cq)), NIC_CQE_REQ, "%d", i);
		cr_assert_null(bench_poll(cq));
	}
}

Test(nic_cq, a_full_queue_is_not_an_overrun)
{
	for (int i = 0; i < 4; i++)
		bench_post(b, &nop);
	for (int i = 0; i < 4; i++)
		cr_assert_not_null(bench_poll(cq));
}

Test(nic_cq, one_more_is, .signal = SIGABRT)
{
	broken_rule_expect(
		"overrun: 4 completions written, consumer index record 0, room for 4. Size a CQ");
	for (int i = 0; i < 5; i++)
		bench_post(b, &nop);
}

Test(nic_cq, a_consumer_index_that_is_ahead_ends_the_program, .signal = SIGABRT)
{
	broken_rule_expect("the consumer index record is 1, but only 0 completions were written");
	nic_be32_put(mdl_at(cq->dbrec), 1);
	bench_post(b, &nop);
}

/*
 * The sender's process writes them and continues. The process that owns the queue ends through its
 * own service.
 */
Test(nic_cq, the_process_at_fault_ends_and_not_the_detecting_one, .signal = SIGABRT)
{
	broken_rule_expect("overrun: 4 completions written");
	cq->proc = 1;
	for (int i = 0; i < 5; i++)
		bench_post(b, &nop);
	nic_service(mdl_now_ns());
	cr_assert_eq(bench.wakes, 1);
	mdl_self.slot = 1;
	nic_service(mdl_now_ns());
}

Test(nic_cq, overruns_are_ignored_on_request)
{
	cq->ignore_overrun = 1;
	for (int i = 0; i < 30; i++) {
		bench_post(b, &nop);
		cr_assert_not_null(bench_poll(cq));
		nic_be32_put(mdl_at(cq->dbrec), 0);
	}
}

Test(nic_cq, the_consumer_index_wraps_at_24_bits)
{
	cq->nic_pi = 0xfffffe;
	nic_be32_put(mdl_at(cq->dbrec), 0xfffffe);
	for (int i = 0; i < 4; i++) {
		bench_post(b, &nop);
		nic_be32_put(mdl_at(cq->dbrec), (0xffffff + i) & 0xffffff);
	}
	cr_expect_eq(cq->nic_pi, 0x1000002);
	cr_expect_eq(cq->nic_error, 0);
}

Test(nic_cq, an_armed_queue_raises_one_event)
{
	bench_post(b, &nop);
	cr_expect_eq(bench.cq_events, 0);
	bench_poll(cq);
	bench_arm(cq, 1, false);
	cr_expect_eq(bench.cq_events, 0, "everything was read");
	bench_post(b, &nop);
	bench_post(b, &nop);
	cr_expect_eq(bench.cq_events, 1);
	bench_arm(cq, 1, false);
	cr_expect_eq(bench.cq_events, 2, "two were not read");
}

Test(nic_cq, armed_for_solicited_it_waits_for_one)
{
	for (int i = 0; i < 4; i++)
		bench_recv(b, bench.buf, 64, bench.key);
	bench_arm(cq, 0, true);
	bench_post(a, &send_plain);
	cr_expect_eq(bench.cq_events, 0);
	bench_post(a, &send_solicited);
	cr_expect_eq(bench.cq_events, 1);
	bench_arm(cq, 1, true);
	cr_expect_eq(bench.cq_events, 2, "the solicited one is still there");
	bench_arm(cq, 2, true);
	cr_expect_eq(bench.cq_events, 2);
}

/* In poll mode the program may have destroyed the queue before the store is seen. */
Test(nic_cq, an_arm_seen_late_finds_no_queue_any_more)
{
	mdl_self.config.mode = MDL_MODE_POLL;
	mdl_table_hide(cq);
	bench_arm(cq, 0, false);
	cr_expect_eq(cq->nic_armed, 0);
}

Test(nic_cq, an_arm_that_is_seen_at_once_names_a_queue, .signal = SIGABRT)
{
	broken_rule_expect("was armed, but this process has no such CQ");
	mdl_table_hide(cq);
	bench_arm(cq, 0, false);
}

Test(nic_cq, an_error_counts_as_solicited)
{
	bench_arm(cq, 0, true);
	bench_post(b, &(struct bench_wr){
			      .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 8, .lkey = 1 });
	cr_expect_eq(bench.cq_events, 1);
}

/* A writer died between the CQE and the index. */
Test(nic_cq, a_published_cqe_behind_the_index_is_kept)
{
	bench_post(b, &nop);
	cq->nic_pi--;
	cr_assert_not_null(bench_poll(cq));
	cr_assert_eq(cq->nic_pi, 0);
	/* The process tests cover takeover of the lock of a dead owner. */
}

/* Expected layout: a title with format 3, arrays in slots 1, 8, 16; holes elsewhere. */
Test(nic_cq, a_run_of_receives_is_compressed)
{
	const uint8_t *ring;

	setup_size(32, 64);
	cq->comp_en = 1;
	ring = mdl_at(cq->buf);
	for (int i = 0; i < 20; i++) {
		bench_recv(b, bench.buf, 64, bench.key);
		bench_put(a, &(struct bench_wr){
				     .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 40 + i });
	}
	bench_record(a);
	bench_ring(a);
	cr_assert_eq(ring[63], NIC_CQE_RESP_SEND << 4 | 3 << 2);
	cr_expect_eq(nic_be32_get(ring + 44), 20);
	cr_expect_eq(nic_be16_get(ring + 60), 0);
	for (uint32_t k = 0; k < 20; k++) {
		uint32_t slot = k < 8 ? 1 : k / 8 * 8;

		cr_expect_eq(nic_be32_get(ring + slot * 64 + k % 8 * 8 + 4), 40 + k, "mini %u", k);
	}
	cr_expect_eq(bench_get(b, MDL_CNT_CQES_RESP), 20);
	cr_expect_eq(cq->nic_pi, 20);
}

Test(nic_cq, one_alone_is_not_compressed)
{
	setup_size(32, 64);
	cq->comp_en = 1;
	bench_post(b, &nop);
	cr_expect_eq(bench_poll(cq)[63], 0);
	bench_post(b, &nop);
	cr_expect_eq(bench_poll(cq)[63], 0);
}

Test(nic_cq, the_old_buffer_of_a_resized_queue_ends_with_a_resize_cqe)
{
	uint64_t old_buf = cq->buf;
	struct mdl_cq *other = bench_cq(8, 64);

	bench_post(b, &nop);
	cq->buf = other->buf;
	cq->cqe_cnt = 8;
	nic_cq_resize(cq, old_buf, 4, 64);
	cr_expect_eq(((uint8_t *)mdl_at(old_buf))[127], NIC_CQE_RESIZE << 4);
}
