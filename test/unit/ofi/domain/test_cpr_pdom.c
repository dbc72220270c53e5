/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Assignment of endpoints to progress domains, and transfers across them. */
#include "ofi/base/cpr_pdom.h"

#include <criterion/criterion.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/queue/cpr_cntr.h"
#include "ofi/queue/cpr_cq.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/bits.h"

#define KEY 5
#define LEN (200u << 10)

static struct ofi_pair p;

static void open_pair(enum fi_threading threading, enum fi_progress progress, enum fi_wait_obj obj)
{
	struct ofi_options opts = {
		.threading = threading, .progress = progress, .wait_obj = obj, .counters = true
	};

	ofi_pair_open(&p, &opts);
}

static void setup(void)
{
	open_pair(FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_WAIT_NONE);
}

static void teardown(void)
{
	ofi_pair_close(&p);
}

TestSuite(cpr_pdom, .init = setup, .fini = teardown, .timeout = 200);
TestSuite(cpr_pdom_none, .timeout = 200);

static struct core_dom *dom_of(struct fid_ep *ep)
{
	return cpr_ep_of(ep)->dom;
}

static struct cpr_pdom *pdom_of(struct fid_cq *cq)
{
	return UTIL_CONTAINER_OF(cq, struct cpr_cq, fid)->member.pdom;
}

static bool are_merged(struct fid_ep *a, struct fid_ep *b)
{
	return core_dom_bias(dom_of(a)) == core_dom_bias(dom_of(b));
}

static bool is_main(struct fid_cq *cq)
{
	return core_dom_bias(&pdom_of(cq)->core) ==
	       core_dom_bias(&UTIL_CONTAINER_OF(p.domain, struct cpr_domain, fid)->main.core);
}

/* The context, which is in `main`, writes to its queue on behalf of no endpoint. */
Test(cpr_pdom, the_queue_of_a_shared_context_is_in_main)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_ep *srx[2], *ep;
	struct fid_cq *cq;

	for (int i = 0; i < 2; i++)
		cr_assert_eq(fi_srx_context(p.domain, p.info->rx_attr, &srx[i], NULL), 0);
	cr_assert_not(is_main(p.cq[1]));
	cr_assert_eq(fi_ep_bind(srx[0], &p.cq[1]->fid, FI_RECV), 0);
	cr_expect(is_main(p.cq[1]), "its endpoint was there first");
	cr_assert_eq(fi_cq_open(p.domain, &attr, &cq, NULL), 0);
	cr_assert_eq(fi_ep_bind(srx[1], &cq->fid, FI_RECV), 0);
	ep = ofi_pair_new_ep(&p, cq, cq);
	cr_expect(is_main(cq), "the context was there first");
	cr_expect_eq(fi_close(&ep->fid), 0);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(fi_close(&srx[i]->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
}

static unsigned pdom_cnt(void)
{
	return cpr_domain_of(p.domain)->pdom_cnt;
}

static struct fid_cq *new_cq(enum fi_wait_obj obj)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = obj };
	struct fid_cq *cq;

	cr_assert_eq(fi_cq_open(p.domain, &attr, &cq, NULL), 0);
	return cq;
}

