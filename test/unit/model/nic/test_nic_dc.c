/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of DC: a WQE reaches the target that it names, connections are packets, and no error of an
 * initiator harms a target.
 */
#include "model/fabric/mdl_table.h"
#include "model/nic/nic_be.h"
#include "unit/model/nic/nic_bench.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

#include <criterion/criterion.h>
#include <string.h>

enum { TO = 8192 };
static const uint64_t key = 0x1122334455667788;
static struct mdl_cq *cq_i, *cq_t;
static struct mdl_srq *srq;
static struct mdl_qp *dci, *t1, *t2;

static void setup(void)
{
	bench_open();
	cq_i = bench_cq(16, 64);
	cq_t = bench_cq(16, 64);
	srq = bench_srq(16);
	dci = bench_dci(cq_i, 16, 0, -1);
	t1 = bench_dct(cq_t, srq, key);
	t2 = bench_dct(cq_t, srq, key);
	for (int i = 0; i < BENCH_BUF; i++)
		bench.buf[i] = i * 7;
}

TestSuite(nic_dc, .init = setup);

static void receives(uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++)
		bench_srq_recv(srq, i, i + 1, bench.buf + TO + i * 128, 128);
}

static struct bench_wr to(const struct mdl_qp *target, uint8_t opcode, uint32_t len)
{
	return (struct bench_wr){ .opcode = opcode,
				  .flags = 8,
				  .raddr = (uintptr_t)bench.buf + TO,
				  .rkey = bench.key,
				  .addr = bench.buf,
				  .len = len,
				  .dqpn = target->number,
				  .rlid = 1,
				  .dc_key = key };
}

static void post(struct mdl_qp *qp, const struct mdl_qp *target, uint8_t opcode, uint32_t len)
{
	struct bench_wr wr = to(target, opcode, len);

	bench_post(qp, &wr);
}

static void to_state(struct mdl_qp *qp, uint32_t state)
{
	nic_qp_modify(qp, qp->state, state);
	qp->state = state;
	nic_qp_modified(qp);
}

Test(nic_dc, a_send_reaches_the_target_that_its_wqe_names)
{
	struct bench_wr wr = to(t2, NIC_OP_SEND_IMM, 100);
	const uint8_t *cqe;

	receives(1);
	wr.imm = 0x12345678;
	bench_post(dci, &wr);
	cqe = bench_poll(cq_t);
	cr_assert_eq(bench_op(cqe), NIC_CQE_RESP_SEND_IMM);
	cr_expect_eq(nic_be32_get(cqe + 56) & 0xffffff, t2->number);
	cr_expect_eq(nic_be32_get(cqe + 32), t2->uidx, "libmlx5 finds the SRQ by the DCT");
	cr_expect_eq(nic_be32_get(cqe + 24) & 0xffffff, dci->number);
	cr_expect_eq(nic_be16_get(cqe + 22), 1, "the source's LID");
	cr_expect_eq(nic_be32_get(cqe + 44), 100);
	cr_expect_arr_eq(cqe + 36, &wr.imm, 4);
	cr_expect_arr_eq(bench.buf + TO, bench.buf, 100);
	cqe = bench_poll(cq_i);
	cr_assert_eq(bench_op(cqe), NIC_CQE_REQ);
	cr_expect_eq(nic_be32_get(cqe + 56) & 0xffffff, dci->number);
	cr_expect_eq(nic_be32_get(cqe + 32), dci->uidx);
	cr_expect_eq(bench_get(t2, MDL_CNT_ACKS_OUT), 1);
	cr_expect_eq(bench_get(t1, MDL_CNT_PACKETS_IN), 0);
}

Test(nic_dc, write_read_and_atomic_operations_are_those_of_rc)
{
	uint64_t word = 40;
	struct bench_wr add = to(t1, NIC_OP_FETCH_ADD, 8);

	post(dci, t1, NIC_OP_WRITE, 1000);
	cr_expect_eq(bench_op(bench_poll(cq_i)), NIC_CQE_REQ);
	cr_expect_arr_eq(bench.buf + TO, bench.buf, 1000);
	memset(bench.buf, 0, 1000);
	post(dci, t1, NIC_OP_READ, 1000);
	cr_expect_eq(bench_op(bench_poll(cq_i)), NIC_CQE_REQ);
	cr_expect_arr_eq(bench.buf, bench.buf + TO, 1000);
	memcpy(bench.buf + TO, &word, 8);
	add.swap_add = 2;
	bench_post(dci, &add);
	cr_expect_eq(bench_op(bench_poll(cq_i)), NIC_CQE_REQ);
	cr_expect_eq(*(uint64_t *)bench.buf, 40);
	cr_expect_eq(*(uint64_t *)(bench.buf + TO), 42);
	cr_expect_null(bench_poll(cq_t), "nothing of this is seen by the target");
}

