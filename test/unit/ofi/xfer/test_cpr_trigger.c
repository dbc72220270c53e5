/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Triggered operations: start when the counter reaches the threshold, and not before.
 * fi_trigger(3).
 */
#include <criterion/criterion.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <string.h>
#include <unistd.h>

#include "unit/ofi/ofi_fixture.h"

#define KEY 7

static struct ofi_pair p;
static struct fid_cntr *cntr;
static struct fid_mr *mr;
static uint64_t target[4];
static struct fi_triggered_context ctx[4];

static void open_with(const struct ofi_options *opts)
{
	ofi_pair_open(&p, opts);
	cr_assert_eq(fi_cntr_open(p.domain, NULL, &cntr, NULL), 0);
	memset(target, 0, sizeof(target));
	cr_assert_eq(fi_mr_reg(p.domain, target, sizeof(target), FI_REMOTE_READ | FI_REMOTE_WRITE,
			       0, KEY, 0, &mr, NULL),
		     0);
	for (int i = 0; i < 4; i++) {
		ctx[i].event_type = FI_TRIGGER_THRESHOLD;
		ctx[i].trigger.threshold.cntr = cntr;
		ctx[i].trigger.threshold.threshold = 1;
	}
}

static void setup(void)
{
	struct ofi_options opts = { .counters = true };

	open_with(&opts);
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&mr->fid), 0);
	if (cntr)
		cr_expect_eq(fi_close(&cntr->fid), 0);
	ofi_pair_close(&p);
}

TestSuite(cpr_trigger, .init = setup, .fini = teardown, .timeout = 60);

static void at(int i, uint64_t threshold)
{
	ctx[i].trigger.threshold.threshold = threshold;
}

static ssize_t write_word(int i, uint64_t *word, uint64_t flags)
{
	struct iovec iov = { word, sizeof(*word) };
	struct fi_rma_iov remote = { (uint64_t)i * 8, 8, KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = p.addr[1],
				  .rma_iov = &remote,
				  .rma_iov_count = 1,
				  .context = &ctx[i] };

	return fi_writemsg(p.ep[0], &msg, FI_TRIGGER | FI_COMPLETION | flags);
}

static void quiet(void)
{
	struct fi_cq_tagged_entry e;

	for (int i = 0; i < 100; i++) {
		cr_assert_eq(fi_cq_read(p.cq[0], &e, 1), -FI_EAGAIN);
		ofi_pair_progress(&p);
	}
}

static void expect(const void *context)
{
	struct fi_cq_tagged_entry e;

	cr_assert_eq(ofi_pair_read(&p, 0, &e), 1);
	cr_expect_eq(e.op_context, context);
}

static void expect_error(const void *context, int err)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry bad = { 0 };

	cr_assert_eq(ofi_pair_read(&p, 0, &e), -FI_EAVAIL);
	cr_assert_eq(fi_cq_readerr(p.cq[0], &bad, 0), 1);
	cr_expect_eq(bad.op_context, context);
	cr_expect_eq(bad.err, err);
}

Test(cpr_trigger, a_write_waits_for_its_counter_and_reads_its_buffer_then)
{
	uint64_t word = 1;

	cr_assert_eq(write_word(0, &word, 0), 0);
	quiet();
	word = 2;
	cr_assert_eq(fi_cntr_add(cntr, 1), 0);
	expect(&ctx[0]);
	cr_expect_eq(target[0], 2);
}

Test(cpr_trigger, a_threshold_that_was_reached_does_not_wait)
{
	uint64_t word = 3;

	cr_assert_eq(fi_cntr_set(cntr, 5), 0);
	cr_assert_eq(write_word(0, &word, 0), 0);
	expect(&ctx[0]);
	cr_expect_eq(target[0], 3);
}

Test(cpr_trigger, order_is_by_threshold_and_then_by_age)
{
	uint64_t word = 4;

	at(0, 2);
	at(1, 1);
	at(2, 1);
	at(3, 3);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(write_word(i, &word, 0), 0);
	cr_assert_eq(fi_cntr_add(cntr, 1), 0);
	expect(&ctx[1]);
	expect(&ctx[2]);
	quiet();
	cr_assert_eq(fi_cntr_add(cntr, 5), 0);
	expect(&ctx[0]);
	expect(&ctx[3]);
}