static fi_addr_t insert(struct fid_ep *ep)
{
	char name[64];
	size_t len = sizeof(name);
	fi_addr_t addr;

	cr_assert_eq(fi_getname(&ep->fid, name, &len), 0);
	cr_assert_eq(fi_av_insert(p.av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

/* Sends from ep[0] to ep[1] and waits for both completions. */
static void exchange(size_t len)
{
	struct fi_cq_tagged_entry e;
	char *out = malloc(len), *in = calloc(1, len);

	memset(out, 'x', len);
	cr_assert_eq(fi_trecv(p.ep[1], in, len, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], out, len, NULL, p.addr[1], 1, NULL)), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_eq(e.len, len);
	cr_expect_eq(memcmp(in, out, len), 0);
	cr_assert_eq(ofi_read(p.cq[0], &e), 1);
	free(out);
	free(in);
}

Test(cpr_pdom, an_endpoint_with_its_own_queues_has_its_own_pdom)
{
	cr_expect_neq(dom_of(p.ep[0]), dom_of(p.ep[1]));
	cr_expect_not(are_merged(p.ep[0], p.ep[1]));
	cr_expect_eq(&pdom_of(p.cq[0])->core, dom_of(p.ep[0]));
	cr_expect_eq(&pdom_of(p.cq[1])->core, dom_of(p.ep[1]));
	exchange(8);
	exchange(LEN);
}

static bool splits(enum fi_threading threading, enum fi_progress progress, enum fi_wait_obj obj)
{
	bool two;

	open_pair(threading, progress, obj);
	two = dom_of(p.ep[0]) != dom_of(p.ep[1]);
	exchange(8);
	ofi_pair_close(&p);
	return two;
}

Test(cpr_pdom_none, one_thread_has_one_pdom)
{
	cr_expect(splits(FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_WAIT_NONE));
	cr_expect(splits(FI_THREAD_FID, FI_PROGRESS_MANUAL, FI_WAIT_NONE));
	cr_expect(splits(FI_THREAD_ENDPOINT, FI_PROGRESS_MANUAL, FI_WAIT_NONE));
	cr_expect(splits(FI_THREAD_COMPLETION, FI_PROGRESS_MANUAL, FI_WAIT_NONE));
	cr_expect_not(splits(FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, FI_WAIT_NONE));
	cr_expect_not(splits(FI_THREAD_SAFE, FI_PROGRESS_AUTO, FI_WAIT_NONE));
	cr_expect(splits(FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_WAIT_FD));
	cr_expect(splits(FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_WAIT_YIELD));
}

Test(cpr_pdom, endpoints_that_share_a_queue_share_a_pdom)
{
	struct fid_ep *third = ofi_pair_new_ep(&p, p.cq[1], p.cq[1]);

	cr_expect_eq(dom_of(third), dom_of(p.ep[1]));
	cr_expect_not(are_merged(p.ep[0], p.ep[1]));
	cr_expect_eq(fi_close(&third->fid), 0);
}

/*
 * A third endpoint writes into the queues of two progress domains: each queue makes the progress of
 * both.
 */
Test(cpr_pdom, an_endpoint_with_queues_in_two_pdoms_merges_them)
{
	struct fid_ep *third = ofi_pair_new_ep(&p, p.cq[1], p.cq[0]);
	fi_addr_t to = insert(third);
	struct fi_cq_tagged_entry e;
	char in[8], *big = calloc(1, LEN), *room = malloc(LEN);

	cr_expect(are_merged(p.ep[0], p.ep[1]));
	cr_expect(are_merged(p.ep[0], third));
	cr_assert_eq(fi_trecv(third, in, 8, NULL, FI_ADDR_UNSPEC, 2, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[1], "allied.", 8, to, 2)), 0);
	cr_assert_eq(ofi_read(p.cq[0], &e), 1);
	cr_expect_str_eq(in, "allied.");
	/* Only cq[0] is read, which makes the progress of ep[1] and its receive. */
	cr_assert_eq(fi_trecv(p.ep[1], room, LEN, NULL, FI_ADDR_UNSPEC, 3, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], big, LEN, NULL, p.addr[1], 3, NULL)), 0);
	cr_assert_eq(ofi_read(p.cq[0], &e), 1);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_eq(fi_close(&third->fid), 0);
	exchange(8);
	free(big);
	free(room);
}

Test(cpr_pdom, chains_of_merged_pdoms_are_merged)
{
	struct fid_cq *cq[4];
	struct fid_ep *ep[4], *cross[3];
	int i;

	for (i = 0; i < 4; i++) {
		cq[i] = new_cq(FI_WAIT_NONE);
		ep[i] = ofi_pair_new_ep(&p, cq[i], cq[i]);
	}
	cross[0] = ofi_pair_new_ep(&p, cq[3], cq[2]);
	cross[1] = ofi_pair_new_ep(&p, cq[0], cq[1]);
	cr_expect_not(are_merged(ep[0], ep[2]));
	cross[2] = ofi_pair_new_ep(&p, cq[2], cq[0]);
	for (i = 1; i < 4; i++)
		cr_expect(are_merged(ep[0], ep[i]));
	cr_expect_not(are_merged(ep[0], p.ep[0]));
	for (i = 0; i < 3; i++)
		cr_expect_eq(fi_close(&cross[i]->fid), 0);
	for (i = 0; i < 4; i++) {
		cr_expect_eq(fi_close(&ep[i]->fid), 0);
		cr_expect_eq(fi_close(&cq[i]->fid), 0);
	}
	exchange(8);
}