Test(nic_dc, a_write_with_immediate_names_its_source)
{
	const uint8_t *cqe;

	receives(1);
	post(dci, t1, NIC_OP_WRITE_IMM, 64);
	cqe = bench_poll(cq_t);
	cr_assert_eq(bench_op(cqe), NIC_CQE_RESP_WRITE_IMM);
	cr_expect_eq(nic_be32_get(cqe + 24) & 0xffffff, dci->number);
	cr_expect_eq(nic_be16_get(cqe + 22), 1);
}

Test(nic_dc, another_target_costs_a_disconnect_and_a_connect)
{
	receives(4);
	post(dci, t1, NIC_OP_SEND, 12);
	post(dci, t1, NIC_OP_SEND, 12);
	cr_expect_eq(bench_get(dci, MDL_CNT_DC_CONNECTS), 1);
	cr_expect_eq(bench_get(dci, MDL_CNT_DC_DISCONNECTS), 0);
	post(dci, t2, NIC_OP_SEND, 12);
	post(dci, t1, NIC_OP_SEND, 12);
	cr_expect_eq(bench_get(dci, MDL_CNT_DC_CONNECTS), 3);
	cr_expect_eq(bench_get(dci, MDL_CNT_DC_DISCONNECTS), 2);
	cr_expect_eq(bench_get(dci, MDL_CNT_PACKETS_OUT), 4 + 3 + 2);
	cr_expect_eq(bench_get(t1, MDL_CNT_PACKETS_IN), 3 + 2 + 1);
	cr_expect_eq(bench_get(t2, MDL_CNT_PACKETS_IN), 1 + 1 + 1);
	/* LRH 8, BTH 12, ICRC 4 a packet; 8 bytes of key in a connect */
	cr_expect_eq(bench_get(dci, MDL_CNT_WIRE_BYTES_OUT), 4 * (24 + 12) + 3 * (24 + 8) + 2 * 24);
}

Test(nic_dc, a_reset_or_an_error_ends_the_connection_without_a_packet)
{
	receives(2);
	post(dci, t1, NIC_OP_SEND, 12);
	to_state(dci, MDL_QPS_RESET);
	cr_expect_eq(bench_get(dci, MDL_CNT_DC_DISCONNECTS), 0);
	dci = bench_dci(cq_i, 16, 0, -1);
	post(dci, t1, NIC_OP_SEND, 12);
	cr_expect_eq(bench_get(dci, MDL_CNT_DC_CONNECTS), 1);
	post(dci, t1, NIC_OP_SEND, 12); /* no receive */
	cr_expect_eq(nic_qp_priv(dci)->conn.open, 1, "it waits");
	to_state(dci, MDL_QPS_ERR);
	to_state(dci, MDL_QPS_RESET);
	cr_expect_eq(nic_qp_priv(dci)->conn.open, 0);
}

Test(nic_dc, a_wrong_key_is_refused_and_counted)
{
	struct mdl_qp *other = bench_dci(cq_i, 16, 0, -1);
	struct bench_wr wr = to(t1, NIC_OP_SEND, 12);
	const uint8_t *cqe;

	receives(1);
	wr.dc_key = key + 1;
	bench_post(dci, &wr);
	cqe = bench_poll(cq_i);
	cr_assert_eq(bench_op(cqe), NIC_CQE_REQ_ERR);
	cr_expect_eq(cqe[55], NIC_SYN_REMOTE_ACCESS);
	cr_expect_eq(dci->state, MDL_QPS_ERR);
	cr_expect_eq(bench_get(t1, MDL_CNT_DC_KEY_VIOLATIONS), 1);
	cr_expect_null(bench_poll(cq_t));
	cr_expect_eq(t1->state, MDL_QPS_RTR);
	post(other, t1, NIC_OP_SEND, 12);
	cr_expect_eq(bench_op(bench_poll(cq_t)), NIC_CQE_RESP_SEND, "the target serves others");
}

