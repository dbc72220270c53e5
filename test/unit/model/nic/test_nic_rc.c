/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of connected queue pairs: they do what the manual specifies, and refuse what it forbids. */
#include "model/nic/nic_be.h"
#include "unit/model/nic/nic_bench.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

#include <criterion/criterion.h>
#include <string.h>

static struct mdl_cq *cq_a, *cq_b;
static struct mdl_qp *a, *b;

static void setup(void)
{
	bench_open();
	cq_a = bench_cq(16, 64);
	cq_b = bench_cq(16, 64);
	a = bench_qp(MDL_QPT_RC, cq_a, NULL, 4);
	b = bench_qp(MDL_QPT_RC, cq_b, NULL, 4);
	bench_connect(a, b);
	for (int i = 0; i < BENCH_BUF; i++)
		bench.buf[i] = i * 7;
}

TestSuite(nic_rc, .init = setup);

static uint64_t remote(uint32_t off)
{
	return (uintptr_t)bench.buf + off;
}

static uint8_t syndrome(const uint8_t *cqe)
{
	return cqe[55];
}

Test(nic_rc, a_send_fills_the_receive_and_completes_both_ends)
{
	const uint8_t *cqe;

	bench_recv(b, bench.buf + 8192, 128, bench.key);
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND_IMM,
					  .flags = 8,
					  .imm = 0x12345678,
					  .addr = bench.buf,
					  .len = 100 });
	cqe = bench_poll(cq_b);
	cr_assert_eq(bench_op(cqe), NIC_CQE_RESP_SEND_IMM);
	cr_expect_eq(nic_be32_get(cqe + 44), 100);
	cr_expect_eq(nic_be32_get(cqe + 32), b->uidx);
	cr_expect_eq(nic_be32_get(cqe + 56) & 0xffffff, b->number);
	cr_expect_arr_eq(cqe + 36, &(uint32_t){ 0x12345678 }, 4);
	cr_expect_arr_eq(bench.buf + 8192, bench.buf, 100);
	cqe = bench_poll(cq_a);
	cr_assert_eq(bench_op(cqe), NIC_CQE_REQ);
	cr_expect_eq(nic_be32_get(cqe + 56), NIC_OP_SEND_IMM << 24 | a->number);
	cr_expect_eq(nic_be16_get(cqe + 60), 0);
	cr_expect_null(bench_poll(cq_a));
}

Test(nic_rc, three_laps_of_every_ring_with_wqes_that_wrap)
{
	uint8_t text[100];

	for (int round = 0; round < 48; round++) {
		memset(text, round + 1, sizeof(text));
		bench_recv(b, bench.buf + 8192, 128, bench.key);
		/* 16 + 112 bytes are two blocks, three with the remote address: 3 of 4 a post */
		bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_WRITE_IMM,
						  .flags = 8,
						  .imm = round,
						  .raddr = remote(4096),
						  .rkey = bench.key,
						  .addr = text,
						  .len = 100,
						  .inl = true });
		cr_assert_eq(bench_op(bench_poll(cq_b)), NIC_CQE_RESP_WRITE_IMM, "%d", round);
		cr_assert_eq(bench_op(bench_poll(cq_a)), NIC_CQE_REQ, "%d", round);
		cr_assert_arr_eq(bench.buf + 4096, text, 100);
	}
	cr_expect_eq(bench_get(a, MDL_CNT_WQE_BLOCKS), 144);
	cr_expect_eq(bench_get(a, MDL_CNT_INLINE_BYTES), 4800);
	cr_expect_eq(bench_get(a, MDL_CNT_PAYLOAD_READS), 0);
}

Test(nic_rc, what_a_write_costs_is_what_one_counts_by_hand)
{
	for (int i = 0; i < 3; i++)
		bench_put(a, &(struct bench_wr){ .opcode = NIC_OP_WRITE,
						 .flags = i == 2 ? 8 : 0,
						 .raddr = remote(4096),
						 .rkey = bench.key,
						 .addr = bench.buf,
						 .len = 2000 });
	bench_record(a);
	bench_ring(a);
	cr_expect_eq(bench_get(a, MDL_CNT_DOORBELLS), 1);
	cr_expect_eq(bench_get(a, MDL_CNT_WQES), 3);
	cr_expect_eq(bench_get(a, MDL_CNT_WQE_FETCHES), 3);
	cr_expect_eq(bench_get(a, MDL_CNT_PAYLOAD_READS), 3);
	cr_expect_eq(bench_get(b, MDL_CNT_PAYLOAD_WRITES), 3);
	cr_expect_eq(bench_get(a, MDL_CNT_CQES_REQ), 1);
	/* MTU 1024: 2 packets each; LRH 8, BTH 12, ICRC 4 a packet, RETH 16 in the first */
	cr_expect_eq(bench_get(a, MDL_CNT_PACKETS_OUT), 6);
	cr_expect_eq(bench_get(b, MDL_CNT_WIRE_BYTES_IN), 3 * (2 * 24 + 16 + 2000));
	cr_expect_eq(bench_get(b, MDL_CNT_ACKS_OUT), 3);
	cr_expect_eq(bench_get(b, MDL_CNT_RECV_WQES), 0);
}