/* A read of an event queue makes the progress of `main`. */
Test(cpr_pdom, binding_an_event_queue_merges_with_main_even_late)
{
	struct fi_eq_attr attr = { 0 };
	struct fid_eq *eq;

	cr_assert_eq(fi_eq_open(p.fabric, &attr, &eq, NULL), 0);
	cr_expect_not(are_merged(p.ep[0], p.ep[1]));
	cr_assert_eq(fi_ep_bind(p.ep[1], &eq->fid, 0), 0);
	cr_expect(are_merged(p.ep[0], p.ep[1]));
	exchange(LEN);
	cr_expect_eq(fi_close(&p.ep[1]->fid), 0);
	p.ep[1] = NULL;
	cr_expect_eq(fi_close(&eq->fid), 0);
}

Test(cpr_pdom, a_wait_object_follows_its_endpoint)
{
	struct fid_cq *cq = new_cq(FI_WAIT_FD);
	struct fid_ep *third = ofi_pair_new_ep(&p, cq, p.cq[1]);

	cr_expect_eq(dom_of(third), dom_of(p.ep[1]));
	cr_expect_eq(&pdom_of(cq)->core, dom_of(p.ep[1]));
	cr_expect_not(are_merged(third, p.ep[0]));
	exchange(8);
	cr_expect_eq(fi_close(&third->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
}

Test(cpr_pdom, sleepers_in_several_pdoms_are_woken)
{
	struct fid_cq *cq = new_cq(FI_WAIT_FD);
	struct fid_ep *third = ofi_pair_new_ep(&p, cq, p.cq[1]);
	struct fi_cq_tagged_entry e;

	cr_expect_eq(fi_cq_sread(cq, &e, 1, NULL, 5), -FI_EAGAIN);
	cr_assert_eq(OFI_RETRY(&p, fi_tsend(third, "", 1, NULL, p.addr[0], 9, NULL)), 0);
	cr_expect_eq(fi_cq_sread(cq, &e, 1, NULL, -1), 1);
	cr_expect_eq(fi_close(&third->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
}

Test(cpr_pdom, an_empty_pdom_is_used_again)
{
	struct fid_cq *cq;
	struct fid_ep *ep;
	int i;

	for (i = 0; i < 2 * (int)CPR_PDOMS_MAX; i++) {
		cq = new_cq(FI_WAIT_NONE);
		ep = ofi_pair_new_ep(&p, cq, cq);
		cr_expect_not(are_merged(ep, p.ep[0]));
		cr_expect_eq(fi_close(&ep->fid), 0);
		cr_expect_eq(fi_close(&cq->fid), 0);
	}
	cr_expect_eq(pdom_cnt(), 2, "%u", pdom_cnt());
}

Test(cpr_pdom, endpoints_beyond_the_limit_are_in_main)
{
	enum { CNT = CPR_PDOMS_MAX + 2 };
	struct fid_cq *cq[CNT];
	struct fid_ep *ep[CNT];
	struct fi_cq_tagged_entry e;
	char in[2];
	int i;

	for (i = 0; i < CNT; i++) {
		cq[i] = new_cq(FI_WAIT_NONE);
		ep[i] = ofi_pair_new_ep(&p, cq[i], cq[i]);
	}
	cr_expect_eq(pdom_cnt(), CPR_PDOMS_MAX);
	cr_expect_eq(dom_of(ep[CNT - 1]), dom_of(p.ep[0]));
	cr_expect_eq(dom_of(ep[CNT - 2]), dom_of(p.ep[0]));
	cr_assert_eq(fi_trecv(ep[CNT - 1], in, 2, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[1], "y", 2, insert(ep[CNT - 1]), 1)), 0);
	cr_assert_eq(ofi_read(cq[CNT - 1], &e), 1);
	for (i = 0; i < CNT; i++) {
		cr_expect_eq(fi_close(&ep[i]->fid), 0);
		cr_expect_eq(fi_close(&cq[i]->fid), 0);
	}
}

/*
 * The receiver is in another progress domain and its queue is not read: the waiting thread makes
 * its progress.
 */
Test(cpr_pdom, an_idle_reader_makes_progress_of_unread_pdoms)
{
	struct fi_cq_tagged_entry e;
	char *out = calloc(1, LEN), *in = malloc(LEN);

	cr_assert_eq(fi_trecv(p.ep[1], in, LEN, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], out, LEN, NULL, p.addr[1], 1, NULL)), 0);
	cr_expect_eq(ofi_read(p.cq[0], &e), 1);
	cr_assert_eq(fi_trecv(p.ep[1], in, LEN, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], out, LEN, NULL, p.addr[1], 1, NULL)), 0);
	cr_expect_eq(fi_cntr_wait(p.tx_cntr[0], 2, 60000), 0);
	cr_expect_eq(ofi_read(p.cq[0], &e), 1);
	free(out);
	free(in);
}

