/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Poll sets (fi_poll(3)): two endpoints with queues and counters of their own, and a set. */
#include <criterion/criterion.h>
#include <string.h>

#include "ofi/queue/cpr_cq.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/bits.h"
#include "util/clock.h"
#include "util/fi_old.h"

static struct ofi_pair p;
static struct fid_poll *set;

static void open_pair(uint64_t bind_flags)
{
	struct ofi_options opts = { .counters = true,
				    .threading = FI_THREAD_SAFE,
				    .bind_flags = bind_flags };
	struct fi_poll_attr attr = { 0 };

	ofi_pair_open(&p, &opts);
	cr_assert_eq(fi_poll_open(p.domain, &attr, &set), 0);
}

static void send_one(void)
{
	static char out[5] = "hello", in[16];

	cr_assert_eq(fi_trecv(p.ep[1], in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[0], out, 5, p.addr[1], 1)), 0);
}

Test(cpr_poll, a_poll_set_reports_members_with_events)
{
	void *ctx[4];
	int cnt;

	open_pair(FI_SELECTIVE_COMPLETION);
	cr_expect_eq(fi_poll_add(set, &p.cq[0]->fid, 0), 0);
	cr_expect_eq(fi_poll_add(set, &p.tx_cntr[0]->fid, 0), 0);
	cr_expect_eq(fi_poll_add(set, &p.av->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_poll(set, ctx, 4), 0);
	fi_cntr_add(p.tx_cntr[0], 1);
	cr_expect_eq(fi_poll(set, ctx, 4), 0, "changes by the user are not reported");
	send_one();
	while (!(cnt = fi_poll(set, ctx, 4))) /* over a device, when the message is at the peer */
		;
	cr_expect_eq(cnt, 1);
	cr_expect_null(ctx[0], "the counter's context");
	cr_expect_eq(fi_poll(set, ctx, 4), 0);
	cr_expect_eq(fi_close(&p.domain->fid), -FI_EBUSY);
	cr_expect_eq(fi_poll_del(set, &p.tx_cntr[0]->fid, 0), 0);
	cr_expect_eq(fi_poll_del(set, &p.tx_cntr[0]->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_close(&set->fid), -FI_EBUSY);
	cr_expect_eq(fi_poll_del(set, &p.cq[0]->fid, 0), 0);
	cr_expect_eq(fi_close(&set->fid), 0);
	ofi_pair_close(&p);
}

/* Each read of such a queue reports the loss, also when it is empty. */
Test(cpr_poll, a_queue_that_has_lost_completions_is_reported)
{
	struct core_cq *cq;
	void *ctx;

	open_pair(0);
	cq = &UTIL_CONTAINER_OF(p.cq[0], struct cpr_cq, fid)->core;
	cr_expect_eq(fi_poll_add(set, &p.cq[0]->fid, 0), 0);
	cr_expect_eq(fi_poll(set, &ctx, 1), 0);
	cq->overrun = true;
	cr_expect_eq(fi_poll(set, &ctx, 1), 1);
	cr_expect_eq(ctx, p.cq[0]->fid.context);
	cr_expect_eq(fi_poll_del(set, &p.cq[0]->fid, 0), 0);
	cr_expect_eq(fi_close(&set->fid), 0);
	ofi_pair_close(&p);
}

Test(cpr_poll, a_poll_set_makes_progress_of_all_pdoms_of_its_members)
{
	void *found[2];
	char in[2];
	int i, cnt;

	open_pair(0);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(fi_poll_add(set, &p.cq[i]->fid, 0), 0);
		cr_assert_eq(fi_trecv(p.ep[i], &in[i], 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	}
	cr_expect_eq(fi_poll(set, found, 2), 0);
	for (i = 0; i < 2; i++)
		cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[i], "z", 1, p.addr[!i], 1)), 0);
	do {
		cnt = fi_poll(set, found, 2);
		cr_assert_geq(cnt, 0);
	} while (cnt < 2);
	cr_expect((found[0] == &p.cq[0] && found[1] == &p.cq[1]));
	for (i = 0; i < 2; i++)
		cr_expect_eq(fi_poll_del(set, &p.cq[i]->fid, 0), 0);
	cr_expect_eq(fi_close(&set->fid), 0);
	ofi_pair_close(&p);
}

