/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress without reads: the thread of FI_PROGRESS_AUTO receives messages; a transfer sends
 * deferred batches while another thread sleeps.
 */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/param.h"

Test(cpr_progress, a_message_is_received_while_the_application_sleeps)
{
	struct ofi_options opts = { .progress = FI_PROGRESS_AUTO };
	struct fi_cq_tagged_entry e;
	volatile char in[8] = "";
	struct ofi_pair p;
	int ms;

	ofi_pair_open(&p, &opts);
	cr_assert_eq(fi_trecv(p.ep[1], (void *)in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	/* A queued send: there is no connection yet. */
	cr_assert_eq(fi_tsend(p.ep[0], "abc", 4, NULL, p.addr[1], 1, NULL), 0);
	for (ms = 0; ms < 60000 && !in[0]; ms++)
		usleep(1000);
	cr_expect_str_eq((char *)in, "abc");
	cr_expect_eq(ofi_read(p.cq[1], &e), 1);
	ofi_pair_close(&p);
}

Test(cpr_progress, an_open_domain_is_stopped_by_cleanup)
{
	struct ofi_options opts = { .progress = FI_PROGRESS_AUTO };
	struct ofi_pair p;

	ofi_domain_open(&p, &opts);
	cr_expect(cpr_domain_of(p.domain)->progress.running);
	ofi_provider()->cleanup();
	cr_expect_not(cpr_domain_of(p.domain)->progress.running);
	ofi_pair_close(&p);
}

/* Assertion for threads: Criterion's work in the main thread only. */
#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

/* Kinds of waiting in p. None makes progress before an event arrives. */
enum watcher {
	WATCHER_THREAD,     /* FI_PROGRESS_AUTO */
	WATCHER_SREAD,      /* another thread, on another queue of a merged progress domain */
	WATCHER_DESCRIPTOR, /* fi_trywait allowed a sleep on the descriptor */
	WATCHER_USER,       /* none; FI_COPYRPC_HOLD=0: transfers never wait for a later call */
	WATCHER_CNT
};

static void *sleep_in_sread(void *cq)
{
	struct fi_cq_tagged_entry e;

	MUST(fi_cq_sread(cq, &e, 1, NULL, -1) == -FI_EAGAIN);
	return NULL;
}

static fi_addr_t insert_addr(struct ofi_pair *p, struct fid_ep *ep)
{
	struct sockaddr_in sin;
	size_t len = sizeof(sin);
	fi_addr_t addr;

	cr_assert_eq(fi_getname(&ep->fid, &sin, &len), 0);
	cr_assert_eq(fi_av_insert(p->av, &sin, 1, &addr, 0, NULL), 1);
	return addr;
}

static void expect_numbers(struct fid_cq *cq, const int *in, int cnt)
{
	struct fi_cq_tagged_entry e;
	int i;

	for (i = 0; i < cnt; i++)
		cr_assert_eq(ofi_read(cq, &e), 1, "message %d has not left", i);
	for (i = 0; i < cnt; i++)
		cr_expect_eq(in[i], i);
}

/* Connects p and q and lets p's first message be received. */
static fi_addr_t connect_pairs(struct ofi_pair *p, struct ofi_pair *q)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t to = insert_addr(p, q->ep[0]);
	int zero = 0, in = 1;

	cr_assert_eq(fi_trecv(q->ep[0], &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(fi_tsend(p->ep[0], &zero, sizeof(zero), NULL, to, 1, NULL), 0);
	cr_assert_eq(ofi_read(p->cq[0], &e), 1);
	expect_numbers(q->cq[0], &in, 1);
	return to;
}

static void watch(struct ofi_pair *p, enum watcher watcher, pthread_t *thread)
{
	struct fid *fids[1] = { &p->cq[1]->fid };

	if (watcher == WATCHER_SREAD)
		pthread_create(thread, NULL, sleep_in_sread, p->cq[1]);
	while (watcher == WATCHER_DESCRIPTOR && fi_trywait(p->fabric, fids, 1) == -FI_EAGAIN)
		;
	usleep(30000); /* until it sleeps; if it does not sleep yet, the test cannot fail */
}

/* Opens an endpoint with the queues of both others: their progress domains are merged. */
static void merge_pdoms(struct ofi_pair *p)
{
	struct fid_ep *ep;

	cr_assert_eq(fi_endpoint(p->domain, p->info, &ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &p->av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &p->cq[0]->fid, FI_TRANSMIT), 0);
	cr_assert_eq(fi_ep_bind(ep, &p->cq[1]->fid, FI_RECV), 0);
	cr_assert_eq(fi_enable(ep), 0);
	cr_assert_eq(fi_close(&ep->fid), 0);
}

/* The receiver is idle: messages after the first find it in flight and are deferred. */
static void send_while_watched(enum watcher watcher)
{
	struct ofi_options opts = { .progress = watcher == WATCHER_THREAD ? FI_PROGRESS_AUTO
									  : FI_PROGRESS_MANUAL,
				    .threading = FI_THREAD_SAFE,
				    .wait_obj = FI_WAIT_FD };
	int out[4] = { 0, 1, 2, 3 }, in[4], i;
	struct ofi_pair p, q;
	pthread_t thread;
	fi_addr_t to;

	ofi_provider(); /* reads the parameters */
	util_params.hold = watcher != WATCHER_USER;
	ofi_pair_open(&p, &opts);
	util_params.hold = 1;
	opts.progress = FI_PROGRESS_MANUAL;
	ofi_pair_open(&q, &opts);
	if (watcher == WATCHER_SREAD)
		merge_pdoms(&p);
	to = connect_pairs(&p, &q);
	for (i = 0; i < 4; i++)
		cr_assert_eq(
			fi_trecv(q.ep[0], &in[i], sizeof(int), NULL, FI_ADDR_UNSPEC, 2, 0, NULL),
			0);
	watch(&p, watcher, &thread);
	for (i = 0; i < 4; i++)
		cr_assert_eq(fi_tsend(p.ep[0], &out[i], sizeof(int), NULL, to, 2, NULL), 0);
	expect_numbers(q.cq[0], in, 4);
	if (watcher == WATCHER_SREAD) {
		cr_expect_eq(fi_cq_signal(p.cq[1]), 0);
		pthread_join(thread, NULL);
	}
	ofi_pair_close(&q);
	ofi_pair_close(&p);
}

Test(cpr_progress, nothing_is_deferred_while_others_sleep, .timeout = 200)
{
	enum watcher watcher;

	for (watcher = 0; watcher < WATCHER_CNT; watcher++)
		send_while_watched(watcher);
}

/* Sends; the completion is there when the call returns, over any path. */
static void send_with_completion(struct fid_ep *ep, const int *value, fi_addr_t to)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)value, .iov_len = sizeof(*value) };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .addr = to, .tag = 2 };

	cr_assert_eq(fi_tsendmsg(ep, &msg, FI_COMPLETION | FI_INJECT_COMPLETE), 0);
}

