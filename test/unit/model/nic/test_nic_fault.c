/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of injected faults: they occur as often as configured, and equally for one seed. */
#include "model/nic/nic_be.h"
#include "unit/model/nic/nic_bench.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_wqe.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SENT = 400 };

static struct mdl_cq *cq_a, *cq_b;
static struct mdl_qp *a, *b;
static uint32_t got[SENT * 3];
static uint32_t got_cnt, posted;

static void setup(void)
{
	bench_open();
	cq_a = bench_cq(64, 64);
	cq_b = bench_cq(64, 64);
	a = bench_qp(MDL_QPT_UD, cq_a, NULL, 64);
	b = bench_qp(MDL_QPT_UD, cq_b, NULL, 64);
}

TestSuite(nic_fault, .init = setup);

/* Returns the buffer of a receive, found by the counter of its completion. */
static uint8_t *buffer(uint32_t index)
{
	return bench.buf + 4096 + index % 64 * 160;
}

static void take_all(void)
{
	const uint8_t *cqe;

	while ((cqe = bench_poll(cq_b))) {
		memcpy(&got[got_cnt++], buffer(nic_be16_get(cqe + 60)) + 40, 4);
		bench_recv(b, buffer(posted++), 140, bench.key);
	}
}

/* Sends 0, 1, 2, ...; `got` has the values received, in order. */
static void run(const char *plan)
{
	strcpy(mdl_self.config.faults, plan);
	for (int i = 0; i < 8; i++)
		bench_recv(b, buffer(posted++), 140, bench.key);
	for (uint32_t i = 0; i < SENT; i++) {
		struct bench_wr wr = { .opcode = NIC_OP_SEND,
				       .flags = 8,
				       .addr = &i,
				       .len = 4,
				       .inl = true,
				       .dqpn = b->number,
				       .qkey = 0x11111111,
				       .rlid = 1 };

		bench_post(a, &wr);
		cr_assert_not_null(bench_poll(cq_a));
		take_all();
	}
	nic_service(mdl_now_ns() + 2000000);
	take_all();
}

static uint32_t out_of_order(void)
{
	uint32_t cnt = 0;

	for (uint32_t i = 1; i < got_cnt; i++)
		cnt += got[i] < got[i - 1];
	return cnt;
}

Test(nic_fault, none_without_an_order)
{
	run("");
	cr_expect_eq(got_cnt, SENT);
	cr_expect_eq(out_of_order(), 0);
}

Test(nic_fault, a_tenth_is_dropped)
{
	run("drop=100");
	cr_expect(got_cnt > SENT * 8 / 10 && got_cnt < SENT * 97 / 100, "%u came", got_cnt);
	cr_expect_eq(bench_get(a, MDL_CNT_FAULTS), SENT - got_cnt);
}

Test(nic_fault, a_tenth_comes_twice)
{
	run("dup=100");
	cr_expect(got_cnt > SENT * 103 / 100 && got_cnt < SENT * 12 / 10, "%u came", got_cnt);
}

Test(nic_fault, late_ones_are_overtaken_and_none_is_lost)
{
	bool seen[SENT] = { false };

	run("late=200");
	cr_expect_eq(got_cnt, SENT);
	cr_expect(out_of_order() > 20, "%u", out_of_order());
	for (uint32_t i = 0; i < got_cnt; i++)
		seen[got[i]] = true;
	for (uint32_t i = 0; i < SENT; i++)
		cr_expect(seen[i], "%u", i);
}

Test(nic_fault, corrupt_ones_differ_by_one_bit)
{
	uint32_t wrong = 0;

	run("corrupt=200");
	cr_expect_eq(got_cnt, SENT);
	for (uint32_t i = 0; i < got_cnt; i++) {
		cr_expect(__builtin_popcount(got[i] ^ i) <= 1, "%u", i);
		wrong += got[i] != i;
	}
	cr_expect_eq(wrong, bench_get(a, MDL_CNT_FAULTS));
	cr_expect(wrong > 30, "%u", wrong);
}

Test(nic_fault, a_queue_pair_breaks_at_the_wqe_that_was_named)
{
	strcpy(mdl_self.config.faults, "rnr=0,break=3");
	a->type = b->type = MDL_QPT_UC;
	bench_connect(a, b);
	for (int i = 0; i < 3; i++)
		bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .flags = 8 });
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_REQ);
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_REQ);
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_REQ_ERR);
}

static uint64_t ms(uint64_t n)
{
	return n * 1000000;
}