/* fi_close waits for a message that another progress domain of this thread must receive. */
Test(cpr_pdom, accepted_messages_arrive_without_reads_of_the_receiver)
{
	struct fi_cq_tagged_entry e;
	char *out = calloc(1, LEN), *in = malloc(LEN);

	exchange(8); /* connects: messages that wait for a connection are not waited for */
	cr_assert_eq(fi_trecv(p.ep[1], in, LEN, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], out, LEN, NULL, p.addr[1], 1, NULL)), 0);
	cr_expect_eq(fi_close(&p.ep[0]->fid), 0);
	p.ep[0] = NULL;
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_eq(e.len, LEN);
	free(out);
	free(in);
}

Test(cpr_pdom, a_region_is_reached_through_every_pdom)
{
	uint64_t *target = calloc(1, LEN), *local = calloc(1, LEN);
	struct fi_cq_tagged_entry e;
	struct fid_mr *mr;
	int i;

	cr_assert_eq(fi_mr_reg(p.domain, target, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
			       &mr, NULL),
		     0);
	for (i = 0; i < 2; i++) {
		local[0] = (uint64_t)i + 1;
		local[LEN / 8 - 1] = (uint64_t)i + 7;
		cr_assert_eq(OFI_RETRY(&p, fi_write(p.ep[i], local, LEN, NULL, p.addr[!i], 0, KEY,
						    NULL)),
			     0);
		cr_assert_eq(ofi_read(p.cq[i], &e), 1);
		cr_expect_eq(memcmp(target, local, LEN), 0);
		cr_assert_eq(OFI_RETRY(&p, fi_atomic(p.ep[i], local, 1, NULL, p.addr[!i], 0, KEY,
						     FI_UINT64, FI_SUM, NULL)),
			     0);
		cr_assert_eq(ofi_read(p.cq[i], &e), 1);
		cr_expect_eq(target[0], 2 * ((uint64_t)i + 1));
		cr_assert_eq(
			OFI_RETRY(&p, fi_read(p.ep[i], local, LEN, NULL, p.addr[!i], 0, KEY, NULL)),
			0);
		cr_assert_eq(ofi_read(p.cq[i], &e), 1);
		cr_expect_eq(memcmp(target, local, LEN), 0);
	}
	cr_expect_eq(fi_close(&mr->fid), 0);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(
			OFI_RETRY(&p, fi_write(p.ep[i], local, 8, NULL, p.addr[!i], 0, KEY, NULL)),
			0);
		cr_expect_eq(ofi_read(p.cq[i], &e), -FI_EAVAIL);
		cr_expect_eq(fi_cq_readerr(p.cq[i], &(struct fi_cq_err_entry){ 0 }, 0), 1);
	}
	free(target);
	free(local);
}