/* A read may be the last for a while: a full queue must not keep messages deferred. */
Test(cpr_progress, a_read_that_finds_completions_makes_progress)
{
	struct ofi_options opts = { 0 };
	int out[4] = { 0, 1, 2, 3 }, in[4], i;
	struct fi_cq_tagged_entry e;
	struct ofi_pair p, q;
	fi_addr_t to;

	ofi_pair_open(&p, &opts);
	ofi_pair_open(&q, &opts);
	to = connect_pairs(&p, &q);
	for (i = 0; i < 4; i++) {
		cr_assert_eq(fi_trecv(q.ep[0], &in[i], 4, NULL, FI_ADDR_UNSPEC, 2, 0, NULL), 0);
		send_with_completion(p.ep[0], &out[i], to);
	}
	cr_assert(core_ep_is_busy(cpr_ep_of(p.ep[0])->core), "nothing was deferred");
	cr_assert_eq(fi_cq_read(p.cq[0], &e, 1), 1);
	expect_numbers(q.cq[0], in, 4); /* sent by that read, the only one */
	ofi_pair_close(&q);
	ofi_pair_close(&p);
}

/* The sends were accepted, and the sender reads nothing afterwards. */
Test(cpr_progress, accepted_messages_reach_a_peer_that_is_removed)
{
	struct ofi_options opts = { 0 };
	int out[4] = { 0, 1, 2, 3 }, in[4], i;
	struct ofi_pair p, q;
	fi_addr_t to;

	ofi_pair_open(&p, &opts);
	ofi_pair_open(&q, &opts);
	to = connect_pairs(&p, &q);
	for (i = 0; i < 4; i++) {
		cr_assert_eq(fi_trecv(q.ep[0], &in[i], 4, NULL, FI_ADDR_UNSPEC, 2, 0, NULL), 0);
		send_with_completion(p.ep[0], &out[i], to);
	}
	cr_assert(core_ep_is_busy(cpr_ep_of(p.ep[0])->core), "nothing was deferred");
	cr_assert_eq(fi_av_remove(p.av, &to, 1, 0), 0);
	expect_numbers(q.cq[0], in, 4);
	ofi_pair_close(&q);
	ofi_pair_close(&p);
}