Test(nic_fault, windows_come_again_as_often_as_the_plan_says)
{
	uint64_t start;

	strcpy(mdl_self.config.faults, "down=1000-1500,every=4000,times=3");
	start = nic_fault_due(0) - ms(1000);
	cr_expect_eq(nic_fault_due(start + ms(1000)), start + ms(1500));
	cr_expect_eq(nic_fault_due(start + ms(1500)), start + ms(5000));
	cr_expect_eq(nic_fault_due(start + ms(4999)), start + ms(5000));
	cr_expect_eq(nic_fault_due(start + ms(5000)), start + ms(5500));
	cr_expect_eq(nic_fault_due(start + ms(9499)), start + ms(9500));
	cr_expect_eq(nic_fault_due(start + ms(9500)), UINT64_MAX, "the third was the last");
	cr_expect_not(nic_fault_dead(0));
}

Test(nic_fault, a_window_comes_once_unless_the_plan_repeats_it)
{
	uint64_t start;

	strcpy(mdl_self.config.faults, "fatal=2000,down=1000-1500");
	start = nic_fault_due(0) - ms(1000);
	cr_expect_eq(nic_fault_due(start + ms(1200)), start + ms(1500));
	cr_expect_eq(nic_fault_due(start + ms(1500)), start + ms(2000));
	cr_expect_eq(nic_fault_due(start + ms(2000)), UINT64_MAX, "the device stays failed");
	cr_expect_not(nic_fault_link_down(0));
}

Test(nic_fault, times_count_from_the_first_wqe_if_the_plan_says_so)
{
	uint64_t due;

	strcpy(mdl_self.config.faults, "down=0-600000,fatal=500000,work=1");
	due = nic_fault_due(ms(7000));
	cr_expect(due > ms(7000) && due < ms(7100), "looks again soon");
	cr_expect_not(nic_fault_link_down(0));
	bench_connect(a, b);
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_NOP });
	cr_expect_not(nic_fault_link_down(0), "nothing was sent");
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .flags = 8 });
	cr_expect(nic_fault_link_down(0));
	cr_expect_not(nic_fault_dead(0));
	cr_expect_leq(nic_fault_due(mdl_now_ns()), mdl_now_ns() + ms(500000));
}

Test(nic_fault, what_was_made_before_the_device_failed_does_nothing)
{
	a->type = b->type = MDL_QPT_UC;
	bench_connect(a, b);
	a->opened_ns = b->opened_ns = 10;
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .flags = 8 });
	cr_expect_not_null(bench_poll(cq_a));
	mdl_self.proc->fatal_ns[0] = 20;
	cr_expect(nic_fault_has_failed(0, 10));
	cr_expect_not(nic_fault_has_failed(0, 21));
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .flags = 8 });
	cr_expect_null(bench_poll(cq_a));
	a->opened_ns = b->opened_ns = 30;
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .flags = 8 });
	cr_expect_not_null(bench_poll(cq_a));
	mdl_self.proc->fatal_ns[0] = 0;
}

Test(nic_fault, each_device_has_windows_of_its_own)
{
	uint64_t start;

	strcpy(mdl_self.config.faults, "down1=0-60000,fatal=0");
	start = nic_fault_due(0) - ms(60000);
	cr_expect_not(nic_fault_link_down(0));
	cr_expect(nic_fault_link_down(1));
	cr_expect(nic_fault_dead(0));
	cr_expect_not(nic_fault_dead(1));
	cr_expect_eq(nic_fault_due(start + ms(1)), start + ms(60000));
}

/* Makes b a queue pair of the second device, with the LID 2. */
static void move_to_second_device(void)
{
	struct mdl_segment *seg = mdl_self.seg;

	seg->port_cnt = 2;
	seg->port[1] = seg->port[0];
	seg->port[1].lid = 2;
	b->port_index = 1;
	a->path.dlid = 2;
}

static uint64_t second_port_count(enum mdl_count_id id)
{
	return mdl_count_get(&mdl_self.seg->port[1].count, id);
}

Test(nic_fault, a_device_that_fails_leaves_the_other_one_alone)
{
	a->type = b->type = MDL_QPT_UC;
	bench_connect(a, b);
	move_to_second_device();
	a->opened_ns = b->opened_ns = 10;
	for (uint32_t i = 0; i < 2; i++)
		bench_recv(b, buffer(i), 140, bench.key);
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .flags = 8 });
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_REQ);
	cr_expect_eq(mdl_count_get(&mdl_self.seg->port[0].count, MDL_CNT_PACKETS_OUT), 1);
	cr_expect_eq(second_port_count(MDL_CNT_PACKETS_IN), 1);
	cr_expect_eq(second_port_count(MDL_CNT_PACKETS_OUT), 0);

	mdl_self.proc->fatal_ns[1] = 20;
	cr_expect_not(nic_fault_has_failed(0, 10));
	cr_expect(nic_fault_has_failed(1, 10));
	bench_post(a, &(struct bench_wr){ .opcode = NIC_OP_SEND, .flags = 8 });
	cr_expect_eq(bench_op(bench_poll(cq_a)), NIC_CQE_REQ, "the sender's device works");
	cr_expect_eq(second_port_count(MDL_CNT_PACKETS_IN), 1, "the other one does not");
	mdl_self.proc->fatal_ns[1] = 0;
}
