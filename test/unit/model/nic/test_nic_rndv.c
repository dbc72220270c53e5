/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of rendezvous by the device: the data are read, both sides learn of the end, and a failure
 * reaches both.
 */
#include "unit/model/nic/tm_bench.h"
#include "model/nic/nic_be.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_rndv.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_tm_recv.h"

enum { FIN_AT = TM_SRQ_AT + TM_POSTED * TM_WQE_BYTES };

TestSuite(nic_rndv, .init = tm_setup);

static void post_fin_receive(void)
{
	bench_recv(tm.s, bench.buf + FIN_AT, 64, bench.key);
}

static const uint8_t *expect_match(uint32_t entry)
{
	const uint8_t *cqe = tm_poll();

	tm_expect(cqe, NIC_CQE_NO_PACKET, NIC_APP_CONSUMED);
	cr_expect_eq(nic_be16_get(cqe + 42), entry);
	return cqe;
}

static void service_when_due(void)
{
	while (mdl_now_ns() < nic_qp_priv(tm.s)->rndv_due_ns)
		;
	nic_service(mdl_now_ns());
}

Test(nic_rndv, a_matched_request_is_read_and_reported_to_both)
{
	uint32_t entry = tm_append_next(1, tm_all, 2500, 0, 1);
	const uint8_t *cqe;

	tm_expect(tm_poll(), NIC_CQE_NO_PACKET, NIC_APP_APPEND);
	post_fin_receive();
	tm_request(1, 2500);
	cqe = expect_match(entry);
	cr_expect_arr_eq(cqe, bench.buf, 16);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_RESP_SEND, NIC_APP_EXPECTED);
	cr_expect_eq(nic_be16_get(cqe + 42), entry);
	cr_expect_eq(nic_be32_get(cqe + 44), 2500);
	cr_expect_arr_eq(bench.buf + TM_TAG_AT, bench.buf, 2500);
	cr_expect_eq(bench_op(bench_poll(tm.cq_s)), NIC_CQE_REQ, "the request is sent");
	cqe = bench_poll(tm.cq_s);
	cr_assert_eq(bench_op(cqe), NIC_CQE_RESP_SEND);
	cr_expect_eq(cqe[40], 0, "the sender has no XRQ");
	cr_expect_eq(nic_be32_get(cqe + 44), 32);
	cr_expect_eq(bench.buf[FIN_AT], NIC_TMH_FIN);
	cr_expect_arr_eq(bench.buf + FIN_AT + 1, bench.buf + 1, 31, "the request's headers");
	cr_expect_eq(bench_get(tm.r, MDL_CNT_TM_RENDEZVOUS), 1);
	cr_expect_eq(bench_get(tm.r, MDL_CNT_WQES), 0, "no WQE of the receiver is executed");
	/* out: READ and FIN; in: the request and three packets of 1024 bytes at most */
	cr_expect_eq(bench_get(tm.r, MDL_CNT_PACKETS_OUT), 2);
	cr_expect_eq(bench_get(tm.r, MDL_CNT_PACKETS_IN), 4);
}

Test(nic_rndv, a_sender_with_an_xrq_gets_the_end_without_a_tag)
{
	struct mdl_cq *cq = bench_cq(16, 64);
	struct mdl_qp *s = bench_qp(MDL_QPT_RC, cq, tm.xrq, 16);

	tm.s = s;
	bench_connect(tm.s, tm.r);
	tm_append(1, tm_all, 0);
	tm_request(1, 100);
	expect_match(0);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_NO_TAG);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_EXPECTED);
	cr_expect_eq(bench.buf[TM_SRQ_AT], NIC_TMH_FIN);
	cr_expect_eq(bench_op(bench_poll(cq)), NIC_CQE_REQ);
}

Test(nic_rndv, an_empty_rendezvous_needs_no_access)
{
	tm.s->access = 0;
	tm_append(1, tm_all, 0);
	post_fin_receive();
	tm_request(1, 0);
	expect_match(0);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_EXPECTED);
	cr_expect_eq(bench.buf[FIN_AT], NIC_TMH_FIN);
}

Test(nic_rndv, the_end_waits_for_a_receive_of_the_sender_and_its_queue_goes_on)
{
	tm_append(1, tm_all, 0);
	tm_request(1, 100);
	expect_match(0);
	cr_expect_null(tm_poll());
	cr_expect_eq(bench_get(tm.s, MDL_CNT_RNR_NAKS), 1);
	tm_send(NIC_TMH_EAGER, 9, 20);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_UNEXPECTED);
	post_fin_receive();
	service_when_due();
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_EXPECTED);
	cr_expect_eq(bench.buf[FIN_AT], NIC_TMH_FIN);
	cr_expect_eq(bench_get(tm.r, MDL_CNT_PACKETS_OUT), 2, "it is read once");
}