Test(nic_dc, a_key_is_checked_for_each_message)
{
	struct bench_wr wr = to(t1, NIC_OP_SEND, 12);

	receives(2);
	post(dci, t1, NIC_OP_SEND, 12);
	cr_expect_eq(bench_op(bench_poll(cq_i)), NIC_CQE_REQ);
	wr.dc_key = 0;
	bench_post(dci, &wr);
	cr_expect_eq(bench_poll(cq_i)[55], NIC_SYN_REMOTE_ACCESS);
	cr_expect_eq(bench_get(t1, MDL_CNT_DC_KEY_VIOLATIONS), 1);
}

Test(nic_dc, no_error_of_an_initiator_changes_the_target)
{
	struct bench_wr wr = to(t1, NIC_OP_WRITE, 64);
	const uint8_t *cqe;

	receives(2);
	post(dci, t1, NIC_OP_SEND, 129); /* longer than the receive */
	cr_expect_eq(bench_poll(cq_i)[55], NIC_SYN_REMOTE_INVALID);
	cqe = bench_poll(cq_t);
	cr_assert_eq(bench_op(cqe), NIC_CQE_RESP_ERR);
	cr_expect_eq(cqe[55], NIC_SYN_LOCAL_LENGTH);
	dci = bench_dci(cq_i, 16, 0, -1);
	wr.rkey++;
	bench_post(dci, &wr);
	cr_expect_eq(bench_poll(cq_i)[55], NIC_SYN_REMOTE_ACCESS);
	dci = bench_dci(cq_i, 16, 0, -1);
	t1->access = MDL_ACCESS_REMOTE_READ;
	post(dci, t1, NIC_OP_WRITE, 64);
	cr_expect_eq(bench_poll(cq_i)[55], NIC_SYN_REMOTE_ACCESS, "the target permits no WRITE");
	cr_expect_eq(t1->state, MDL_QPS_RTR);
	cr_expect_eq(bench.async_cnt, 0);
	dci = bench_dci(cq_i, 16, 0, -1);
	post(dci, t1, NIC_OP_SEND, 128);
	cr_expect_eq(bench_op(bench_poll(cq_t)), NIC_CQE_RESP_SEND);
}

/* Runs until the retries of the initiator have ended. Returns the syndrome. */
static uint8_t given_up(struct mdl_qp *qp)
{
	const uint8_t *cqe = bench_poll(cq_i);

	cr_assert_null(cqe, "it is retried");
	while (mdl_now_ns() < nic_qp_priv(qp)->attempts.deadline_ns)
		;
	nic_service(mdl_now_ns() + 2000000);
	cqe = bench_poll(cq_i);
	cr_assert_eq(bench_op(cqe), NIC_CQE_REQ_ERR);
	return cqe[55];
}

Test(nic_dc, a_target_that_is_not_there_does_not_reply)
{
	struct mdl_qp *rc = bench_qp(MDL_QPT_RC, cq_t, NULL, 4);
	struct bench_wr wr = to(t1, NIC_OP_SEND, 8);

	receives(1);
	rc->dest_qpn = dci->number;
	post(dci, rc, NIC_OP_SEND, 8);
	cr_expect_eq(given_up(dci), NIC_SYN_RETRY_EXCEEDED, "an RC queue pair is no target");
	dci = bench_dci(cq_i, 16, 0, -1);
	wr.rlid = 9;
	bench_post(dci, &wr);
	cr_expect_eq(given_up(dci), NIC_SYN_RETRY_EXCEEDED, "no such address");
	dci = bench_dci(cq_i, 16, 0, -1);
	t1->state = MDL_QPS_INIT;
	post(dci, t1, NIC_OP_SEND, 8);
	cr_expect_eq(given_up(dci), NIC_SYN_RETRY_EXCEEDED, "it is not ready yet");
	cr_expect_eq(bench_get(dci, MDL_CNT_DC_CONNECTS), 0);
	rc->dest_qpn = t1->number;
	t1->state = MDL_QPS_RTR;
	bench_post(rc, &(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 8 });
	cr_expect_null(bench_poll(cq_t), "an RC queue pair reaches no target");
}

