/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of messages to an XRQ: where headers and payload go, and which completions tell of them. */
#include "unit/model/nic/tm_bench.h"
#include "model/nic/nic_be.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_tm.h"
#include "model/nic/nic_tm_recv.h"
#include "model/nic/nic_wqe.h"

TestSuite(nic_tm_recv, .init = tm_setup);

static const uint8_t *tag_buffer(uint32_t entry)
{
	return bench.buf + TM_TAG_AT + entry * TM_TAG_BYTES;
}

Test(nic_tm_recv, a_match_of_one_packet_is_one_completion_with_the_header)
{
	uint32_t entry = tm_append(0x1122, tm_all, 0);
	const uint8_t *cqe;

	tm_send_op(NIC_OP_SEND_IMM, NIC_TMH_EAGER, 0x1122, 116);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_RESP_SEND_IMM, NIC_APP_CONSUMED_MSG);
	cr_expect_arr_eq(cqe, bench.buf, 16, "the header");
	cr_expect_eq(nic_be16_get(cqe + 42), entry);
	cr_expect_eq(nic_be32_get(cqe + 44), 100, "the payload alone");
	cr_expect_eq(*(const uint32_t *)(cqe + 36), 0x12345678);
	cr_expect_arr_eq(tag_buffer(entry), bench.buf + 16, 100);
	cr_expect_eq(bench_get(tm.r, MDL_CNT_RECV_WQES), 0);
	cr_expect_eq(bench_op(bench_poll(tm.cq_s)), NIC_CQE_REQ);
}

Test(nic_tm_recv, a_match_of_several_packets_is_two_completions)
{
	uint32_t entry = tm_append_next(1, tm_all, 2048, 0, 1);
	const uint8_t *cqe;

	tm_expect(tm_poll(), NIC_CQE_NO_PACKET, NIC_APP_APPEND);
	tm_send(NIC_TMH_EAGER, 1, 1025);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_NO_PACKET, NIC_APP_CONSUMED);
	cr_expect_arr_eq(cqe, bench.buf, 16);
	cr_expect_eq(nic_be16_get(cqe + 42), entry);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_RESP_SEND, NIC_APP_EXPECTED);
	cr_expect_eq(nic_be32_get(cqe + 44), 1009);
	cr_expect_eq(*(const uint64_t *)(cqe + 8), 0, "no header");
	cr_expect_arr_eq(tag_buffer(entry), bench.buf + 16, 1009);
	cr_expect_eq(bench_get(tm.r, MDL_CNT_PACKETS_IN), 2);
}

Test(nic_tm_recv, an_empty_message_matches_an_empty_buffer)
{
	uint32_t entry = tm_append_next(1, tm_all, 0, 0, 1);
	const uint8_t *cqe;

	tm_expect(tm_poll(), NIC_CQE_NO_PACKET, NIC_APP_APPEND);
	tm_send(NIC_TMH_EAGER, 1, 16);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_RESP_SEND, NIC_APP_CONSUMED_MSG);
	cr_expect_eq(nic_be16_get(cqe + 42), entry);
	cr_expect_eq(nic_be32_get(cqe + 44), 0);
}

Test(nic_tm_recv, an_unexpected_message_takes_a_wqe_with_its_header)
{
	const uint8_t *cqe;

	tm_send(NIC_TMH_EAGER, 1, 100);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_RESP_SEND, NIC_APP_UNEXPECTED);
	cr_expect_eq(nic_be16_get(cqe + 60), 0, "the WQE");
	cr_expect_eq(nic_be32_get(cqe + 44), 100);
	cr_expect_eq(*(const uint64_t *)(cqe + 8), 0, "software reads the tag from the buffer");
	cr_expect_arr_eq(bench.buf + TM_SRQ_AT, bench.buf, 100);
	tm_request(1, 1000);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_RESP_SEND, NIC_APP_UNEXPECTED);
	cr_expect_eq(nic_be16_get(cqe + 60), 1);
	cr_expect_eq(nic_be32_get(cqe + 44), 32);
	cr_expect_eq(bench_get(tm.r, MDL_CNT_TM_UNEXPECTED), 2);
}

Test(nic_tm_recv, messages_without_a_tag_match_nothing_and_do_not_count)
{
	tm_append(0, 0, 0);
	tm_send(NIC_TMH_NO_TAG, 0, 1);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_NO_TAG);
	tm_send(NIC_TMH_FIN, 0, 32);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_NO_TAG);
	tm_send(NIC_TMH_NO_TAG, 0, 0);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_NO_TAG);
	cr_expect_eq(bench_get(tm.r, MDL_CNT_TM_UNEXPECTED), 0);
	tm_send(NIC_TMH_EAGER, 5, 20);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_CONSUMED_MSG);
}

