/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues, counters and event queues: results of their calls when full, empty, awaited
 * and used wrongly.
 *
 * Pages: fi_cq(3), fi_cntr(3), fi_eq(3), fi_poll(3).
 */
#include "common/ft_data.h"
#include "common/ft_msg.h"
#include "util/fi_old.h"

#include <poll.h>
#include <pthread.h>
#include <rdma/fi_tagged.h>
#include <unistd.h>

static void open_with(struct ft_fab *fab, struct ft *ft, struct ft_want want)
{
	want.alone = true;
	ft_fab_open(fab, ft, &want);
	if (fab->av)
		ft_fab_meet(fab);
	else
		ft_notrun("needs an endpoint that reaches itself");
}

static void message_to_self(struct ft_fab *fab, struct ft_op **recv)
{
	*recv = ft_recv_post(fab, true, 1, NULL, 0);
	ft_send_wait(fab, FT_INJECT, (struct ft_msg){ .tagged = true, .tag = 1 });
}

/* ---- completion queues ---- */

static void run_cq_empty(struct ft *ft)
{
	struct fi_cq_err_entry bad = { 0 };
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;
	struct ft_fab fab;

	open_with(&fab, ft, (struct ft_want){ 0 });
	FT_ROW(fi_cq_read(fab.tx_cq, &entry, 1), -FI_EAGAIN);
	FT_ROW(fi_cq_readfrom(fab.tx_cq, &entry, 1, &src), -FI_EAGAIN);
	FT_ROW(fi_cq_readerr(fab.tx_cq, &bad, 0), -FI_EAGAIN);
	ft_fab_close(&fab);
}

static void run_cq_no_wait(struct ft *ft)
{
	struct fi_cq_tagged_entry entry;
	struct ft_fab fab;
	void *object = NULL;

	if (ft->opts->wait != FT_WAIT_SPIN)
		ft_notrun("with option -c the queue has a wait object");
	open_with(&fab, ft, (struct ft_want){ 0 });
	FT_REFUSED(fi_cq_sread(fab.tx_cq, &entry, 1, NULL, 10));
	FT_REFUSED(fi_cq_signal(fab.tx_cq));
	FT_REFUSED(fi_control(&fab.tx_cq->fid, FI_GETWAIT, &object));
	ft_fab_close(&fab);
}

/* An error comes before later entries, and must be read first. */
static void run_cq_error_first(struct ft *ft)
{
	struct fi_cq_err_entry bad = { 0 };
	struct fi_cq_tagged_entry entry;
	struct ft_op *first, *second;
	char buf[4] = "abc";
	struct ft_fab fab;

	open_with(&fab, ft, (struct ft_want){ 0 });
	first = ft_recv_post(&fab, true, 1, buf, 1);
	second = ft_recv_post(&fab, true, 1, buf, 4);
	for (int i = 0; i < 2; i++)
		ft_send_wait(&fab, FT_INJECT,
			     (struct ft_msg){ .tagged = true, .tag = 1, .buf = buf, .len = 3 });
	ft_pause(ft, 0.05);
	FT_ROW(fi_cq_read(fab.tx_cq, &entry, 1), -FI_EAVAIL);
	FT_ROW(fi_cq_read(fab.tx_cq, &entry, 1), -FI_EAVAIL); /* until the error is read */
	FT_ROW(fi_cq_readerr(fab.tx_cq, &bad, 0), 1);
	FT_ROW(bad.err, FI_ETRUNC);
	FT_CHECK(bad.op_context == &first->context, "the error is another operation's");
	FT_CHECK(fi_cq_strerror(fab.tx_cq, bad.prov_errno, bad.err_data, NULL, 0),
		 "no text for the provider's error");
	FT_ROW(fi_cq_read(fab.tx_cq, &entry, 1), 1);
	FT_CHECK(entry.op_context == &second->context, "not the second receive");
	FT_ROW(fi_cq_readerr(fab.tx_cq, &bad, 0), -FI_EAGAIN);
	ft_fab_close(&fab);
}

