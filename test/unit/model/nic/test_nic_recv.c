/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of receive WQEs: assignment to messages, and recovery after the death of the taker. */
#include "model/nic/nic_be.h"
#include "unit/model/broken_rule.h"
#include "unit/model/nic/nic_bench.h"
#include "model/nic/nic_recv.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

#include <criterion/criterion.h>
#include <signal.h>

static struct mdl_cq *cq;
static struct mdl_srq *srq;
static struct mdl_qp *a, *b;

static void setup(void)
{
	bench_open();
	cq = bench_cq(32, 64);
	srq = bench_srq(4);
	a = bench_qp(MDL_QPT_RC, bench_cq(16, 64), NULL, 8);
	b = bench_qp(MDL_QPT_RC, cq, srq, 8);
	bench_connect(a, b);
}

TestSuite(nic_recv, .init = setup);

static int next_counter(void)
{
	const uint8_t *cqe;

	bench_post(a, &(struct bench_wr){
			      .opcode = NIC_OP_SEND, .flags = 8, .addr = bench.buf, .len = 8 });
	cqe = bench_poll(cq);
	return cqe ? nic_be16_get(cqe + 60) : -1;
}

Test(nic_recv, a_shared_queue_follows_its_links)
{
	bench_srq_recv(srq, 0, 2, bench.buf, 64);
	bench_srq_recv(srq, 2, 1, bench.buf, 64);
	bench_srq_recv(srq, 1, 3, bench.buf, 64);
	cr_expect_eq(next_counter(), 0);
	cr_expect_eq(next_counter(), 2);
	cr_expect_eq(next_counter(), 1);
	cr_expect_eq(next_counter(), -1, "index 3 is linked, but not posted");
	bench_srq_recv(srq, 3, 0, bench.buf, 64);
	nic_service(mdl_now_ns() + 20000);
	cr_expect_eq(nic_be16_get(bench_poll(cq) + 60), 3);
}

Test(nic_recv, the_limit_event_comes_once_when_fewer_are_left)
{
	srq->limit = 2;
	for (uint32_t i = 0; i < 4; i++)
		bench_srq_recv(srq, i, (i + 1) & 3, bench.buf, 64);
	next_counter();
	next_counter();
	cr_expect_eq(bench.async_cnt, 0, "2 are left");
	next_counter();
	cr_expect_eq(bench.async_cnt, 1);
	cr_expect_eq(bench.async_last, 15);
	next_counter();
	cr_expect_eq(bench.async_cnt, 1);
}

Test(nic_recv, a_wqe_whose_taker_died_goes_to_the_next_message)
{
	struct nic_taken taken;

	for (uint32_t i = 0; i < 3; i++)
		bench_srq_recv(srq, i, i + 1, bench.buf, 64);
	cr_assert_eq(nic_recv_take(b, &taken), NIC_TAKEN);
	nic_recv_repair(b);
	cr_expect_eq(next_counter(), 0);
	cr_expect_eq(next_counter(), 1);
	cr_expect_eq(next_counter(), 2);
	cr_expect_eq(next_counter(), -1);
}

/* The taker died between its CQE and its own bookkeeping: the WQE is done and not given again. */
Test(nic_recv, a_wqe_whose_completion_was_written_is_not_given_again)
{
	for (uint32_t i = 0; i < 3; i++)
		bench_srq_recv(srq, i, i + 1, bench.buf, 64);
	cr_assert_eq(next_counter(), 0);
	nic_qp_priv(b)->taken = 1;
	nic_qp_priv(b)->completing = NIC_COMPLETING_WRITTEN;
	nic_recv_repair(b);
	cr_expect_eq(next_counter(), 1);
}

static struct mdl_qp *counted(void)
{
	struct mdl_qp *c = bench_qp(MDL_QPT_RC, cq, NULL, 8);

	bench_connect(a, c);
	for (int i = 0; i < 3; i++)
		bench_recv(c, bench.buf, 64, bench.key);
	cr_assert_eq(next_counter(), 0);
	return c;
}

Test(nic_recv, a_counted_queue_goes_on_behind_a_written_completion)
{
	struct mdl_qp *c = counted();

	c->nic_rq_ci--;
	nic_qp_priv(c)->completing = NIC_COMPLETING_WRITTEN;
	nic_recv_repair(c);
	cr_expect_eq(next_counter(), 1, "the one that was completed is done");
	nic_qp_priv(c)->completing = NIC_COMPLETING_WRITES;
	nic_recv_repair(c);
	cr_expect_eq(next_counter(), 2, "the one that was not comes next");
}