Test(cpr_poll, a_member_added_twice_is_removed_twice)
{
	open_pair(0);
	cr_expect_eq(fi_poll_add(set, &p.cq[0]->fid, 0), 0);
	cr_expect_eq(fi_poll_add(set, &p.cq[0]->fid, 0), 0);
	cr_expect_eq(fi_poll_del(set, &p.cq[0]->fid, 0), 0);
	cr_expect_eq(fi_close(&set->fid), -FI_EBUSY);
	cr_expect_eq(fi_poll_del(set, &p.cq[0]->fid, 0), 0);
	cr_expect_eq(fi_poll_del(set, &p.cq[0]->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_close(&set->fid), 0);
	ofi_pair_close(&p);
}

Test(cpr_poll, no_more_members_are_reported_than_fit)
{
	void *ctx[3] = { NULL, &set, &set };
	struct fi_cq_tagged_entry e;
	int i, cnt;

	open_pair(0);
	for (i = 0; i < 3; i++)
		cr_assert_eq(fi_poll_add(set, &p.cq[1]->fid, 0), 0);
	send_one();
	while (!(cnt = fi_poll(set, ctx, 1)))
		fi_cntr_read(p.tx_cntr[0]);
	cr_expect_eq(cnt, 1);
	cr_expect_eq(ctx[0], p.cq[1]->fid.context);
	cr_expect(ctx[1] == &set && ctx[2] == &set, "nothing is written beyond");
	cr_expect_eq(fi_poll(set, NULL, 0), 0);
	cr_expect_eq(ofi_read(p.cq[1], &e), 1);
	for (i = 0; i < 3; i++)
		cr_expect_eq(fi_poll_del(set, &p.cq[1]->fid, 0), 0);
	cr_expect_eq(fi_close(&set->fid), 0);
	ofi_pair_close(&p);
}

Test(cpr_poll, objects_of_another_domain_are_refused)
{
	struct ofi_options opts = { .counters = true, .threading = FI_THREAD_SAFE };
	struct ofi_pair other;

	open_pair(0);
	ofi_pair_open(&other, &opts);
	cr_expect_eq(fi_poll_add(set, &other.cq[0]->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_poll_add(set, &other.tx_cntr[0]->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_close(&set->fid), 0);
	ofi_pair_close(&other);
	ofi_pair_close(&p);
}

/*
 * A reply is needed from an endpoint with queues that are not read: polls that find nothing make
 * its progress.
 */
Test(cpr_poll, an_idle_poll_makes_progress_of_unread_pdoms, .timeout = 300)
{
	struct ofi_options opts = { .threading = FI_THREAD_SAFE };
	struct iovec iov = { .iov_base = "hello", .iov_len = 5 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .tag = 1 };
	uint64_t until = util_clock_ns() + 60 * UTIL_NS_PER_S;
	struct fi_cq_tagged_entry e;
	struct ofi_pair far;
	char name[64], in[16];
	size_t len = sizeof(name);
	void *ctx[1];

	open_pair(0);
	ofi_pair_open(&far, &opts);
	cr_assert_eq(fi_poll_add(set, &p.cq[0]->fid, 0), 0);
	cr_assert_eq(fi_trecv(p.ep[1], in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(fi_getname(&p.ep[1]->fid, name, &len), 0);
	cr_assert_eq(fi_av_insert(far.av, name, 1, &msg.addr, 0, NULL), 1);
	cr_assert_eq(OFI_RETRY(&far, fi_tsendmsg(far.ep[0], &msg, FI_DELIVERY_COMPLETE)), 0);
	while (fi_cq_read(far.cq[0], &e, 1) == -FI_EAGAIN && util_clock_ns() < until)
		cr_assert_eq(fi_poll(set, ctx, 1), 0);
	cr_expect_lt(util_clock_ns(), until, "no reply");
	cr_expect_eq(memcmp(in, "hello", 5), 0);
	cr_expect_eq(fi_poll_del(set, &p.cq[0]->fid, 0), 0);
	cr_expect_eq(fi_close(&set->fid), 0);
	ofi_pair_close(&far);
	ofi_pair_close(&p);
}