Test(nic_rc, a_read_fetches_and_its_cqe_has_the_length)
{
	const uint8_t *cqe;

	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_READ,
					  .flags = 8,
					  .raddr = remote(100),
					  .rkey = bench.key,
					  .addr = bench.buf + 8192,
					  .len = 3000 });
	cqe = bench_poll(cq_a);
	cr_assert_eq(bench_op(cqe), NIC_CQE_REQ);
	cr_expect_eq(nic_be32_get(cqe + 44), 3000);
	cr_expect_arr_eq(bench.buf + 8192, bench.buf + 100, 3000);
	cr_expect_eq(bench_get(a, MDL_CNT_PACKETS_OUT), 1);
	cr_expect_eq(bench_get(a, MDL_CNT_PACKETS_IN), 3);
}

Test(nic_rc, atomics_return_what_was_there)
{
	uint64_t *word = (uint64_t *)(bench.buf + 4096), *old = (uint64_t *)(bench.buf + 8192);
	struct bench_wr wr = { .opcode = NIC_OP_FETCH_ADD,
			       .flags = 8,
			       .raddr = remote(4096),
			       .rkey = bench.key,
			       .swap_add = 5,
			       .addr = old,
			       .len = 8 };

	*word = 100;
	bench_post(a, &wr);
	cr_expect_eq(*word, 105);
	cr_expect_eq(*old, 100);
	wr.opcode = NIC_OP_CAS;
	wr.compare = 105;
	wr.swap_add = 7;
	bench_post(a, &wr);
	cr_expect_eq(*word, 7);
	cr_expect_eq(*old, 105);
	bench_post(a, &wr);
	cr_expect_eq(*word, 7, "it was not 105");
	cr_expect_eq(*old, 7);
}

Test(nic_rc, a_small_receive_lands_in_the_cqe_if_the_qp_requires_it)
{
	const uint8_t *cqe;

	b->flags = 2;
	memset(bench.buf + 8192, 0x55, 64);
	bench_recv(b, bench.buf + 8192, 128, bench.key);
	bench_recv(b, bench.buf + 8192, 128, bench.key);
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 32 });
	cqe = bench_poll(cq_b);
	cr_assert_eq(cqe[63], NIC_CQE_RESP_SEND << 4 | 1 << 2);
	cr_expect_arr_eq(cqe, bench.buf, 32);
	cr_expect_eq(bench.buf[8192], 0x55);
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 33 });
	cqe = bench_poll(cq_b);
	cr_assert_eq(cqe[63], NIC_CQE_RESP_SEND << 4);
	cr_expect_arr_eq(bench.buf + 8192, bench.buf, 33);
}

Test(nic_rc, a_responder_without_receives_makes_the_requester_wait)
{
	bench_post(a, &(struct bench_wr){
			      .opcode = NIC_OP_SEND, .flags = 8, .addr = bench.buf, .len = 64 });
	cr_expect_null(bench_poll(cq_a));
	cr_expect_eq(bench_get(b, MDL_CNT_RNR_NAKS), 1);
	cr_expect_neq(a->nic_stalled, 0);
	bench_recv(b, bench.buf + 8192, 128, bench.key);
	nic_service(mdl_now_ns() + 20000);
	cr_expect_eq(bench_op(bench_poll(cq_b)), NIC_CQE_RESP_SEND);
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_REQ);
	cr_expect_eq(bench_get(a, MDL_CNT_WQES), 1);
}

Test(nic_rc, rnr_retries_are_counted_down)
{
	const uint8_t *cqe;

	a->rnr_retry = 2;
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 64 });
	nic_service(mdl_now_ns() + 20000);
	cr_expect_null(bench_poll(cq_a));
	nic_service(mdl_now_ns() + 20000);
	cqe = bench_poll(cq_a);
	cr_assert_eq(bench_op(cqe), NIC_CQE_REQ_ERR, "also without asking for a completion");
	cr_expect_eq(syndrome(cqe), NIC_SYN_RNR_EXCEEDED);
	cr_expect_eq(a->state, MDL_QPS_ERR);
}

static void expect_refused(const struct bench_wr *wr, uint8_t want)
{
	const uint8_t *cqe;

	bench_post(a, wr);
	cqe = bench_poll(cq_a);
	cr_assert_eq(bench_op(cqe), NIC_CQE_REQ_ERR);
	cr_expect_eq(syndrome(cqe), want, "%s", nic_syndrome_name(syndrome(cqe)));
	cr_expect_eq(a->state, MDL_QPS_ERR);
}

static struct bench_wr write_to(uint64_t raddr, uint32_t rkey)
{
	return (struct bench_wr){ .opcode = NIC_OP_WRITE,
				  .flags = 8,
				  .raddr = raddr,
				  .rkey = rkey,
				  .addr = bench.buf,
				  .len = 64 };
}

