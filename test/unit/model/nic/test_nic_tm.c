/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of lists of tags: entries are named one ahead, the oldest that matches is taken, and an
 * entry waits until software has handled all unexpected messages.
 */
#include "unit/model/broken_rule.h"
#include "unit/model/nic/tm_bench.h"
#include "model/nic/nic_be.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_tm.h"
#include "model/nic/nic_tm_recv.h"
#include "model/nic/nic_wqe.h"

#include <signal.h>

TestSuite(nic_tm, .init = tm_setup);

/* Returns the entry that took a tagged message, or -1 if it was unexpected. */
static int taker(uint64_t tag)
{
	const uint8_t *cqe;

	tm_send(NIC_TMH_EAGER, tag, 24);
	cr_assert_eq(bench_op(bench_poll(tm.cq_s)), NIC_CQE_REQ);
	cqe = tm_poll();
	cr_assert_not_null(cqe);
	return cqe[41] == NIC_APP_CONSUMED_MSG ? nic_be16_get(cqe + 42) : -1;
}

Test(nic_tm, an_append_fills_the_entry_that_the_one_before_named)
{
	tm_append_next(1, tm_all, 100, 0, 5);
	tm_append_next(2, tm_all, 100, 0, 3);
	tm_append_next(3, tm_all, 100, 0, 1);
	for (int i = 0; i < 3; i++)
		tm_expect(tm_poll(), NIC_CQE_NO_PACKET, NIC_APP_APPEND);
	cr_expect_eq(taker(3), 3);
	cr_expect_eq(taker(1), 0);
	cr_expect_eq(taker(2), 5);
	cr_expect_eq(taker(2), -1);
	cr_expect_eq(bench_get(tm.cmd, MDL_CNT_TM_LIST_OPS), 3);
}

Test(nic_tm, the_oldest_entry_that_matches_is_taken_whatever_its_index)
{
	tm_append_next(7, tm_all, 100, 0, 6);
	tm_append_next(7, tm_all, 100, 0, 2);
	tm_append_next(0, 0, 100, 0, 1);
	while (tm_poll())
		;
	cr_expect_eq(taker(9), 2, "a mask of 0 matches every tag");
	cr_expect_eq(taker(7), 0);
	cr_expect_eq(taker(7), 6);
	cr_expect_eq(taker(7), -1);
}

Test(nic_tm, the_mask_selects_the_bits_of_the_message_that_must_be_equal)
{
	uint32_t entry = tm_append(0x1200, 0xff00, 0);

	cr_expect_eq(taker(0x1334), -1);
	tm_op(NIC_TM_NOP, 0, 0, 1);
	cr_expect_eq(taker(0x1234), (int)entry);
}

Test(nic_tm, a_removed_entry_matches_nothing_and_the_removal_of_a_taken_one_fails)
{
	uint32_t first = tm_append(1, tm_all, 0), second = tm_append(2, tm_all, 0);
	const uint8_t *cqe;

	tm_op(NIC_TM_REMOVE, NIC_TM_WANTS_CQE, (uint16_t)first, 0);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_NO_PACKET, NIC_APP_REMOVE);
	cr_expect_eq(nic_be32_get(cqe) >> 31, 1);
	cr_expect_eq(taker(2), (int)second);
	tm_op(NIC_TM_REMOVE, NIC_TM_WANTS_CQE, (uint16_t)second, 0);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_NO_PACKET, NIC_APP_REMOVE);
	cr_expect_eq(nic_be32_get(cqe) >> 31, 0);
	cr_expect_eq(taker(1), -1);
	tm_op(NIC_TM_REMOVE, 0, (uint16_t)first, 1);
	cr_expect_null(tm_poll(), "no completion was requested");
}

Test(nic_tm, an_entry_appended_behind_an_unexpected_message_waits_for_the_count)
{
	const uint8_t *cqe;
	uint32_t entry;

	cr_expect_eq(taker(5), -1);
	entry = tm_append_next(5, tm_all, 100, 0, 1);
	cqe = tm_poll();
	tm_expect(cqe, NIC_CQE_NO_PACKET, NIC_APP_APPEND);
	cr_expect_eq(nic_be16_get(cqe + 4), 1, "messages that the device found unexpected");
	cr_expect_eq(taker(5), -1, "stored, not active");
	tm_op(NIC_TM_NOP, NIC_TM_WANTS_CQE, 0, 1);
	tm_expect(tm_poll(), NIC_CQE_NO_PACKET, NIC_APP_NOOP);
	cr_expect_eq(taker(5), -1, "two were unexpected by now");
	tm_op(NIC_TM_NOP, 0, 0, 3);
	cr_expect_eq(taker(5), (int)entry);
	cr_expect_eq(bench_get(tm.r, MDL_CNT_TM_UNEXPECTED), 3);
	cr_expect_eq(bench_get(tm.r, MDL_CNT_TM_MATCHES), 1);
}