/* Peers of any endpoint count there, so there is one lock from then on, for later endpoints too. */
Test(cpr_pdom, a_counter_of_a_region_merges_all_pdoms)
{
	struct fid_cq *cq = new_cq(FI_WAIT_NONE);
	struct fid_cntr *cntr;
	struct fid_ep *third;
	struct fid_mr *mr;
	uint64_t word = 0;

	cr_assert_eq(fi_cntr_open(p.domain, NULL, &cntr, NULL), 0);
	cr_assert_eq(fi_mr_reg(p.domain, &word, 8, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL), 0);
	cr_assert_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	third = ofi_pair_new_ep(&p, cq, cq);
	cr_expect(are_merged(p.ep[0], p.ep[1]));
	cr_expect(are_merged(p.ep[0], third));
	cr_assert_eq(OFI_RETRY(&p, fi_inject_write(p.ep[0], "12345678", 8, p.addr[1], 0, KEY)), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_inject_write(p.ep[1], "12345678", 8, p.addr[0], 0, KEY)), 0);
	cr_expect_eq(fi_cntr_wait(cntr, 2, 60000), 0);
	cr_expect_eq(fi_close(&mr->fid), 0);
	cr_expect_eq(fi_close(&third->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
	cr_expect_eq(fi_close(&cntr->fid), 0);
}

/* ep[1] sends when an operation of ep[0] is counted. */
Test(cpr_pdom, a_trigger_merges_the_pdoms_of_counter_and_endpoint)
{
	struct fi_triggered_context ctx = {
		.event_type = FI_TRIGGER_THRESHOLD,
		.trigger.threshold = { .cntr = p.rx_cntr[0], .threshold = 1 },
	};
	struct iovec iov = { "go", 3 };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = p.addr[1], .tag = 4, .context = &ctx
	};
	struct fi_cq_tagged_entry e;
	char in[2][3];

	cr_assert_eq(fi_trecv(p.ep[0], in[0], 3, NULL, FI_ADDR_UNSPEC, 3, 0, NULL), 0);
	cr_assert_eq(fi_trecv(p.ep[1], in[1], 3, NULL, FI_ADDR_UNSPEC, 4, 0, NULL), 0);
	cr_assert_eq(fi_tsendmsg(p.ep[1], &msg, FI_TRIGGER), 0);
	cr_expect(are_merged(p.ep[0], p.ep[1]));
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[1], "on", 3, p.addr[0], 3)), 0);
	cr_assert_eq(ofi_read(p.cq[0], &e), 1);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_str_eq(in[1], "go");
}

Test(cpr_pdom, an_unassigned_counter_enters_the_pdom_of_its_trigger)
{
	struct fi_triggered_context ctx = { .event_type = FI_TRIGGER_THRESHOLD };
	struct iovec iov = { "go", 3 };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = p.addr[0], .tag = 4, .context = &ctx
	};
	struct fi_cq_tagged_entry e;
	struct fid_cntr *cntr;
	char in[3];

	cr_assert_eq(fi_cntr_open(p.domain, NULL, &cntr, NULL), 0);
	ctx.trigger.threshold.cntr = cntr;
	ctx.trigger.threshold.threshold = 2;
	cr_assert_eq(fi_trecv(p.ep[0], in, 3, NULL, FI_ADDR_UNSPEC, 4, 0, NULL), 0);
	cr_assert_eq(fi_tsendmsg(p.ep[1], &msg, FI_TRIGGER), 0);
	cr_expect_not(are_merged(p.ep[0], p.ep[1]));
	cr_expect_eq(&UTIL_CONTAINER_OF(cntr, struct cpr_cntr, fid)->member.pdom->core,
		     dom_of(p.ep[1]));
	cr_assert_eq(fi_cntr_add(cntr, 2), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_assert_eq(ofi_read(p.cq[0], &e), 1);
	cr_expect_str_eq(in, "go");
	cr_expect_eq(fi_close(&cntr->fid), 0);
}

/* The queue was read before its first endpoint: the reader follows it. */
Test(cpr_pdom, a_queue_may_be_read_before_it_has_a_pdom)
{
	struct fid_cq *cq = new_cq(FI_WAIT_NONE);
	struct fi_cq_tagged_entry e;
	struct fid_ep *ep;

	cr_expect_eq(fi_cq_read(cq, &e, 1), -FI_EAGAIN);
	cr_expect_eq(pdom_of(cq), &cpr_domain_of(p.domain)->main);
	ep = ofi_pair_new_ep(&p, cq, cq);
	cr_expect_neq(pdom_of(cq), &cpr_domain_of(p.domain)->main);
	cr_assert_eq(OFI_RETRY(&p, fi_tsend(ep, "", 1, NULL, p.addr[0], 1, NULL)), 0);
	cr_expect_eq(ofi_read(cq, &e), 1);
	cr_expect_eq(fi_close(&ep->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
}