Test(nic_rc, a_write_beyond_the_region_is_refused_and_breaks_both)
{
	struct bench_wr wr = write_to(remote(BENCH_BUF - 63), bench.key);

	bench_recv(b, bench.buf, 64, bench.key);
	expect_refused(&wr, NIC_SYN_REMOTE_ACCESS);
	cr_expect_eq(b->state, MDL_QPS_ERR);
	cr_expect_eq(bench.async_last, 3);
	cr_expect_eq(syndrome(bench_poll(cq_b)), NIC_SYN_FLUSH, "its receive is flushed");
}

Test(nic_rc, a_write_before_the_region_is_refused)
{
	struct bench_wr wr = write_to(remote(0) - 1, bench.key);

	expect_refused(&wr, NIC_SYN_REMOTE_ACCESS);
}

Test(nic_rc, a_wrong_rkey_is_refused)
{
	struct bench_wr wr = write_to(remote(0), bench.key + 1);

	expect_refused(&wr, NIC_SYN_REMOTE_ACCESS);
}

Test(nic_rc, a_region_without_the_right_is_refused)
{
	struct bench_wr wr = write_to(remote(0), bench_mr(bench.buf, 4096, MDL_ACCESS_REMOTE_READ));

	expect_refused(&wr, NIC_SYN_REMOTE_ACCESS);
}

Test(nic_rc, a_queue_pair_without_the_right_is_refused)
{
	struct bench_wr wr = write_to(remote(0), bench.key);

	b->access = MDL_ACCESS_REMOTE_READ;
	expect_refused(&wr, NIC_SYN_REMOTE_ACCESS);
}

Test(nic_rc, a_region_of_another_protection_domain_is_refused)
{
	struct bench_wr wr = write_to(remote(0), bench.key);

	b->pd++;
	expect_refused(&wr, NIC_SYN_REMOTE_ACCESS);
}

Test(nic_rc, a_wrong_lkey_breaks_only_the_sender)
{
	struct bench_wr wr = write_to(remote(0), bench.key);

	wr.lkey = bench.key + 1;
	expect_refused(&wr, NIC_SYN_LOCAL_PROT);
	cr_expect_eq(b->state, MDL_QPS_RTS);
}

Test(nic_rc, a_message_longer_than_the_receive_breaks_both)
{
	bench_recv(b, bench.buf + 8192, 63, bench.key);
	expect_refused(&(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 64 },
		       NIC_SYN_REMOTE_INVALID);
	cr_expect_eq(syndrome(bench_poll(cq_b)), NIC_SYN_LOCAL_LENGTH);
}

Test(nic_rc, a_receive_that_may_not_be_written_breaks_both)
{
	bench_recv(b, bench.buf + 8192, 64, bench_mr(bench.buf, BENCH_BUF, 0));
	expect_refused(&(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 64 },
		       NIC_SYN_REMOTE_OP);
	cr_expect_eq(syndrome(bench_poll(cq_b)), NIC_SYN_LOCAL_PROT);
}

Test(nic_rc, an_unaligned_atomic_is_refused)
{
	expect_refused(&(struct bench_wr){ .opcode = NIC_OP_FETCH_ADD,
					   .raddr = remote(4),
					   .rkey = bench.key,
					   .addr = bench.buf,
					   .len = 8 },
		       NIC_SYN_REMOTE_INVALID);
}

Test(nic_rc, no_responder_is_retry_exceeded_after_the_timeouts)
{
	const uint8_t *cqe;

	a->sq_psn = 1; /* the peer expects 0 and does not reply */
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .addr = bench.buf, .len = 64 });
	cr_expect_null(bench_poll(cq_a));
	while (mdl_now_ns() < nic_qp_priv(a)->attempts.deadline_ns)
		;
	nic_service(mdl_now_ns() + 2000000);
	cqe = bench_poll(cq_a);
	cr_assert_eq(bench_op(cqe), NIC_CQE_REQ_ERR);
	cr_expect_eq(syndrome(cqe), NIC_SYN_RETRY_EXCEEDED);
	cr_expect_eq(b->state, MDL_QPS_RTS);
}

Test(nic_rc, an_unreliable_connection_drops_and_goes_on)
{
	a->type = b->type = MDL_QPT_UC;
	bench_post(a, &(struct bench_wr){
			      .opcode = NIC_OP_SEND, .flags = 8, .addr = bench.buf, .len = 64 });
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_REQ);
	cr_expect_eq(bench_get(b, MDL_CNT_DROPPED), 1);
	cr_expect_eq(a->state, MDL_QPS_RTS);
}

Test(nic_rc, a_zero_length_write_with_immediate_needs_no_key)
{
	bench_recv(b, bench.buf, 0, bench.key);
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_WRITE_IMM, .flags = 8 });
	cr_expect_eq(bench_op(bench_poll(cq_b)), NIC_CQE_RESP_WRITE_IMM);
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_REQ);
}
