/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of DCI streams: order within a stream, independence between streams, errors of one, and
 * completions in the order of the queue.
 */
#include "model/nic/nic_be.h"
#include "unit/model/nic/nic_bench.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_fault.h"
#include "model/nic/nic_stream.h"
#include "model/nic/nic_wqe.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

enum { TARGETS = 3, SLOTS = 256, STRIDE = 32, FROM = 0, TO = 4096 };
static const uint64_t key = 0xabcdef;
static struct mdl_cq *cq_i, *cq_t[TARGETS];
static struct mdl_srq *srq[TARGETS];
static struct mdl_qp *target[TARGETS], *dci;
static uint32_t posted[TARGETS]; /* receives */

static void setup(void)
{
	bench_open();
	cq_i = bench_cq(256, 64);
	for (uint32_t i = 0; i < TARGETS; i++) {
		cq_t[i] = bench_cq(256, 64);
		srq[i] = bench_srq(SLOTS);
		target[i] = bench_dct(cq_t[i], srq[i], key);
	}
	for (int i = 0; i < TO; i++)
		bench.buf[i] = i * 7;
}

TestSuite(nic_stream, .init = setup);

static void receives(uint32_t t, uint32_t cnt)
{
	for (; cnt; cnt--, posted[t]++) {
		uint32_t at = posted[t] % SLOTS;

		bench_srq_recv(srq[t], at, (at + 1) % SLOTS,
			       bench.buf + TO + (t * 64 + at % 64) * STRIDE, STRIDE);
	}
}

static struct bench_wr wr_to(uint16_t stream, uint32_t t, uint32_t imm)
{
	return (struct bench_wr){ .opcode = NIC_OP_SEND_IMM,
				  .flags = 8,
				  .imm = imm,
				  .addr = bench.buf + imm % 64,
				  .len = 16,
				  .dqpn = target[t]->number,
				  .rlid = 1,
				  .dc_key = key,
				  .stream = stream };
}

static void put(uint16_t stream, uint32_t t, uint32_t imm)
{
	struct bench_wr wr = wr_to(stream, t, imm);

	bench_put(dci, &wr);
}

/* Writes a WQE whose memory is not registered. */
static void put_bad(uint16_t stream, uint32_t t)
{
	struct bench_wr wr = wr_to(stream, t, 0);

	wr.lkey = 1;
	bench_put(dci, &wr);
}

static void ring(void)
{
	bench_record(dci);
	bench_ring(dci);
}

/* Lets the time of a retry pass. */
static void serve(void)
{
	uint64_t until = mdl_now_ns() + 20000;

	while (mdl_now_ns() < until)
		;
	nic_service(mdl_now_ns());
}

static uint32_t arrived(uint32_t t)
{
	const uint8_t *cqe = bench_poll(cq_t[t]);
	uint32_t imm = ~0u;

	if (cqe)
		memcpy(&imm, cqe + 36, sizeof(imm));
	return imm;
}

/* Checks the next completion of the initiator: its place in the queue and its syndrome. */
static void expect_done(uint32_t wqe, uint8_t syndrome)
{
	const uint8_t *cqe = bench_poll(cq_i);

	cr_assert_not_null(cqe, "WQE %u", wqe);
	cr_expect_eq(nic_be16_get(cqe + 60), (uint16_t)(wqe * 2), "WQE %u, found %u", wqe,
		     nic_be16_get(cqe + 60) / 2);
	cr_expect_eq(bench_op(cqe), syndrome ? NIC_CQE_REQ_ERR : NIC_CQE_REQ, "WQE %u", wqe);
	if (syndrome)
		cr_expect_eq(cqe[55], syndrome, "WQE %u", wqe);
}

Test(nic_stream, other_streams_go_on_while_one_waits)
{
	dci = bench_dci(cq_i, 32, 2, 1);
	receives(1, 3);
	put(7, 0, 1);
	put(9, 1, 2);
	put(7, 1, 3); /* behind the first, although its own target is ready */
	put(9, 1, 4);
	ring();
	cr_expect_eq(arrived(1), 2);
	cr_expect_eq(arrived(1), 4);
	cr_expect_eq(arrived(1), ~0u, "a stream keeps its order");
	cr_expect_null(bench_poll(cq_i), "completions wait for those before them");
	receives(0, 1);
	serve();
	cr_expect_eq(arrived(0), 1);
	cr_expect_eq(arrived(1), 3);
	for (uint32_t i = 0; i < 4; i++)
		expect_done(i, 0);
	cr_expect_null(bench_poll(cq_i));
	cr_expect_eq(bench_get(dci, MDL_CNT_WQES), 4);
}

