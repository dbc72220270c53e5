/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Inherited and new objects in a forked child: cpr_fork.h. */
#include "ofi/domain/cpr_fork.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/ofi/ofi_fixture.h"
#include "util/param.h"

static struct ofi_pair p;
static struct fid_ep *alias; /* of the first endpoint, or NULL */
static bool sleeps;          /* the queues have wait objects */

/* Checks in a child, where assertions do not reach Criterion. */
#define CHILD_CHECK(cond)                                                                          \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: in the child: not %s\n", __FILE__, __LINE__,       \
				#cond);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void in_a_child(void (*does)(void))
{
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (!pid) {
		setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_sec = 120 }, NULL);
		does();
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
}

/* Sends from `from` to the other end and checks the message. */
static void send_char(struct ofi_pair *q, int from, char what)
{
	struct fi_cq_tagged_entry e;
	char in = 0;

	cr_assert_eq(fi_trecv(q->ep[!from], &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(q, fi_tsend(q->ep[from], &what, 1, NULL, q->addr[!from], 1, NULL)),
		     0);
	cr_assert_eq(ofi_pair_read(q, !from, &e), 1);
	cr_assert_eq(in, what);
	cr_assert_eq(ofi_pair_read(q, from, &e), 1);
}

static void try_everything(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	char buf[8] = { 0 };
	unsigned i, k;

	CHILD_CHECK(!alias || fi_tsend(alias, buf, 1, NULL, p.addr[1], 1, NULL) == -FI_EOPBADSTATE);
	for (i = 0; i < 2; i++) {
		CHILD_CHECK(fi_tsend(p.ep[i], buf, 1, NULL, p.addr[!i], 1, NULL) ==
			    -FI_EOPBADSTATE);
		CHILD_CHECK(fi_inject(p.ep[i], buf, 1, p.addr[!i]) == -FI_EOPBADSTATE);
		CHILD_CHECK(fi_trecv(p.ep[i], buf, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL) ==
			    -FI_EOPBADSTATE);
		CHILD_CHECK(fi_cq_read(p.cq[i], &e, 1) == -FI_EAVAIL);
		CHILD_CHECK(fi_cq_readerr(p.cq[i], &err, 0) == 1);
		CHILD_CHECK(err.err == FI_EBADF);
		CHILD_CHECK(strstr(fi_cq_strerror(p.cq[i], err.prov_errno, NULL, NULL, 0), "fork"));
		for (k = 0; k < 1000; k++)
			CHILD_CHECK(fi_cq_read(p.cq[i], &e, 1) == -FI_EAGAIN);
		CHILD_CHECK(fi_cq_sread(p.cq[i], &e, 1, NULL, -1) ==
			    (sleeps ? -FI_EBADF : -FI_ENOSYS));
	}
	CHILD_CHECK(!fi_av_remove(p.av, p.addr, 2, 0));
	for (i = 0; i < 2; i++) {
		CHILD_CHECK(fi_close(&p.ep[i]->fid) == -FI_EBUSY);
		CHILD_CHECK(fi_close(&p.cq[i]->fid) == -FI_EBUSY);
	}
	CHILD_CHECK(fi_close(&p.av->fid) == -FI_EBUSY);
	CHILD_CHECK(fi_close(&p.domain->fid) == -FI_EBUSY);
}

/* Messages that arrive, and those that are sent, are the parent's. */
static void is_refused(enum fi_threading threading, enum fi_progress progress)
{
	struct ofi_options opts = { .threading = threading,
				    .progress = progress,
				    .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry e;
	char out = 7, in = 0;

	ofi_pair_open(&p, &opts);
	sleeps = true;
	cr_assert_eq(fi_ep_alias(p.ep[0], &alias, FI_TRANSMIT | FI_COMPLETION), 0);
	send_char(&p, 0, 1);
	send_char(&p, 1, 2);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[0], &out, 1, p.addr[1], 1)), 0);
	in_a_child(try_everything);
	cr_assert_eq(fi_trecv(p.ep[1], &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(ofi_pair_read(&p, 1, &e), 1);
	cr_expect_eq(in, 7);
	send_char(&p, 1, 8);
	cr_assert_eq(fi_close(&alias->fid), 0);
	alias = NULL;
	ofi_pair_close(&p);
}

Test(cpr_fork, a_child_is_refused_inherited_objects)
{
	is_refused(FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	is_refused(FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	is_refused(FI_THREAD_SAFE, FI_PROGRESS_AUTO);
}

Test(cpr_fork, a_child_is_refused_inherited_datagram_endpoints)
{
	setenv("FI_COPYRPC_ENDPOINT", "ud", 1);
	is_refused(FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	is_refused(FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
}

/* Opens an endpoint that is bound and not enabled. */
static void open_disabled(enum fi_ep_type type)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { 0 };

	ofi_domain_open(&p, &(struct ofi_options){ .ep_type = type });
	cr_assert_eq(fi_av_open(p.domain, &av_attr, &p.av, NULL), 0);
	cr_assert_eq(fi_cq_open(p.domain, &cq_attr, &p.cq[0], NULL), 0);
	cr_assert_eq(fi_endpoint(p.domain, p.info, &p.ep[0], NULL), 0);
	ofi_bind_all(&p);
}

static void enable_inherited(void)
{
	CHILD_CHECK(fi_enable(p.ep[0]) == -FI_EBADF);
}

/* Over UDP such an endpoint has a socket of its own, and nothing else fails. */
Test(cpr_fork, a_child_cannot_enable_an_inherited_endpoint)
{
	static const enum fi_ep_type types[] = { FI_EP_RDM, FI_EP_DGRAM };

	ofi_provider();
	util_params.paths = "shm,udp";
	for (int i = 0; i < 2; i++) {
		open_disabled(types[i]);
		in_a_child(enable_inherited);
		cr_expect_eq(fi_enable(p.ep[0]), 0);
		ofi_pair_close(&p);
	}
}

static void open_its_own(void)
{
	struct ofi_pair own = { 0 };

	try_everything();
	ofi_pair_open(&own, &(struct ofi_options){ .threading = FI_THREAD_SAFE });
	send_char(&own, 0, 3);
	send_char(&own, 1, 4);
	ofi_pair_close(&own);
}

/* Forks again in a child with endpoints of its own. */
static void open_its_own_and_fork(void)
{
	struct ofi_pair own = { 0 };
	int status;
	pid_t pid;

	ofi_pair_open(&own, &(struct ofi_options){ 0 });
	send_char(&own, 0, 5);
	pid = fork();
	if (!pid) {
		open_its_own();
		_exit(0);
	}
	CHILD_CHECK(waitpid(pid, &status, 0) == pid && !status);
	send_char(&own, 1, 6);
	ofi_pair_close(&own);
}

Test(cpr_fork, a_child_opens_endpoints_of_its_own)
{
	ofi_pair_open(&p, &(struct ofi_options){ 0 });
	send_char(&p, 0, 1);
	in_a_child(open_its_own);
	in_a_child(open_its_own_and_fork);
	send_char(&p, 0, 7);
	send_char(&p, 1, 8);
	ofi_pair_close(&p);
}

/* Ends by exit, so that handlers run, with a progress thread that only the parent has. */
static void leave_by_exit(void)
{
	ofi_provider()->cleanup();
}

Test(cpr_fork, a_child_may_end_with_its_exit_handlers)
{
	ofi_pair_open(&p, &(struct ofi_options){ .progress = FI_PROGRESS_AUTO });
	send_char(&p, 0, 1);
	in_a_child(leave_by_exit);
	send_char(&p, 0, 2);
	ofi_pair_close(&p);
}

static bool stop;

static void *read_and_open(void *arg)
{
	struct ofi_pair *q = arg;
	struct fi_cq_tagged_entry e;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		struct fid_ep *ep = ofi_pair_new_ep(q, q->cq[0], q->cq[0]);

		fi_cq_read(q->cq[0], &e, 1);
		fi_cq_read(q->cq[1], &e, 1);
		if (fi_close(&ep->fid))
			abort();
	}
	return NULL;
}

/* Locks may be held at the fork by threads that the child does not have. */
Test(cpr_fork, forking_in_the_middle_of_another_threads_calls)
{
	pthread_t thread;

	stop = false;
	sleeps = true;
	ofi_pair_open(&p, &(struct ofi_options){ .threading = FI_THREAD_SAFE,
						 .wait_obj = FI_WAIT_UNSPEC });
	cr_assert_eq(pthread_create(&thread, NULL, read_and_open, &p), 0);
	for (unsigned i = 0; i < 50; i++)
		in_a_child(try_everything);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	ofi_pair_close(&p);
}
