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

#include "ofi/queue/cpr_yield.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/clock.h"
#include "util/fi_old.h"

/* Enough for YIELDS, also if each one doubles the number of reads to the next. */
#define READS  (8 * CPR_YIELD_READS)
#define YIELDS 4u

static struct ofi_pair p;
static __thread unsigned yields; /* of this thread: the control thread has its own */

static __thread void (*meanwhile)(void); /* runs during a yield */

/* Found before libc's by the provider, too, which is linked into the test. */
int sched_yield(void)
{
	yields++;
	if (meanwhile)
		meanwhile();
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

Test(cpr_idle, vain_polls_of_a_poll_set_yield)
{
	struct fi_poll_attr attr = { .flags = 0 };
	struct fid_poll *set;
	void *ctx;

	cr_assert_eq(fi_poll_open(p.domain, &attr, &set), 0);
	cr_assert_eq(fi_poll_add(set, &p.cq[0]->fid, 0), 0);
	for (unsigned i = 0; i < READS; i++)
		cr_assert_eq(fi_poll(set, &ctx, 1), 0);
	cr_expect_geq(yields, YIELDS);
	cr_assert_eq(fi_poll_del(set, &p.cq[0]->fid, 0), 0);
	cr_assert_eq(fi_close(&set->fid), 0);
}

/* Sends a message, after more time than a yield takes that lets no other thread run. */
static void peer_runs(void)
{
	uint64_t until = util_clock_ns() + 10 * CPR_YIELD_SHARE_NS;

	while (util_clock_ns() < until)
		;
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[1], "x", 1, p.addr[0], 7)), 0);
}

static bool receive_one(unsigned reads)
{
	struct fi_cq_tagged_entry e;
	static char in;

	cr_assert_eq(fi_trecv(p.ep[0], &in, 1, NULL, FI_ADDR_UNSPEC, 7, 0, NULL), 0);
	while (reads--)
		if (fi_cq_read(p.cq[0], &e, 1) == 1)
			return true;
	return false;
}

/* Others may take this processor for a time slice, so one of many tries has to succeed. */
Test(cpr_idle, after_a_yield_that_brought_something_each_vain_read_yields, .timeout = 100)
{
	unsigned tries = 200, found = 0;

	meanwhile = peer_runs;
	while (tries-- && found < 8) {
		cr_assert(receive_one(4 * CPR_YIELD_MOST));
		yields = 0;
		for (found = 0; found < 8 && receive_one(1); found++)
			;
		cr_expect_leq(yields, found + 1);
	}
	meanwhile = NULL;
	cr_expect_eq(found, 8, "a peer that shares the processor is not noticed");
}