static void run_cq_count(struct ft *ft)
{
	struct fi_cq_tagged_entry entries[10];
	struct ft_op *op;
	struct ft_fab fab;

	open_with(&fab, ft, (struct ft_want){ 0 });
	for (int i = 0; i < 10; i++)
		message_to_self(&fab, &op);
	ft_pause(ft, 0.05);
	FT_ROW(fi_cq_read(fab.tx_cq, NULL, 0), 0); /* progress; no entry is read */
	FT_ROW(fi_cq_read(fab.tx_cq, entries, 3), 3);
	FT_ROW(fi_cq_read(fab.tx_cq, entries, 10), 7);
	FT_ROW(fi_cq_read(fab.tx_cq, entries, 10), -FI_EAGAIN);
	ft_fab_close(&fab);
}

/* More completions than the queue was opened for: resource management keeps them all. */
static void run_cq_overrun(struct ft *ft)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 1 };
	struct ft_want want = { .alone = true };
	struct ft_op *ops[512];
	struct ft_fab fab;

	ft_fab_find(&fab, ft, &want);
	ft_fab_domain(&fab);
	ft_fab_queues(&fab);
	if (!fab.av || fab.info->domain_attr->resource_mgmt != FI_RM_ENABLED)
		ft_notrun("resource management is off");
	FT_CLOSE(fab.tx_cq);
	if (ft->opts->wait != FT_WAIT_SPIN)
		attr.wait_obj = FI_WAIT_FD;
	FT_OK(fi_cq_open(fab.domain, &attr, &fab.tx_cq, NULL));
	fab.rx_cq = fab.tx_cq;
	ft_fab_endpoint(&fab);
	ft_fab_enable(&fab);
	ft->fab = &fab;
	ft_fab_meet(&fab);
	for (int i = 0; i < 512; i++)
		ops[i] = ft_recv_post(&fab, true, 1, NULL, 0);
	for (int i = 0; i < 512; i++) {
		struct ft_msg msg = { .tagged = true, .tag = 1 };
		ssize_t ret;

		while ((ret = ft_send(&fab, FT_INJECT, &msg)) == -FI_EAGAIN)
			ft_fab_progress(&fab);
		FT_OK(ret);
	}
	ft_pause(ft, 0.1);
	for (int i = 0; i < 512; i++)
		ft_wait_good(&fab, ops[i]);
	ft_quiet(&fab, 0.02);
	ft_fab_close(&fab);
}

static double timed_sread(struct fid_cq *cq, int timeout, ssize_t *ret)
{
	struct fi_cq_tagged_entry entry;
	double start = ft_now();

	*ret = fi_cq_sread(cq, &entry, 1, NULL, timeout);
	return ft_now() - start;
}

static void run_cq_timeout(struct ft *ft)
{
	struct ft_fab fab;
	ssize_t ret;
	double took;

	open_with(&fab, ft, (struct ft_want){ .wait = FI_WAIT_UNSPEC });
	took = timed_sread(fab.tx_cq, 0, &ret);
	FT_ROW(ret, -FI_EAGAIN);
	FT_CHECK(took < 20, "a timeout of 0 took %.2f s", took);
	took = timed_sread(fab.tx_cq, 200, &ret);
	FT_ROW(ret, -FI_EAGAIN);
	FT_CHECK(took > 0.15 && took < 20, "a timeout of 0.2 s took %.2f s", took);
	ft_fab_close(&fab);
}

static void *signal_soon(void *cq)
{
	usleep(100000);
	FT_OK(fi_cq_signal(cq));
	return NULL;
}