Test(nic_dc, a_destroyed_target_is_drained_and_its_initiators_reach_others)
{
	struct mdl_qp *other = bench_dci(cq_i, 16, 0, -1);

	receives(3);
	post(dci, t1, NIC_OP_SEND, 8);
	post(other, t1, NIC_OP_SEND, 8);
	nic_qp_destroy(t1);
	mdl_table_hide(t1);
	cr_expect_eq(bench_op(bench_poll(cq_t)), NIC_CQE_RESP_SEND, "what had arrived is complete");
	cr_expect_eq(bench_op(bench_poll(cq_t)), NIC_CQE_RESP_SEND);
	while (bench_poll(cq_i))
		;
	post(other, t2, NIC_OP_SEND, 8);
	cr_expect_eq(bench_op(bench_poll(cq_t)), NIC_CQE_RESP_SEND);
	cr_expect_eq(bench_get(other, MDL_CNT_DC_DISCONNECTS), 1, "sent, and received by nobody");
	cr_expect_eq(bench_op(bench_poll(cq_i)), NIC_CQE_REQ);
	post(dci, t2, NIC_OP_WRITE, 8);
	cr_expect_eq(bench_op(bench_poll(cq_i)), NIC_CQE_REQ);
}

Test(nic_dc, a_target_without_receives_holds_up_what_is_behind)
{
	post(dci, t1, NIC_OP_SEND, 64);
	post(dci, t2, NIC_OP_WRITE, 64);
	cr_expect_null(bench_poll(cq_i), "without streams the queue is strictly in order");
	cr_expect_eq(bench_get(t1, MDL_CNT_RNR_NAKS), 1);
	receives(1);
	nic_service(mdl_now_ns() + 20000);
	cr_expect_eq(bench_op(bench_poll(cq_t)), NIC_CQE_RESP_SEND);
	cr_expect_eq(nic_be16_get(bench_poll(cq_i) + 60), 0);
	cr_expect_eq(nic_be16_get(bench_poll(cq_i) + 60), 2);
	cr_expect_eq(bench_get(dci, MDL_CNT_DC_CONNECTS), 2, "a retry connects no more");
}

Test(nic_dc, an_error_flushes_the_queue_of_a_dci_without_streams)
{
	struct bench_wr wr = to(t1, NIC_OP_WRITE, 64);

	wr.stream = 5; /* means nothing */
	wr.lkey = 1;
	bench_put(dci, &wr);
	wr.stream = 6;
	wr.lkey = 0;
	bench_put(dci, &wr);
	bench_record(dci);
	bench_ring(dci);
	cr_expect_eq(bench_poll(cq_i)[55], NIC_SYN_LOCAL_PROT);
	cr_expect_eq(bench_poll(cq_i)[55], NIC_SYN_FLUSH);
	cr_expect_eq(dci->state, MDL_QPS_ERR);
}

Test(nic_dc, a_short_message_is_scattered_to_the_cqe_if_the_target_asks)
{
	const uint8_t *cqe;

	t1->flags = 1 << 1; /* MLX5_QP_FLAG_SCATTER_CQE */
	receives(1);
	post(dci, t1, NIC_OP_SEND, 32);
	cqe = bench_poll(cq_t);
	cr_assert_eq(bench_op(cqe), NIC_CQE_RESP_SEND);
	cr_expect_eq(cqe[63] >> 2 & 3, NIC_CQE_SCATTER_32);
	cr_expect_arr_eq(cqe, bench.buf, 32);
}

Test(nic_dc, many_initiators_share_a_target)
{
	struct mdl_qp *from[8];

	receives(16);
	for (int i = 0; i < 8; i++)
		from[i] = bench_dci(cq_i, 8, 0, -1);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 8; i++) {
			const uint8_t *cqe;

			post(from[i], t1, NIC_OP_SEND, 40u + (uint32_t)i);
			cqe = bench_poll(cq_t);
			cr_assert_eq(bench_op(cqe), NIC_CQE_RESP_SEND);
			cr_expect_eq(nic_be32_get(cqe + 24) & 0xffffff, from[i]->number);
			cr_expect_eq(nic_be32_get(cqe + 44), 40u + (uint32_t)i);
			cr_assert_eq(bench_op(bench_poll(cq_i)), NIC_CQE_REQ);
		}
	cr_expect_eq(bench_get(t1, MDL_CNT_PACKETS_IN), 16 + 8);
}
