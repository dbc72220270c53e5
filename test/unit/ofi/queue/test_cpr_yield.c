/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that shares its processor with its peer yields at each empty read. One that does not
 * yields rarely.
 */
#include "ofi/queue/cpr_yield.h"

#include <criterion/criterion.h>

#define ALONE_NS 300u
#define PEER_NS  20000u
#define SLICE_NS 3000000u
#define READ_NS  30u

static uint64_t now_ns = 1, read_ns = READ_NS;

/**
 * Reads an empty queue `reads` times, with yields of `ns` after which something is there or not.
 * Returns the number of yields.
 */
static unsigned run(struct cpr_yield *y, unsigned reads, uint64_t ns, bool found)
{
	unsigned yields = 0;

	while (reads--) {
		now_ns += read_ns;
		if (!cpr_yield_is_due(y) || y->reads % y->step)
			continue;
		cpr_yield_took(y, (struct cpr_rest){ now_ns, now_ns + ns }, found);
		now_ns += ns;
		yields++;
	}
	return yields;
}

Test(cpr_yield, alone_it_yields_each_thousand_reads)
{
	struct cpr_yield y;

	cpr_yield_init(&y);
	cr_expect_eq(run(&y, 100 * CPR_YIELD_READS, ALONE_NS, false), 100);
	cr_expect_eq(y.mask + 1, CPR_PDOM_IDLE_READS);
}

Test(cpr_yield, beside_its_peer_it_yields_at_each_empty_read)
{
	struct cpr_yield y;

	cpr_yield_init(&y);
	cr_expect_eq(run(&y, CPR_YIELD_READS, PEER_NS, true), 1);
	cr_expect_eq(run(&y, 1000, PEER_NS, true), 1000);
	/* Also after reads that found something. */
	cpr_yield_found(&y);
	cr_expect_eq(run(&y, 3, PEER_NS, true), 3);
}

Test(cpr_yield, a_peer_that_left_is_forgotten_within_a_dozen_yields)
{
	struct cpr_yield y;

	cpr_yield_init(&y);
	run(&y, 2 * CPR_YIELD_READS, PEER_NS, true);
	cr_expect_leq(run(&y, 2 * CPR_YIELD_READS, ALONE_NS, false), 12);
	cr_expect_eq(y.step, CPR_YIELD_READS);
}

Test(cpr_yield, a_thread_that_runs_meanwhile_may_be_a_stranger_or_the_peer)
{
	struct cpr_yield y;

	cpr_yield_init(&y);
	cr_expect_eq(run(&y, 8 * CPR_YIELD_READS, PEER_NS, false), 8);
	cr_expect_eq(run(&y, 2 * CPR_YIELD_READS, PEER_NS, true), CPR_YIELD_READS + 1);
	cr_expect_eq(run(&y, 8 * CPR_YIELD_READS, PEER_NS, false), 8 * CPR_YIELD_READS);
}

Test(cpr_yield, a_stranger_that_takes_whole_time_slices_is_no_peer_whatever_is_there_afterwards)
{
	struct cpr_yield y;

	cpr_yield_init(&y);
	cr_expect_leq(run(&y, 8 * CPR_YIELD_MOST, SLICE_NS, true), 5 + 8);
	cr_expect_eq(y.step, CPR_YIELD_MOST);
	/* Nor does one such slice hide the peer for long. */
	run(&y, 2 * CPR_YIELD_MOST, PEER_NS, true);
	cr_expect_eq(y.step, 1);
	run(&y, 1, SLICE_NS, false);
	cr_expect_eq(y.step, CPR_YIELD_READS);
	cr_expect_leq(run(&y, CPR_YIELD_READS, PEER_NS, true), 1 + CPR_YIELD_READS);
	cr_expect_eq(y.step, 1);
}

Test(cpr_yield, beside_strangers_the_reads_take_a_few_time_slices_at_most)
{
	struct cpr_yield y;

	read_ns = 500; /* over sockets */
	cpr_yield_init(&y);
	run(&y, 8 * CPR_YIELD_MOST, SLICE_NS, false);
	cr_expect_geq(y.step * read_ns, CPR_YIELD_SLICE_NS);
	cr_expect_lt(y.step * read_ns, 4 * CPR_YIELD_SLICE_NS);
}

Test(cpr_yield, strangers_that_left_are_forgotten_at_once)
{
	struct cpr_yield y;

	cpr_yield_init(&y);
	run(&y, 8 * CPR_YIELD_MOST, SLICE_NS, false);
	run(&y, CPR_YIELD_MOST, ALONE_NS, false);
	cr_expect_eq(y.step, CPR_YIELD_READS);
}

Test(cpr_yield, others_get_progress_however_often_it_yields)
{
	struct cpr_yield y;
	unsigned step, due, i;

	for (step = 1; step <= CPR_YIELD_READS; step *= 2) {
		cpr_yield_init(&y);
		cpr_yield_set(&y, step);
		for (due = 0, i = 0; i < 64 * CPR_PDOM_IDLE_READS; i++)
			due += cpr_yield_is_due(&y) && y.reads % CPR_PDOM_IDLE_READS == 0;
		cr_expect_eq(due, 64, "step %u", step);
	}
}