/* A chain: the completion of one operation starts the next one. */
Test(cpr_trigger, a_completion_triggers)
{
	uint64_t word = 5;

	for (int i = 1; i < 4; i++) {
		ctx[i].trigger.threshold.cntr = p.tx_cntr[0];
		at(i, (uint64_t)i);
		cr_assert_eq(fi_tsend(p.ep[0], &word, 8, NULL, p.addr[1], 9, NULL), 0);
	}
	(void)word;
	expect(NULL);
	expect(NULL);
	expect(NULL);
	for (int i = 1; i < 4; i++)
		cr_assert_eq(write_word(i, &word, 0), 0);
	expect(&ctx[1]);
	expect(&ctx[2]);
	expect(&ctx[3]);
}

/* The one thread that makes progress sleeps. */
Test(cpr_trigger, a_counter_that_the_user_changes_wakes_the_thread_of_automatic_progress)
{
	struct ofi_options opts = { .counters = true, .progress = FI_PROGRESS_AUTO };
	uint64_t word = 11;

	teardown();
	opts.threading = FI_THREAD_SAFE;
	open_with(&opts);
	cr_assert_eq(write_word(0, &word, 0), 0);
	usleep(100000);
	cr_expect_eq(__atomic_load_n(&target[0], __ATOMIC_RELAXED), 0);
	cr_assert_eq(fi_cntr_add(cntr, 1), 0);
	for (int i = 0; i < 500 && !__atomic_load_n(&target[0], __ATOMIC_RELAXED); i++)
		usleep(10000);
	cr_expect_eq(__atomic_load_n(&target[0], __ATOMIC_RELAXED), 11);
}

static void *sleep_on_queue(void *arg)
{
	struct fi_cq_tagged_entry e = { 0 };

	(void)arg;
	cr_expect_eq(fi_cq_sread(p.cq[0], &e, 1, NULL, -1), 1);
	cr_expect_eq(e.op_context, &ctx[0]);
	return NULL;
}