Test(nic_tm_recv, matched_data_go_into_a_cqe_of_128_bytes_only)
{
	const uint8_t *cqe;

	tm_setup_size(128);
	tm.r->flags = 2; /* scatter to CQE */
	tm_append(1, tm_all, 0);
	tm_append(2, tm_all, 0);
	tm_send(NIC_TMH_EAGER, 1, 16 + 64);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_RESP_SEND, NIC_APP_CONSUMED_MSG);
	cr_expect_eq(cqe[63] >> 2 & 3, NIC_CQE_SCATTER_64);
	cr_expect_arr_eq(cqe - 64, bench.buf + 16, 64);
	cr_expect_arr_eq(cqe, bench.buf, 16);
	tm_send(NIC_TMH_EAGER, 2, 16 + 65);
	cqe = tm_poll();
	cr_expect_eq(cqe[63] >> 2 & 3, 0);
	cr_expect_arr_eq(tag_buffer(1), bench.buf + 16, 65);
	tm_setup();
	tm.r->flags = 2;
	tm_append(1, tm_all, 0);
	tm_send(NIC_TMH_EAGER, 1, 16 + 8);
	cqe = tm_poll();
	cr_expect_eq(cqe[63] >> 2 & 3, 0);
	cr_expect_arr_eq(tag_buffer(0), bench.buf + 16, 8);
	tm_send(NIC_TMH_EAGER, 1, 24);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_RESP_SEND, NIC_APP_UNEXPECTED);
	cr_expect_eq(cqe[63] >> 2 & 3, NIC_CQE_SCATTER_32);
	cr_expect_arr_eq(cqe, bench.buf, 24);
}

static void expect_broken(uint8_t syndrome)
{
	const uint8_t *cqe = bench_poll(tm.cq_s);

	cr_assert_eq(bench_op(cqe), NIC_CQE_REQ_ERR);
	cr_expect_eq(cqe[55], syndrome);
	cr_expect_eq(tm.r->state, MDL_QPS_ERR);
	cr_expect_eq(tm.s->state, MDL_QPS_ERR);
}

Test(nic_tm_recv, a_message_too_long_for_its_entry_cancels_that_and_ends_the_connection)
{
	uint32_t entry = tm_append(1, tm_all, 0);
	const uint8_t *cqe;

	tm_send(NIC_TMH_EAGER, 1, 16 + TM_TAG_BYTES + 1);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_RESP_SEND, NIC_APP_CANCELED);
	cr_expect_eq(nic_be16_get(cqe + 42), entry);
	expect_broken(NIC_SYN_REMOTE_INVALID);
	cr_expect_eq(tm_append(2, tm_all, 0), entry + 1, "other connections go on");
}

Test(nic_tm_recv, a_buffer_that_may_not_be_written_cancels_its_entry)
{
	tm_append_next(1, tm_all, 64, 0, 1);
	nic_tm_tag(tm.xrq, 0)->lkey = bench_mr(bench.buf, BENCH_BUF, 4);
	tm_expect(tm_poll(), NIC_CQE_NO_PACKET, NIC_APP_APPEND);
	tm_send(NIC_TMH_EAGER, 1, 32);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_CANCELED);
	expect_broken(NIC_SYN_REMOTE_INVALID);
}

static void expect_refused(uint8_t op, uint32_t len)
{
	tm_setup();
	tm_send(op, 1, len);
	cr_expect_null(tm_poll(), "opcode %u, %u bytes", op, len);
	expect_broken(NIC_SYN_REMOTE_INVALID);
}

Test(nic_tm_recv, headers_that_are_none_end_the_connection)
{
	expect_refused(NIC_TMH_EAGER, 15);
	expect_refused(NIC_TMH_RNDV, 31);
	expect_refused(NIC_TMH_RNDV, 65);
	expect_refused(NIC_TMH_EAGER + 1, 64);
}

Test(nic_tm_recv, nothing_is_delivered_before_33_wqes_were_posted)
{
	bench_open();
	tm_setup();
	nic_be32_put(mdl_at(tm.xrq->dbrec), 32);
	tm_append(1, tm_all, 0);
	tm_send(NIC_TMH_EAGER, 1, 20);
	cr_expect_null(tm_poll());
	cr_expect_eq(bench_get(tm.r, MDL_CNT_RNR_NAKS), 1);
	nic_be32_put(mdl_at(tm.xrq->dbrec), 33);
	nic_service(mdl_now_ns() + 20000);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_CONSUMED_MSG);
}

Test(nic_tm_recv, an_unexpected_message_waits_for_a_wqe_and_counts_once)
{
	for (uint32_t i = 0; i < TM_POSTED; i++) {
		tm_send(NIC_TMH_EAGER, 1, 20);
		tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_UNEXPECTED);
		cr_assert_eq(bench_op(bench_poll(tm.cq_s)), NIC_CQE_REQ);
	}
	tm_send(NIC_TMH_EAGER, 1, 20);
	cr_expect_null(tm_poll());
	tm_receives(TM_POSTED, 1);
	nic_service(mdl_now_ns() + 20000);
	tm_expect(tm_poll(), NIC_CQE_RESP_SEND, NIC_APP_UNEXPECTED);
	cr_expect_eq(bench_get(tm.r, MDL_CNT_TM_UNEXPECTED), TM_POSTED + 1);
	cr_expect_eq(nic_srq_priv(tm.xrq)->tm_phase & 0xffff, TM_POSTED + 1);
}