static void *die_with_lock(void *lock)
{
	mdl_lock(lock);
	return NULL;
}

/*
 * The taker died in the CQ, after its CQE and before the index. The next owner of the lock records
 * the completion.
 */
Test(nic_recv, a_completion_that_its_writer_did_not_note_is_found)
{
	struct mdl_qp *c = counted();
	uint32_t pi = cq->nic_pi;
	pthread_t thread;

	c->nic_rq_ci--;
	cq->nic_pi--;
	nic_qp_priv(c)->completing = NIC_COMPLETING_WRITES;
	pthread_create(&thread, NULL, die_with_lock, &cq->lock);
	pthread_join(thread, NULL);
	nic_recv_repair(c);
	cr_expect_eq(cq->nic_pi, pi);
	cr_expect_eq(nic_qp_priv(c)->completing, NIC_COMPLETING_NOT);
	cr_expect_eq(next_counter(), 1);
}

/* The taker died before its CQE, and the queue made a lap before the repair. */
Test(nic_recv, a_receive_is_not_lost_after_a_lap_of_the_queue)
{
	struct bench_wr nop = { .opcode = NIC_OP_NOP, .flags = 8 };
	struct mdl_qp *c = counted(), *other = bench_qp(MDL_QPT_RC, cq, NULL, 8);

	nic_qp_priv(c)->completing = NIC_COMPLETING_WRITES;
	bench_connect(bench_qp(MDL_QPT_RC, cq, NULL, 8), other);
	for (int i = 0; i < 40; i++) {
		bench_post(other, &nop);
		cr_assert_not_null(bench_poll(cq));
	}
	nic_recv_repair(c);
	cr_expect_eq(next_counter(), 1);
}

Test(nic_recv, a_record_of_more_than_16_bits_ends_the_program, .signal = SIGABRT)
{
	broken_rule_expect("its receive record is 0x00010001. The count has 16 bits");
	bench_srq_recv(srq, 0, 1, bench.buf, 64);
	nic_be32_put(mdl_at(srq->dbrec), 0x10001);
	next_counter();
}

Test(nic_recv, more_posted_than_the_queue_holds_ends_the_program, .signal = SIGABRT)
{
	broken_rule_expect("its record is 5, but 0 WQEs were taken and the queue holds 4");
	for (uint32_t i = 0; i < 5; i++)
		bench_srq_recv(srq, i & 3, i + 1, bench.buf, 64);
	next_counter();
}

Test(nic_recv, a_link_out_of_the_queue_ends_the_program, .signal = SIGABRT)
{
	broken_rule_expect(
		"names 4 as the next one, but there are 4. Bytes 2 and 3 of each WQE link");
	bench_srq_recv(srq, 0, 4, bench.buf, 64);
	bench_srq_recv(srq, 1, 2, bench.buf, 64);
	next_counter();
	next_counter();
}

/* Posts to a queue pair's own queue: a's, as b sends. */
static void post_to_own(uint32_t record)
{
	nic_be32_put(mdl_at(a->dbrec), record);
	bench_post(b, &(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 8 });
}

Test(nic_recv, an_own_record_of_more_than_16_bits_ends_the_program, .signal = SIGABRT)
{
	broken_rule_expect("its receive record is 0x01000000. The count has 16 bits");
	post_to_own(0x01000000);
}

Test(nic_recv, more_posted_than_an_own_queue_holds_ends_the_program, .signal = SIGABRT)
{
	broken_rule_expect(
		"its receive record is 9, but 0 receives were completed and the queue holds 8");
	post_to_own(9);
}

Test(nic_recv, the_shared_queue_counts_over_65535)
{
	nic_srq_priv(srq)->position = 0xfffeull << 32;
	nic_be32_put(mdl_at(srq->dbrec), 2);
	for (uint32_t i = 0; i < 4; i++)
		nic_be16_put((uint8_t *)mdl_at(srq->buf) + i * 32 + 2, (i + 1) & 3);
	for (int want = 0; want < 4; want++) {
		uint8_t *wqe = (uint8_t *)mdl_at(srq->buf) + want * 32;

		nic_be32_put(wqe + 16, 64);
		nic_be32_put(wqe + 20, bench.key);
		nic_be64_put(wqe + 24, (uintptr_t)bench.buf);
	}
	for (int want = 0; want < 4; want++)
		cr_expect_eq(next_counter(), want);
	cr_expect_eq(next_counter(), -1);
}
