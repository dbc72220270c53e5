/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that reads a queue or a counter in vain yields its processor, so that a peer that shares
 * it can run.
 */
#include "ofi/queue/cpr_idle.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unit/ofi/ofi_fixture.h"

/* Enough for YIELDS, also if each one doubles the number of reads to the next. */
#define READS  (8 * CPR_YIELD_READS)
#define YIELDS 4u

static struct ofi_pair p;
static __thread unsigned yields; /* of this thread: the control thread has its own */

/* Found before libc's by the provider, too, which is linked into the test. */
int sched_yield(void)
{
	yields++;
	return (int)syscall(SYS_sched_yield);
}

static void setup(void)
{
	struct ofi_options opts = { .counters = true };

	ofi_pair_open(&p, &opts);
	yields = 0;
}

static void teardown(void)
{
	ofi_pair_close(&p);
}

TestSuite(cpr_idle, .init = setup, .fini = teardown);

Test(cpr_idle, vain_reads_of_a_queue_yield)
{
	struct fi_cq_tagged_entry e;

	for (unsigned i = 0; i < READS; i++)
		cr_assert_eq(fi_cq_read(p.cq[0], &e, 1), -FI_EAGAIN);
	cr_expect_geq(yields, YIELDS);
}

Test(cpr_idle, vain_reads_of_a_counter_yield)
{
	for (unsigned i = 0; i < READS; i++)
		cr_assert_eq(fi_cntr_read(p.rx_cntr[0]), 0);
	cr_expect_geq(yields, YIELDS);
}

Test(cpr_idle, reads_of_a_changing_counter_do_not_yield)
{
	for (unsigned i = 0; i < READS; i++) {
		cr_assert_eq(fi_cntr_add(p.rx_cntr[0], 1), 0);
		cr_assert_eq(fi_cntr_read(p.rx_cntr[0]), i + 1);
	}
	cr_expect_eq(yields, 0);
}