Test(nic_stream, each_channel_keeps_its_connection)
{
	dci = bench_dci(cq_i, 32, 1, 1);
	receives(0, 4);
	receives(1, 4);
	for (uint32_t i = 0; i < 8; i++)
		put(i & 1, i & 1, i);
	ring();
	cr_expect_eq(bench_get(dci, MDL_CNT_DC_CONNECTS), 2);
	cr_expect_eq(bench_get(dci, MDL_CNT_DC_DISCONNECTS), 0);
	receives(2, 1);
	put(5, 2, 8); /* takes over the channel of stream 0, the one idle for longest */
	ring();
	cr_expect_eq(bench_get(dci, MDL_CNT_DC_CONNECTS), 3);
	cr_expect_eq(bench_get(dci, MDL_CNT_DC_DISCONNECTS), 1);
	cr_expect_eq(bench_get(target[0], MDL_CNT_PACKETS_IN), 1 + 4 + 1);
	cr_expect_eq(bench_get(target[1], MDL_CNT_PACKETS_IN), 1 + 4);
}

Test(nic_stream, more_streams_than_channels_wait_for_one)
{
	dci = bench_dci(cq_i, 32, 1, 1);
	receives(2, 2);
	put(1, 0, 1);
	put(2, 1, 2);
	put(3, 2, 3);
	ring();
	cr_expect_eq(arrived(2), ~0u, "both channels wait");
	receives(1, 1);
	serve();
	cr_expect_eq(arrived(1), 2);
	cr_expect_eq(arrived(2), 3, "the channel of stream 2 is free");
	receives(0, 1);
	serve();
	cr_expect_eq(arrived(0), 1);
	for (uint32_t i = 0; i < 3; i++)
		expect_done(i, 0);
}

Test(nic_stream, an_error_flushes_its_stream_alone)
{
	dci = bench_dci(cq_i, 32, 2, 1);
	receives(0, 8);
	put(3, 0, 1);
	put_bad(3, 0);
	put(4, 0, 3);
	put(3, 0, 4);
	ring();
	expect_done(0, 0);
	expect_done(1, NIC_SYN_LOCAL_PROT);
	expect_done(2, 0);
	expect_done(3, NIC_SYN_FLUSH);
	cr_expect_eq(dci->state, MDL_QPS_RTS);
	put(3, 0, 5); /* posted later: flushed too */
	put(4, 0, 6);
	ring();
	expect_done(4, NIC_SYN_FLUSH);
	expect_done(5, 0);
	cr_expect_eq(arrived(0), 1);
	cr_expect_eq(arrived(0), 3);
	cr_expect_eq(arrived(0), 6);
}

Test(nic_stream, an_error_flushes_what_waited_in_its_stream)
{
	dci = bench_dci(cq_i, 32, 2, 1);
	dci->rnr_retry = 2;
	receives(1, 1);
	put(1, 0, 1); /* no receive */
	put(1, 1, 2);
	put(2, 1, 3);
	ring();
	cr_expect_eq(arrived(1), 3);
	while (dci->nic_stalled)
		serve();
	cr_expect_eq(bench_get(target[0], MDL_CNT_RNR_NAKS), 3, "the first try and two more");
	expect_done(0, NIC_SYN_RNR_EXCEEDED);
	expect_done(1, NIC_SYN_FLUSH);
	expect_done(2, 0);
	cr_expect_eq(dci->state, MDL_QPS_RTS);
}

Test(nic_stream, a_reset_stream_works_again)
{
	dci = bench_dci(cq_i, 32, 2, 1);
	receives(0, 2);
	put_bad(3, 0);
	ring();
	expect_done(0, NIC_SYN_LOCAL_PROT);
	cr_expect_eq(nic_stream_reset(dci, 4), -EINVAL, "it is not in error");
	cr_expect_eq(nic_stream_reset(dci, 3), 0);
	cr_expect_eq(nic_stream_reset(dci, 3), -EINVAL, "not any more");
	put(3, 0, 1);
	ring();
	expect_done(1, 0);
	cr_expect_eq(arrived(0), 1);
	put_bad(3, 0);
	ring();
	expect_done(2, NIC_SYN_LOCAL_PROT);
	cr_expect_eq(dci->state, MDL_QPS_RTS, "the first error counts no more");
	dci->state = MDL_QPS_SQD;
	cr_expect_eq(nic_stream_reset(dci, 3), -EINVAL, "in RTS only");
	cr_expect_eq(nic_stream_reset(bench_dci(cq_i, 4, 0, -1), 0), -EINVAL, "without streams");
}