static void run_cq_signal(struct ft *ft)
{
	struct ft_fab fab;
	pthread_t thread;
	ssize_t ret;

	open_with(&fab, ft,
		  (struct ft_want){ .wait = FI_WAIT_UNSPEC, .threading = FI_THREAD_SAFE });
	FT_OK(pthread_create(&thread, NULL, signal_soon, fab.tx_cq));
	timed_sread(fab.tx_cq, -1, &ret); /* never returns unless woken */
	FT_ROW(ret, -FI_EAGAIN);
	FT_OK(pthread_join(thread, NULL));
	ft_fab_close(&fab);
}

/* A descriptor must be readable while there is a completion; otherwise its reader would sleep. */
static void run_cq_fd(struct ft *ft)
{
	struct pollfd wait = { .events = POLLIN };
	struct fi_cq_tagged_entry entry;
	struct ft_op *op;
	struct ft_fab fab;
	struct fid *fids[1];
	int ret;

	open_with(&fab, ft, (struct ft_want){ .wait = FI_WAIT_FD });
	fids[0] = &fab.tx_cq->fid;
	FT_OK(fi_control(&fab.tx_cq->fid, FI_GETWAIT, &wait.fd));
	for (int i = 0; i < 20; i++) {
		FT_CHECK(fi_cq_read(fab.tx_cq, &entry, 1) == -FI_EAGAIN, "not empty");
		op = ft_recv_post(&fab, true, 1, NULL, 0);
		ft_send_wait(&fab, FT_INJECT, (struct ft_msg){ .tagged = true, .tag = 1 });
		ret = fi_trywait(fab.fabric, fids, 1);
		FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_trywait: %d", ret);
		if (!ret)
			FT_CHECK(poll(&wait, 1, 30000) == 1, "nothing wakes the sleeper");
		ft_wait_good(&fab, op);
	}
	ft_fab_close(&fab);
}

static void run_cq_attr(struct ft *ft)
{
	struct fi_cq_attr attr = { .format = 99 };
	struct ft_want want = { .alone = true };
	struct ft_fab fab;
	struct fid_cq *cq;

	ft_fab_find(&fab, ft, &want);
	ft_fab_domain(&fab);
	ft_fab_queues(&fab);
	FT_REFUSED(fi_cq_open(fab.domain, &attr, &cq, NULL));
	attr = (struct fi_cq_attr){ .wait_obj = 99 };
	FT_REFUSED(fi_cq_open(fab.domain, &attr, &cq, NULL));
	attr = (struct fi_cq_attr){ .flags = 1ull << 62 };
	FT_REFUSED(fi_cq_open(fab.domain, &attr, &cq, NULL));
	attr = (struct fi_cq_attr){ .wait_obj = FI_WAIT_SET }; /* without a set */
	FT_REFUSED(fi_cq_open(fab.domain, &attr, &cq, NULL));
	attr = (struct fi_cq_attr){ 0 }; /* the provider chooses format and size */
	FT_OK(fi_cq_open(fab.domain, &attr, &cq, NULL));
	FT_CLOSE(cq);
	fab.ops = ft_ops_open();
	ft_fab_close(&fab);
}

/* ---- counters ---- */

static void run_cntr_values(struct ft *ft)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;
	struct ft_fab fab;
	double start;

	open_with(&fab, ft, (struct ft_want){ 0 });
	FT_OK(fi_cntr_open(fab.domain, &attr, &cntr, NULL));
	FT_ROW(fi_cntr_read(cntr), 0);
	FT_ROW(fi_cntr_readerr(cntr), 0);
	FT_OK(fi_cntr_add(cntr, 7));
	FT_OK(fi_cntr_set(cntr, 40));
	FT_OK(fi_cntr_add(cntr, 2));
	FT_ROW(fi_cntr_read(cntr), 42);
	FT_OK(fi_cntr_seterr(cntr, 5));
	FT_OK(fi_cntr_adderr(cntr, 1));
	FT_ROW(fi_cntr_readerr(cntr), 6);
	FT_ROW(fi_cntr_read(cntr), 42); /* two values */
	FT_ROW(fi_cntr_wait(cntr, 42, 1000), 0);
	start = ft_now();
	FT_ROW(fi_cntr_wait(cntr, 43, 200), -FI_ETIMEDOUT);
	FT_CHECK(ft_now() - start > 0.15, "the timeout came after %.2f s", ft_now() - start);
	FT_ROW(fi_cntr_readerr(cntr), 6);
	FT_CLOSE(cntr);
	ft_fab_close(&fab);
}