Test(nic_rndv, sixteen_wait_in_order_and_the_next_finds_the_receiver_not_ready)
{
	enum { MOST = 16 };

	for (uint32_t i = 0; i <= MOST; i++)
		tm_append(1, tm_all, 0);
	for (uint32_t i = 0; i <= MOST; i++)
		tm_request(1, 100);
	for (uint32_t i = 0; i < MOST; i++)
		expect_match(i);
	cr_expect_null(tm_poll());
	cr_expect_eq(tm.s->nic_rndvs, MOST);
	for (uint32_t i = 0; i < MOST; i++)
		post_fin_receive();
	service_when_due();
	for (uint32_t i = 0; i < MOST; i++) {
		const uint8_t *cqe = tm_poll();

		tm_expect(cqe, NIC_CQE_RESP_SEND, NIC_APP_EXPECTED);
		cr_expect_eq(nic_be16_get(cqe + 42), i);
	}
	nic_service(mdl_now_ns() + 20000000);
	expect_match(MOST);
}

Test(nic_rndv, a_request_longer_than_the_buffer_is_left_to_software)
{
	const uint8_t *cqe;

	tm_append(1, tm_all, 0);
	tm_request(1, TM_TAG_BYTES + 1);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_RESP_SEND, NIC_APP_CONSUMED_RNDV);
	cr_expect_eq(nic_be32_get(cqe + 44), 32);
	cr_expect_arr_eq(bench.buf + TM_TAG_AT, bench.buf, 32, "the headers");
	cr_expect_null(tm_poll());
	cr_expect_eq(tm.s->nic_rndvs, 0);
	cr_expect_eq(bench_get(tm.r, MDL_CNT_TM_RENDEZVOUS), 0);
	cr_expect_eq(bench_get(tm.r, MDL_CNT_TM_MATCHES), 1);
}

static void expect_failed(void)
{
	expect_match(0);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_CANCELED);
	cr_expect_null(tm_poll());
	cr_expect_eq(tm.r->state, MDL_QPS_ERR);
	cr_expect_eq(tm.s->state, MDL_QPS_ERR);
	cr_expect_eq(tm.s->nic_rndvs, 0);
}

Test(nic_rndv, a_read_that_is_refused_ends_both_queue_pairs)
{
	tm_append(1, tm_all, 0);
	tm.s->access = MDL_ACCESS_REMOTE_WRITE;
	tm_request(1, 100);
	expect_failed();
	tm_setup();
	tm_append(1, tm_all, 0);
	tm.s->max_dest_rd_atomic = 0;
	tm_request(1, 100);
	expect_failed();
	tm_setup();
	tm_append(1, tm_all, 0);
	tm_request(1, 101);
	expect_match(0);
	cr_expect_null(tm_poll(), "this one is permitted, its end waits");
}

Test(nic_rndv, a_region_that_is_gone_is_not_read)
{
	uint32_t key = bench_mr(bench.buf, 512, MDL_ACCESS_REMOTE_READ);

	tm_append(1, tm_all, 0);
	nic_be64_put(bench.buf + 16, (uintptr_t)bench.buf);
	nic_be32_put(bench.buf + 24, key ^ 0x100);
	nic_be32_put(bench.buf + 28, 64);
	tm_send(NIC_TMH_RNDV, 1, 32);
	expect_failed();
}

static void to_state(struct mdl_qp *qp, uint32_t state)
{
	nic_qp_modify(qp, qp->state, state);
	qp->state = state;
	nic_qp_modified(qp);
}

Test(nic_rndv, a_receiver_that_leaves_gets_its_entry_back)
{
	tm_append(1, tm_all, 0);
	tm_request(1, 100);
	expect_match(0);
	to_state(tm.r, MDL_QPS_ERR);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_CANCELED);
	post_fin_receive();
	service_when_due();
	cr_expect_null(tm_poll(), "no second end");
	cr_expect_eq(tm.s->nic_rndvs, 0);
}

Test(nic_rndv, a_sender_that_leaves_ends_the_queue_pair_of_the_receiver)
{
	tm_append(1, tm_all, 0);
	tm_request(1, 100);
	expect_match(0);
	to_state(tm.s, MDL_QPS_RESET);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_CANCELED);
	cr_expect_eq(tm.r->state, MDL_QPS_ERR);
	cr_expect_eq(tm.s->nic_rndvs, 0);
}

Test(nic_rndv, a_destroyed_sender_ends_the_queue_pair_of_the_receiver)
{
	tm_append(1, tm_all, 0);
	tm_request(1, 100);
	expect_match(0);
	nic_qp_destroy(tm.s);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_CANCELED);
	cr_expect_eq(tm.r->state, MDL_QPS_ERR);
}

Test(nic_rndv, a_sender_that_died_ends_the_queue_pair_of_the_receiver)
{
	tm_append(1, tm_all, 0);
	tm_request(1, 100);
	expect_match(0);
	mdl_self.seg->proc[1].state = MDL_PROC_DEAD;
	nic_rndv_check_sender(tm.r);
	cr_expect_eq(tm.r->state, MDL_QPS_RTS, "the sender lives");
	tm.s->proc = 1;
	nic_rndv_check_sender(tm.cmd);
	cr_expect_eq(tm.cmd->state, MDL_QPS_RTS, "nothing comes through this one");
	nic_rndv_check_sender(tm.r);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_CANCELED);
	cr_expect_eq(tm.r->state, MDL_QPS_ERR);
	cr_expect_eq(bench.async_cnt, 2, "a fatal error, and the last WQE");
}