/* Counts streams in error, not errors: the DCI breaks at the 2^log_errored-th. */
Test(nic_stream, too_many_streams_in_error_break_the_dci)
{
	for (int log = 0; log <= MDL_LOG_ERRORED_MAX; log++) {
		uint32_t most = 1u << log, wqe = 0;

		dci = bench_dci(cq_i, 256, 2, log);
		for (uint32_t stream = 1; stream < most; stream++, wqe += 2) {
			put_bad((uint16_t)stream, 0);
			put_bad((uint16_t)stream, 0);
			ring();
			expect_done(wqe, NIC_SYN_LOCAL_PROT);
			expect_done(wqe + 1, NIC_SYN_FLUSH);
			cr_assert_eq(dci->state, MDL_QPS_RTS, "%u of %u", stream, most);
		}
		put_bad(0, 0);
		put(100, 0, 1);
		ring();
		cr_expect_eq(dci->state, MDL_QPS_ERR, "at the %u-th", most);
		expect_done(wqe, NIC_SYN_LOCAL_PROT);
		expect_done(wqe + 1, NIC_SYN_FLUSH);
		cr_expect_null(bench_poll(cq_i));
		nic_qp_destroy(dci);
	}
}

static void to_state(uint32_t to)
{
	nic_qp_modify(dci, dci->state, to);
	dci->state = to;
	nic_qp_modified(dci);
}

Test(nic_stream, what_was_executed_early_is_no_flush_error)
{
	dci = bench_dci(cq_i, 32, 2, 1);
	receives(1, 1);
	put(1, 0, 1);
	put(2, 1, 2);
	put(1, 0, 3);
	ring();
	cr_expect_eq(arrived(1), 2);
	to_state(MDL_QPS_ERR);
	expect_done(0, NIC_SYN_FLUSH);
	expect_done(1, 0);
	expect_done(2, NIC_SYN_FLUSH);
	put(2, 1, 4);
	ring();
	expect_done(3, NIC_SYN_FLUSH);
}

Test(nic_stream, a_reset_of_the_dci_forgets_errors_and_work)
{
	dci = bench_dci(cq_i, 32, 2, 0);
	put(1, 0, 1);
	ring();
	to_state(MDL_QPS_RESET);
	receives(0, 1);
	serve();
	cr_expect_eq(arrived(0), ~0u);
	cr_expect_null(bench_poll(cq_i));
	cr_expect_eq(nic_stream_conn(dci, 1), NULL, "no channel has a stream");
}

Test(nic_stream, a_flush_waits_for_room_in_the_cq)
{
	struct mdl_cq *small = bench_cq(4, 64);

	dci = bench_dci(small, 32, 2, 1);
	for (uint32_t i = 0; i < 6; i++)
		put(1, 0, i);
	ring();
	to_state(MDL_QPS_ERR);
	for (uint32_t i = 0; i < 6; i++) {
		const uint8_t *cqe = bench_poll(small);

		cr_assert_eq(bench_op(cqe), NIC_CQE_REQ_ERR, "%u", i);
		cr_expect_eq(nic_be16_get(cqe + 60), i * 2);
		serve();
	}
	cr_expect_null(bench_poll(small));
}

Test(nic_stream, the_device_looks_at_64_wqes)
{
	dci = bench_dci(cq_i, 256, 2, 1);
	receives(1, 100);
	put(1, 0, 0);
	for (uint32_t i = 1; i < 100; i++)
		put(2, 1, i);
	ring();
	for (uint32_t i = 1; i < 64; i++)
		cr_assert_eq(arrived(1), i);
	cr_expect_eq(arrived(1), ~0u);
	receives(0, 1);
	serve();
	for (uint32_t i = 64; i < 100; i++)
		cr_assert_eq(arrived(1), i);
	for (uint32_t i = 0; i < 100; i++)
		expect_done(i, 0);
}