static void *err_soon(void *cntr)
{
	usleep(100000);
	FT_OK(fi_cntr_adderr(cntr, 1));
	return NULL;
}

static void *add_soon(void *cntr)
{
	usleep(100000);
	FT_OK(fi_cntr_add(cntr, 3));
	return NULL;
}

static void run_cntr_wake(struct ft *ft)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;
	struct ft_fab fab;
	pthread_t thread;

	open_with(&fab, ft, (struct ft_want){ .threading = FI_THREAD_SAFE });
	FT_OK(fi_cntr_open(fab.domain, &attr, &cntr, NULL));
	FT_OK(pthread_create(&thread, NULL, add_soon, cntr));
	FT_ROW(fi_cntr_wait(cntr, 3, 30000), 0);
	FT_OK(pthread_join(thread, NULL));
	FT_OK(pthread_create(&thread, NULL, err_soon, cntr));
	FT_REFUSED(fi_cntr_wait(cntr, 4, 20000)); /* any change of the error value ends it */
	FT_ROW(fi_cntr_readerr(cntr), 1);
	FT_OK(pthread_join(thread, NULL));
	FT_CLOSE(cntr);
	ft_fab_close(&fab);
}

static void run_cntr_attr(struct ft *ft)
{
	struct fi_cntr_attr attr = { .flags = 1 };
	struct fid_cntr *cntr;
	struct ft_fab fab;

	open_with(&fab, ft, (struct ft_want){ 0 });
	FT_REFUSED(fi_cntr_open(fab.domain, &attr, &cntr, NULL)); /* reserved */
	attr = (struct fi_cntr_attr){ .events = 99 };
	FT_REFUSED(fi_cntr_open(fab.domain, &attr, &cntr, NULL));
	attr = (struct fi_cntr_attr){ .wait_obj = 99 };
	FT_REFUSED(fi_cntr_open(fab.domain, &attr, &cntr, NULL));
	attr = (struct fi_cntr_attr){ .wait_obj = FI_WAIT_NONE };
	FT_OK(fi_cntr_open(fab.domain, &attr, &cntr, NULL));
	FT_ROW(fi_cntr_wait(cntr, 0, 0), 0); /* no wait object: the call polls */
	FT_ROW(fi_cntr_wait(cntr, 1, 10), -FI_ETIMEDOUT);
	FT_CLOSE(cntr);
	ft_fab_close(&fab);
}

/* ---- event queues ---- */