Test(nic_tm, entries_that_were_active_before_an_unexpected_message_stay_so)
{
	uint32_t entry = tm_append(5, tm_all, 0);

	cr_expect_eq(taker(6), -1);
	cr_expect_eq(taker(5), (int)entry);
}

Test(nic_tm, an_operation_without_a_count_leaves_the_last_one)
{
	cr_expect_eq(taker(5), -1);
	bench_post(tm.cmd, &(struct bench_wr){ .opcode = NIC_OP_TAG_MATCHING,
					       .tm_op = NIC_TM_NOP,
					       .tm_flags = NIC_TM_WANTS_CQE,
					       .tm_cnt = 1 });
	tm_expect(tm_poll(), NIC_CQE_NO_PACKET, NIC_APP_NOOP);
	tm_append(5, tm_all, 0);
	cr_expect_eq(taker(5), -1);
}

Test(nic_tm, the_counts_wrap_at_16_bits)
{
	nic_srq_priv(tm.xrq)->tm_phase = 0xffff;
	nic_srq_priv(tm.xrq)->tm_sw_cnt = 0xffff;
	cr_expect_eq(taker(5), -1);
	tm_append(5, tm_all, 0);
	cr_expect_eq(taker(5), 0);
}

Test(nic_tm, three_laps_of_the_list)
{
	for (uint32_t i = 0; i < 3 * TM_TAGS; i++) {
		cr_assert_eq(tm_append(i, tm_all, 0), i % TM_TAGS);
		cr_assert_eq(taker(i), (int)(i % TM_TAGS));
	}
}

Test(nic_tm, a_queue_without_completions_is_not_free, .signal = SIGABRT)
{
	broken_rule_expect("WQEs that may still be needed were overwritten");
	for (int i = 0; i < 17; i++)
		tm_op(NIC_TM_NOP, 0, 0, 0);
}

Test(nic_tm, a_completion_frees_the_operations_before_it)
{
	for (int i = 0; i < 64; i++)
		tm_op(NIC_TM_NOP, i % 16 == 15 ? NIC_TM_WANTS_CQE : 0, 0, 0);
	for (int i = 0; i < 4; i++)
		tm_expect(tm_poll(), NIC_CQE_NO_PACKET, NIC_APP_NOOP);
	cr_expect_null(tm_poll());
	cr_expect_null(bench_poll(tm.cq_s));
}

Test(nic_tm, an_entry_in_use_is_not_filled_again, .signal = SIGABRT)
{
	broken_rule_expect("an APPEND fills entry 0 of SRQ");
	tm_append_next(1, tm_all, 100, 0, 0);
	tm_append_next(2, tm_all, 100, 0, 1);
}

Test(nic_tm, an_index_beyond_the_list_ends_the_program, .signal = SIGABRT)
{
	broken_rule_expect("a list operation names entry 32, but the list of SRQ");
	tm_append_next(1, tm_all, 100, 0, TM_TAGS);
}

Test(nic_tm, a_count_ahead_of_the_device_ends_the_program, .signal = SIGABRT)
{
	broken_rule_expect("says that 1 unexpected messages were handled, but SRQ");
	tm_op(NIC_TM_NOP, 0, 0, 1);
}

Test(nic_tm, other_queue_pairs_have_no_list, .signal = SIGABRT)
{
	broken_rule_expect("does not receive from an SRQ of tag matching");
	bench_post(tm.s, &(struct bench_wr){ .opcode = NIC_OP_TAG_MATCHING });
}

/* A process that dies after it wrote a completion has done all of it, before that nothing. */
Test(nic_tm, what_a_message_did_is_recorded_once_with_its_completion)
{
	uint8_t cqe64[64] = { 0 };

	cqe64[40] = NIC_CQE_APP_TM;
	cqe64[41] = NIC_APP_UNEXPECTED;
	nic_tm_note(tm.r, cqe64, 17);
	nic_tm_note(tm.r, cqe64, 17);
	cr_expect_eq(nic_srq_priv(tm.xrq)->tm_phase & 0xffff, 1);
	nic_tm_note(tm.r, cqe64, 18);
	cr_expect_eq(nic_srq_priv(tm.xrq)->tm_phase & 0xffff, 2);
}