/* The thread that sleeps relies on the engine, of which a counter's change is no event. */
Test(cpr_trigger, a_counter_that_the_user_changes_wakes_a_thread_that_sleeps_on_a_queue)
{
	struct ofi_options opts = { .counters = true, .wait_obj = FI_WAIT_UNSPEC };
	pthread_t thread;
	uint64_t word = 12;

	teardown();
	opts.threading = FI_THREAD_SAFE;
	open_with(&opts);
	p.addr[1] = p.addr[0]; /* needs no progress of others */
	cr_assert_eq(write_word(0, &word, 0), 0);
	cr_assert_eq(pthread_create(&thread, NULL, sleep_on_queue, NULL), 0);
	usleep(100000);
	cr_assert_eq(fi_cntr_add(cntr, 1), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

Test(cpr_trigger, an_alias_triggers_whatever_it_sends)
{
	char out[4] = "abc", in[4][4] = { 0 };
	struct fi_cq_tagged_entry e;
	struct fid_ep *alias;
	struct iovec iov = { out, 4 };

	cr_assert_eq(fi_ep_alias(p.ep[0], &alias, FI_TRANSMIT | FI_TRIGGER), 0);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(
			fi_trecv(p.ep[1], in[i], 4, NULL, FI_ADDR_UNSPEC, (uint64_t)i, 0, NULL), 0);
	cr_assert_eq(fi_tsend(alias, out, 4, NULL, p.addr[1], 0, &ctx[0]), 0);
	cr_assert_eq(fi_tsenddata(alias, out, 4, NULL, 77, p.addr[1], 1, &ctx[1]), 0);
	cr_assert_eq(fi_tsendv(alias, &iov, NULL, 1, p.addr[1], 2, &ctx[2]), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(alias, out, 4, p.addr[1], 3)), 0,
		     "injected ones have no context");
	cr_assert_eq(ofi_pair_read(&p, 1, &e), 1);
	cr_expect_eq(e.tag, 3);
	quiet();
	cr_assert_eq(fi_cntr_add(cntr, 1), 0);
	for (uint64_t tag = 0; tag < 3; tag++) {
		expect(&ctx[tag]);
		cr_assert_eq(ofi_pair_read(&p, 1, &e), 1);
		cr_expect_eq(e.tag, tag);
		cr_expect_eq(e.data, tag == 1 ? 77 : 0);
		cr_expect_eq(memcmp(in[tag], out, 4), 0);
	}
	cr_assert_eq(fi_close(&alias->fid), 0);
}

Test(cpr_trigger, an_alias_triggers_messages_reads_and_atomics)
{
	uint64_t word = 40, old = 1, got = 0, in = 0;
	struct fi_cq_tagged_entry e;
	struct fid_ep *alias;

	target[0] = 2;
	cr_assert_eq(fi_ep_alias(p.ep[0], &alias, FI_TRANSMIT | FI_TRIGGER), 0);
	cr_assert_eq(fi_recv(p.ep[1], &in, 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	cr_assert_eq(fi_fetch_atomic(alias, &word, 1, NULL, &old, NULL, p.addr[1], 0, KEY,
				     FI_UINT64, FI_SUM, &ctx[0]),
		     0);
	cr_assert_eq(fi_read(alias, &got, 8, NULL, p.addr[1], 0, KEY, &ctx[1]), 0);
	cr_assert_eq(fi_send(alias, &word, 8, NULL, p.addr[1], &ctx[2]), 0);
	quiet();
	cr_expect_eq(target[0], 2);
	cr_assert_eq(fi_cntr_add(cntr, 1), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(ofi_pair_read(&p, 0, &e), 1);
	cr_assert_eq(ofi_pair_read(&p, 1, &e), 1);
	cr_expect_eq(target[0], 42);
	cr_expect_eq(old, 2);
	cr_expect_eq(in, 40);
	cr_expect(got == 2 || got == 42, "%lu", got);
	cr_assert_eq(fi_close(&alias->fid), 0);
}

Test(cpr_trigger, a_counter_may_be_closed_after_its_due_transfer_was_cancelled)
{
	uint64_t word = 1;

	cr_assert_eq(write_word(0, &word, 0), 0);
	cr_assert_eq(fi_cntr_add(cntr, 1), 0);
	cr_assert_eq(fi_cancel(&p.ep[0]->fid, &ctx[0]), 0);
	cr_assert_eq(fi_close(&cntr->fid), 0);
	cntr = NULL;
	expect_error(&ctx[0], FI_ECANCELED);
	quiet();
}

Test(cpr_trigger, a_waiting_transfer_is_cancelled_once)
{
	uint64_t word = 6;

	cr_assert_eq(write_word(0, &word, 0), 0);
	cr_expect_eq(fi_cancel(&p.ep[0]->fid, &ctx[0]), 0);
	expect_error(&ctx[0], FI_ECANCELED);
	cr_expect_eq(fi_cancel(&p.ep[0]->fid, &ctx[0]), -FI_ENOENT);
	cr_assert_eq(fi_cntr_add(cntr, 1), 0);
	quiet();
	cr_expect_eq(target[0], 0);
}

Test(cpr_trigger, a_transfer_that_cannot_be_posted_is_a_failed_completion)
{
	uint64_t word = 7;
	struct iovec iov = { &word, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = 999, .context = &ctx[0] };

	cr_assert_eq(fi_sendmsg(p.ep[0], &msg, FI_TRIGGER | FI_COMPLETION), 0);
	cr_assert_eq(fi_cntr_add(cntr, 1), 0);
	expect_error(&ctx[0], FI_EINVAL);
	cr_expect_eq(fi_cntr_readerr(p.tx_cntr[0]), 1);
}

Test(cpr_trigger, a_counter_with_waiting_transfers_cannot_be_closed_but_an_endpoint_can)
{
	uint64_t word = 8;

	cr_assert_eq(write_word(0, &word, 0), 0);
	cr_expect_eq(fi_close(&cntr->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&p.ep[0]->fid), 0);
	p.ep[0] = NULL;
	cr_expect_eq(fi_cntr_add(cntr, 1), 0);
	cr_expect_eq(fi_close(&cntr->fid), 0);
	cntr = NULL;
	cr_expect_eq(target[0], 0);
}

Test(cpr_trigger, invalid_transfers_are_refused_at_once)
{
	struct ofi_options opts = { .caps = FI_MSG | FI_TAGGED };
	uint64_t word = 9;
	struct iovec iov = { &word, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = p.addr[1] };
	struct ofi_pair other;

	cr_expect_eq(fi_sendmsg(p.ep[0], &msg, FI_TRIGGER), -FI_EINVAL, "no context");
	cr_expect_eq(write_word(0, &word, FI_INJECT), -FI_EBADFLAGS);
	ctx[0].event_type = FI_TRIGGER_XPU;
	cr_expect_eq(write_word(0, &word, 0), -FI_ENOSYS);
	ctx[1].trigger.threshold.cntr = NULL;
	cr_expect_eq(write_word(1, &word, 0), -FI_EINVAL);
	msg.context = &ctx[2];
	cr_expect_eq(fi_recvmsg(p.ep[0], &msg, FI_TRIGGER), -FI_EBADFLAGS);
	ofi_pair_open(&other, &opts);
	msg.addr = other.addr[1];
	cr_expect_eq(fi_sendmsg(other.ep[0], &msg, FI_TRIGGER), -FI_EBADFLAGS, "not requested");
	ofi_pair_close(&other);
}