static void run_eq(struct ft *ft)
{
	struct fi_eq_attr attr = { .flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_entry entry = { 0 }, back = { 0 };
	struct fi_eq_err_entry bad = { 0 };
	struct ft_want want = { .alone = true };
	uint32_t event = 0;
	struct ft_fab fab;
	struct fid_eq *eq;

	ft_fab_find(&fab, ft, &want);
	FT_OK(fi_fabric(fab.info->fabric_attr, &fab.fabric, NULL));
	FT_OK(fi_eq_open(fab.fabric, &attr, &eq, NULL));
	FT_ROW(fi_eq_read(eq, &event, &back, sizeof(back), 0), -FI_EAGAIN);
	FT_ROW(fi_eq_readerr(eq, &bad, 0), -FI_EAGAIN);
	FT_ROW(fi_eq_sread(eq, &event, &back, sizeof(back), 100, 0), -FI_EAGAIN);
	entry.fid = &eq->fid;
	for (int i = 0; i < 100; i++) {
		entry.context = &fab + i;
		FT_ROW(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	}
	FT_ROW(fi_eq_read(eq, &event, &back, sizeof(back), FI_PEEK), sizeof(back));
	FT_CHECK(back.context == &fab, "a peek at another event");
	for (int i = 0; i < 100; i++) { /* the peek has removed nothing */
		FT_ROW(fi_eq_sread(eq, &event, &back, sizeof(back), 1000, 0), sizeof(back));
		FT_CHECK(event == FI_NOTIFY && back.context == &fab + i, "event %d is not %d", i,
			 i);
	}
	FT_ROW(fi_eq_read(eq, &event, &back, sizeof(back), 0), -FI_EAGAIN);
	FT_ROW(fi_close(&fab.fabric->fid), -FI_EBUSY);
	FT_CLOSE(eq);
	FT_CLOSE(fab.fabric);
}

static void run_eq_wrong(struct ft *ft)
{
	struct fi_eq_attr attr = { 0 };
	struct fi_eq_entry entry = { 0 };
	struct ft_want want = { .alone = true };
	uint32_t event = FI_NOTIFY;
	struct ft_fab fab;
	struct fid_eq *eq;

	ft_fab_find(&fab, ft, &want);
	FT_OK(fi_fabric(fab.info->fabric_attr, &fab.fabric, NULL));
	FT_OK(fi_eq_open(fab.fabric, &attr, &eq, NULL));
	FT_REFUSED(fi_eq_write(eq, event, &entry, sizeof(entry), 0));      /* without FI_WRITE */
	FT_REFUSED(fi_eq_sread(eq, &event, &entry, sizeof(entry), 10, 0)); /* no wait object */
	FT_CLOSE(eq);
	attr.wait_obj = 99;
	FT_REFUSED(fi_eq_open(fab.fabric, &attr, &eq, NULL));
	attr = (struct fi_eq_attr){ .flags = 1ull << 62 };
	FT_REFUSED(fi_eq_open(fab.fabric, &attr, &eq, NULL));
	FT_CLOSE(fab.fabric);
}

/* ---- poll sets and wait sets ---- */

static void *poll_once(struct fid_poll *set, double seconds)
{
	double end = ft_now() + seconds;
	void *context = NULL;
	int cnt;

	do {
		cnt = fi_poll(set, &context, 1);
		FT_CHECK(cnt >= 0, "fi_poll: %s", ft_err_name(cnt));
	} while (!cnt && ft_now() < end);
	return cnt ? context : NULL;
}

/* Queue and counter of one endpoint, each with a context of its own. */
static void run_pollset(struct ft *ft)
{
	struct fi_cntr_attr cntr_attr = { 0 };
	struct fi_poll_attr attr = { 0 };
	struct fi_cq_tagged_entry entry;
	struct fid_cntr *cntr;
	struct fid_poll *set;
	struct ft_op *recv;
	struct ft_fab fab;

	open_with(&fab, ft, (struct ft_want){ 0 });
	fab.tx_cq->fid.context = &fab;
	if (fi_poll_open(fab.domain, &attr, &set))
		ft_notrun("no poll sets");
	FT_OK(fi_cntr_open(fab.domain, &cntr_attr, &cntr, &cntr));
	FT_OK(fi_poll_add(set, &fab.tx_cq->fid, 0));
	FT_OK(fi_poll_add(set, &cntr->fid, 0));
	FT_REFUSED(fi_poll_add(set, &fab.ep->fid, 0));
	FT_CHECK(!poll_once(set, 0.02), "something is there, and nothing has happened");
	recv = ft_op_new(&fab, FT_ONE);
	FT_POST(&fab, fi_trecv(fab.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 1, 0, &recv->context));
	FT_POST(&fab, fi_tinject(fab.ep, NULL, 0, fab.addr[0], 1));
	FT_CHECK(poll_once(set, 30) == &fab, "the queue is not reported");
	FT_RET(fi_cq_read(fab.tx_cq, &entry, 1), 1);
	FT_CHECK(!poll_once(set, 0.02), "a queue that was read is reported again");
	FT_REFUSED(fi_close(&fab.tx_cq->fid)); /* in use */
	FT_OK(fi_poll_del(set, &fab.tx_cq->fid, 0));
	FT_OK(fi_poll_del(set, &cntr->fid, 0));
	FT_CLOSE(set);
	FT_CLOSE(cntr);
	ft_fab_close(&fab);
}

static void run_waitset(struct ft *ft)
{
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET };
	struct fi_cq_tagged_entry entry;
	struct fid_wait *set;
	struct ft_fab fab;
	char byte = 0;

	ft_fab_find(&fab, ft, &(struct ft_want){ .alone = true, .two_cqs = true });
	ft_fab_domain(&fab);
	if (fi_wait_open(fab.fabric, &attr, &set))
		ft_notrun("no wait sets");
	ft_fab_queues(&fab);
	FT_CLOSE(fab.rx_cq);
	cq_attr.wait_set = set;
	FT_OK(fi_cq_open(fab.domain, &cq_attr, &fab.rx_cq, NULL));
	ft_fab_endpoint(&fab);
	ft_fab_enable(&fab);
	if (!fab.av)
		ft_notrun("needs an endpoint that reaches itself");
	ft_fab_meet(&fab);
	FT_ROW(fi_wait(set, 20), -FI_ETIMEDOUT);
	FT_POST(&fab, fi_trecv(fab.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	FT_POST(&fab, fi_tinject(fab.ep, "x", 1, fab.addr[0], 1));
	FT_RET(fi_wait(set, 30000), 0);
	FT_RET(fi_cq_read(fab.rx_cq, &entry, 1), 1);
	FT_CHECK(byte == 'x', "another byte");
	FT_REFUSED(fi_close(&set->fid)); /* in use */
	FT_CLOSE(fab.ep);
	FT_CLOSE(fab.rx_cq);
	FT_CLOSE(set);
	fab.rx_cq = fab.tx_cq;
	ft_fab_close(&fab);
}

#define ROW(name, function, sentence) FT_CASE(name, function, sentence, .procs = 1)

static const struct ft_case cases[] = {
	ROW("cq-empty", run_cq_empty, "An empty queue says -FI_EAGAIN."),
	ROW("cq-no-wait", run_cq_no_wait, "Without a wait object nobody may wait or signal."),
	ROW("cq-error-first", run_cq_error_first,
	    "An error blocks the queue until fi_cq_readerr has taken it."),
	ROW("cq-count", run_cq_count, "At most `count` are read; 0 makes progress only."),
	ROW("cq-overrun", run_cq_overrun, "With resource management no completion is lost."),
	ROW("cq-timeout", run_cq_timeout, "A timeout ends fi_cq_sread with -FI_EAGAIN."),
	ROW("cq-signal", run_cq_signal, "fi_cq_signal ends an endless wait."),
	ROW("cq-fd", run_cq_fd, "After fi_trywait the descriptor tells of every completion."),
	ROW("cq-attr", run_cq_attr, "Unknown formats, flags and wait objects are refused."),
	ROW("cntr-values", run_cntr_values, "A counter has two values, to add to and to set."),
	ROW("cntr-wake", run_cntr_wake, "The threshold ends a wait, and so does any error."),
	ROW("cntr-attr", run_cntr_attr, "Reserved flags and unknown attributes are refused."),
	ROW("pollset", run_pollset, "fi_poll names what has something, once."),
	ROW("waitset", run_waitset, "fi_wait ends when a member has something, or in time."),
	ROW("eq", run_eq, "Events come in order; a peek leaves them; empty is -FI_EAGAIN."),
	ROW("eq-wrong", run_eq_wrong, "Writing needs FI_WRITE, waiting a wait object."),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "What queues and counters say.", cases, FT_CNT(cases));
}
