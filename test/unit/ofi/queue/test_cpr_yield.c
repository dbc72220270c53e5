/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that shares its processor with its peer yields at each empty read. One that does not
 * yields rarely.
 */
#include "ofi/queue/cpr_yield.h"

#include <criterion/criterion.h>

#define ALONE_NS 300u
#define PEER_NS  20000u

/** Reads an empty queue `reads` times, with yields of `ns`. Returns the number of yields. */
static unsigned run(struct cpr_yield *y, unsigned reads, uint64_t ns)
{
	unsigned yields = 0;

	while (reads--) {
		if (!cpr_yield_is_due(y) || y->reads % y->step)
			continue;
		cpr_yield_took(y, ns);
		yields++;
	}
	return yields;
}

Test(cpr_yield, alone_it_yields_each_thousand_reads)
{
	struct cpr_yield y;

	cpr_yield_init(&y);
	cr_expect_eq(run(&y, 100 * CPR_YIELD_READS, ALONE_NS), 100);
	cr_expect_eq(y.mask + 1, CPR_PDOM_IDLE_READS);
}

Test(cpr_yield, beside_its_peer_it_yields_at_each_empty_read)
{
	struct cpr_yield y;

	cpr_yield_init(&y);
	cr_expect_eq(run(&y, CPR_YIELD_READS, PEER_NS), 1);
	cr_expect_eq(run(&y, 1000, PEER_NS), 1000);
	/* Also after reads that found something. */
	y.reads = 0;
	cr_expect_eq(run(&y, 3, PEER_NS), 3);
}

Test(cpr_yield, a_peer_that_left_is_forgotten_within_a_dozen_yields)
{
	struct cpr_yield y;

	cpr_yield_init(&y);
	run(&y, 2 * CPR_YIELD_READS, PEER_NS);
	cr_expect_leq(run(&y, 2 * CPR_YIELD_READS, ALONE_NS), 12);
	cr_expect_eq(y.step, CPR_YIELD_READS);
}

Test(cpr_yield, a_stranger_that_takes_whole_time_slices_is_no_peer)
{
	struct cpr_yield y;

	cpr_yield_init(&y);
	cr_expect_eq(run(&y, 10 * CPR_YIELD_READS, 3000000), 10);
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
