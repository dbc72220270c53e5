/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of the states of a queue pair: flushing, discarding and suspending work. */
#include "model/nic/nic_be.h"
#include "unit/model/nic/nic_bench.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

#include <criterion/criterion.h>

static struct mdl_cq *cq_a, *cq_b;
static struct mdl_qp *a, *b;

static void setup(void)
{
	bench_open();
	cq_a = bench_cq(16, 64);
	cq_b = bench_cq(4, 64);
	a = bench_qp(MDL_QPT_RC, cq_a, NULL, 16);
	b = bench_qp(MDL_QPT_RC, cq_b, NULL, 16);
	bench_connect(a, b);
}

TestSuite(nic_qp, .init = setup);

static void to_state(struct mdl_qp *qp, uint32_t to)
{
	nic_qp_modify(qp, qp->state, to);
	qp->state = to;
	nic_qp_modified(qp);
}

Test(nic_qp, an_error_flushes_what_follows_it)
{
	bench_put(a, &(struct bench_wr){
			     .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 8, .lkey = 1 });
	bench_put(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 8 });
	bench_put(a, &(struct bench_wr){ .opcode = NIC_OP_NOP });
	bench_recv(a, bench.buf, 64, bench.key);
	bench_record(a);
	bench_ring(a);
	cr_expect_eq(bench_poll(cq_a)[55], NIC_SYN_LOCAL_PROT);
	for (uint32_t i = 1; i < 3; i++) {
		const uint8_t *cqe = bench_poll(cq_a);

		cr_assert_eq(bench_op(cqe), NIC_CQE_REQ_ERR);
		cr_expect_eq(cqe[55], NIC_SYN_FLUSH);
		cr_expect_eq(nic_be16_get(cqe + 60), i);
	}
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_RESP_ERR);
	cr_expect_null(bench_poll(cq_a));
}

Test(nic_qp, what_is_posted_in_error_is_flushed_too)
{
	to_state(a, MDL_QPS_ERR);
	cr_expect_null(bench_poll(cq_a));
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_NOP });
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_REQ_ERR);
	bench_recv(a, bench.buf, 64, bench.key);
	cr_expect_null(bench_poll(cq_a), "a receive rings no doorbell");
	nic_service(mdl_now_ns());
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_RESP_ERR);
}

Test(nic_qp, flushing_waits_for_room)
{
	for (int i = 0; i < 6; i++)
		bench_recv(b, bench.buf, 64, bench.key);
	to_state(b, MDL_QPS_ERR);
	for (int i = 0; i < 4; i++)
		cr_assert_not_null(bench_poll(cq_b));
	cr_expect_null(bench_poll(cq_b));
	nic_service(mdl_now_ns());
	cr_expect_not_null(bench_poll(cq_b));
	cr_expect_not_null(bench_poll(cq_b));
	cr_expect_null(bench_poll(cq_b));
}

Test(nic_qp, reset_forgets_everything)
{
	bench_recv(a, bench.buf, 64, bench.key);
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 8 });
	cr_assert_neq(a->nic_stalled, 0);
	to_state(a, MDL_QPS_RESET);
	cr_expect_eq(a->nic_stalled, 0);
	cr_expect_eq(a->nic_sq_pi, 0);
	cr_expect_null(bench_poll(cq_a));
}

Test(nic_qp, a_drained_queue_goes_on_when_it_may)
{
	a->state = MDL_QPS_SQD;
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_NOP, .flags = 8 });
	cr_expect_null(bench_poll(cq_a));
	to_state(a, MDL_QPS_RTS);
	cr_expect_not_null(bench_poll(cq_a));
}

Test(nic_qp, a_broken_responder_flushes_its_own_send_queue_in_its_service)
{
	/* b waits for a receive at a; then a breaks b. */
	bench_post(b, &(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 8 });
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_WRITE,
					  .raddr = 1,
					  .rkey = 1,
					  .addr = bench.buf,
					  .len = 8 });
	cr_expect_eq(bench_poll(cq_a)[55], NIC_SYN_REMOTE_ACCESS);
	cr_expect_eq(b->state, MDL_QPS_ERR);
	cr_expect_null(bench_poll(cq_b));
	nic_service(mdl_now_ns());
	cr_expect_eq(bench_poll(cq_b)[55], NIC_SYN_FLUSH);
}

Test(nic_qp, an_unreliable_one_breaks_only_its_send_queue)
{
	a->type = b->type = MDL_QPT_UC;
	bench_recv(a, bench.buf, 64, bench.key);
	bench_post(a, &(struct bench_wr){
			      .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 8, .lkey = 1 });
	cr_expect_eq(a->state, MDL_QPS_SQE);
	cr_expect_eq(bench_poll(cq_a)[55], NIC_SYN_LOCAL_PROT);
	bench_post(b, &(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 8 });
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_RESP_SEND);
}

Test(nic_qp, a_destroyed_qp_is_no_peer)
{
	nic_qp_destroy(b);
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 8 });
	cr_expect_null(bench_poll(cq_a));
	cr_expect(a->nic_stalled & NIC_WAIT_RETRY);
}