Test(nic_stream, a_silent_target_holds_up_its_stream_alone)
{
	struct bench_wr wr;

	dci = bench_dci(cq_i, 32, 2, 1);
	receives(1, 1);
	wr = wr_to(1, 0, 1);
	wr.rlid = 9;
	bench_put(dci, &wr);
	put(2, 1, 2);
	ring();
	cr_expect_eq(arrived(1), 2);
	for (const uint8_t *cqe = NULL; !cqe; cqe = bench_poll(cq_i)) {
		nic_service(mdl_now_ns() + 2000000);
		if (!cqe)
			continue;
		cr_expect_eq(cqe[55], NIC_SYN_RETRY_EXCEEDED);
	}
	expect_done(1, 0);
	cr_expect_eq(dci->state, MDL_QPS_RTS);
}

Test(nic_stream, a_nop_is_executed_in_its_stream)
{
	dci = bench_dci(cq_i, 32, 2, 1);
	bench_put(dci, &(struct bench_wr){ .opcode = NIC_OP_NOP, .flags = 8 });
	ring();
	expect_done(0, 0);
	cr_expect_eq(bench_get(dci, MDL_CNT_NOPS), 1);
}

Test(nic_stream, a_process_has_a_limited_number_of_them)
{
	static struct mdl_qp many[129];

	for (int i = 0; i < 129; i++) {
		many[i].has_streams = 1;
		cr_assert_eq(nic_stream_create(&many[i]), i < 128 ? 0 : -ENOMEM, "%d", i);
	}
	nic_stream_destroy(&many[5]);
	cr_expect_eq(nic_stream_create(&many[128]), 0, "what is destroyed is free");
	cr_expect_eq(nic_stream_create(&many[5]), -ENOMEM);
	nic_attach();
	cr_expect_eq(nic_stream_create(&many[5]), 0, "a child of fork() owns none");
}

/* State of the random run: what each stream has sent, and what of it each target received last. */
static uint32_t sent[8], received[8], last[TARGETS][8], wqes_posted, wqes_done;

static void random_arrivals(void)
{
	for (uint32_t t = 0; t < TARGETS; t++)
		for (uint32_t imm; (imm = arrived(t)) != ~0u;) {
			uint32_t stream = imm >> 16;

			cr_assert_gt(imm & 0xffff, last[t][stream], "stream %u", stream);
			last[t][stream] = imm & 0xffff;
			received[stream]++;
		}
	while (wqes_done < wqes_posted) {
		const uint8_t *cqe = bench_poll(cq_i);

		if (!cqe)
			break;
		cr_assert_eq(bench_op(cqe), NIC_CQE_REQ);
		cr_assert_eq(nic_be16_get(cqe + 60), (uint16_t)(wqes_done++ * 2));
	}
}

static void random_post(void)
{
	uint32_t stream = nic_random() % 8, cnt = 1 + nic_random() % 4;

	if (wqes_posted + cnt - wqes_done > 32)
		return;
	for (; cnt; cnt--, wqes_posted++)
		put((uint16_t)stream, nic_random() % TARGETS, stream << 16 | ++sent[stream]);
	ring();
}

/*
 * Eight streams on four channels to three targets whose receives come late: each stream arrives in
 * order, completions have the order of the queue, over many laps of all queues.
 */
static void random_run(enum mdl_mode mode)
{
	mdl_self.config.mode = mode;
	dci = bench_dci(cq_i, 64, 2, 1);
	while (wqes_posted < 3000) {
		uint32_t t = nic_random() % TARGETS;

		random_post();
		if (posted[t] - bench_get(target[t], MDL_CNT_RECV_WQES) < 8)
			receives(t, nic_random() % 3);
		serve();
		random_arrivals();
	}
	for (uint32_t t = 0; t < TARGETS; t++)
		receives(t, 60);
	while (wqes_done < wqes_posted) {
		serve();
		random_arrivals();
	}
	for (uint32_t stream = 0; stream < 8; stream++)
		cr_expect_eq(received[stream], sent[stream]);
	cr_expect_gt(bench_get(target[0], MDL_CNT_RNR_NAKS), 0, "some had to wait");
}

Test(nic_stream, any_streams_arrive_in_order)
{
	random_run(MDL_MODE_TRAP);
}

Test(nic_stream, any_streams_arrive_in_order_in_poll_mode)
{
	random_run(MDL_MODE_POLL);
}
