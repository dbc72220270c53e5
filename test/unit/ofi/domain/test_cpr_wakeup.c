/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wakeups: which events wake which sleepers. Two endpoints with a queue each to sleep on, and a
 * third one in another domain that sends to them.
 */
#include "ofi/base/cpr_wakeup.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/queue/cpr_cq.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/bits.h"

#define LONG_MS 60000

static struct ofi_pair p, far;

static void setup(void)
{
	struct ofi_options opts = { .threading = FI_THREAD_SAFE, .wait_obj = FI_WAIT_FD };

	ofi_pair_open(&p, &opts);
	ofi_pair_open(&far, &opts);
}

static void teardown(void)
{
	ofi_pair_close(&far);
	ofi_pair_close(&p);
}

TestSuite(cpr_wakeup, .init = setup, .fini = teardown, .timeout = 300);

static struct cpr_pdom *pdom_of(struct fid_cq *cq)
{
	return UTIL_CONTAINER_OF(cq, struct cpr_cq, fid)->member.pdom;
}

static int fd_of(struct fid_cq *cq)
{
	int fd = -1;

	cr_assert_eq(fi_control(&cq->fid, FI_GETWAIT, &fd), 0);
	return fd;
}

/* Returns 0 when the queue may be slept on. Work in progress ends soon. */
static int try_wait(struct fid_cq *cq)
{
	struct fid *fids[1] = { &cq->fid };
	int ret, tries;

	for (tries = 0; tries < 30000; tries++) {
		ret = fi_trywait(p.fabric, fids, 1);
		if (ret != -FI_EAGAIN)
			return ret;
		usleep(1000);
	}
	return ret;
}

static bool is_readable(struct fid_cq *cq, int ms)
{
	struct pollfd pfd = { .fd = fd_of(cq), .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

static fi_addr_t insert(struct ofi_pair *pair, struct fid_ep *ep)
{
	char name[64];
	size_t len = sizeof(name);
	fi_addr_t addr;

	cr_assert_eq(fi_getname(&ep->fid, name, &len), 0);
	cr_assert_eq(fi_av_insert(pair->av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

static char room[8];

static void post(struct fid_ep *ep)
{
	cr_assert_eq(fi_trecv(ep, room, sizeof(room), NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
}

/* Sends from the other domain to `ep`. */
static void send_to(struct fid_ep *ep)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t to = insert(&far, ep);

	cr_assert_eq(OFI_RETRY(&far, fi_tsend(far.ep[0], "x", 2, NULL, to, 1, NULL)), 0);
	cr_assert_eq(ofi_read(far.cq[0], &e), 1);
}

/* --- a thread that sleeps --- */

struct sleeper {
	pthread_t thread;
	struct fid_cq *cq;
	bool polls; /* fi_trywait and poll(2), not fi_cq_sread */
	int got;
};

static int poll_and_read(struct fid_cq *cq)
{
	struct fid *fids[1] = { &cq->fid };
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN)
		if (!fi_trywait(p.fabric, fids, 1) && !is_readable(cq, LONG_MS))
			return 0;
	return (int)ret;
}

static void *run_sleeper(void *arg)
{
	struct sleeper *s = arg;
	struct fi_cq_tagged_entry e;

	s->got = s->polls ? poll_and_read(s->cq) : (int)fi_cq_sread(s->cq, &e, 1, NULL, LONG_MS);
	return NULL;
}

static bool is_asleep(struct fid_cq *cq)
{
	struct cpr_pdom *pdom = cpr_member_lock(&UTIL_CONTAINER_OF(cq, struct cpr_cq, fid)->member);
	bool asleep = !cpr_wakeup_is_idle(&pdom->wakeup);

	cpr_pdom_unlock(pdom);
	return asleep;
}

/* Starts the thread and returns when it sleeps. */
static void begin(struct sleeper *s, struct fid_cq *cq, bool polls)
{
	int looks;

	*s = (struct sleeper){ .cq = cq, .polls = polls };
	cr_assert_eq(pthread_create(&s->thread, NULL, run_sleeper, s), 0);
	for (looks = 0; looks < 30000 && !is_asleep(cq); looks++)
		usleep(1000);
	cr_assert(is_asleep(cq));
}

static void expect_woken(struct sleeper *s)
{
	pthread_join(s->thread, NULL);
	cr_expect_eq(s->got, 1);
}

/* --- */

Test(cpr_wakeup, each_of_several_pdoms_may_be_slept_on)
{
	int i;

	cr_expect_neq(pdom_of(p.cq[0]), pdom_of(p.cq[1]));
	for (i = 0; i < 2; i++)
		cr_expect_eq(try_wait(p.cq[i]), 0);
	for (i = 0; i < 2; i++)
		cr_expect_not(is_readable(p.cq[i], 0));
	/* Nothing arrived: fi_trywait may be called any number of times. */
	for (i = 0; i < 100; i++)
		cr_expect_eq(fi_trywait(p.fabric, &(struct fid *){ &p.cq[i & 1]->fid }, 1), 0);
}

Test(cpr_wakeup, a_message_wakes_its_own_pdom_while_another_is_busy)
{
	struct sleeper s;
	int polls;

	for (polls = 0; polls < 2; polls++) {
		post(p.ep[0]);
		begin(&s, p.cq[0], polls);
		cpr_pdom_lock(pdom_of(p.cq[1])); /* until the end of the test */
		send_to(p.ep[0]);
		expect_woken(&s);
		cpr_pdom_unlock(pdom_of(p.cq[1]));
	}
}

/*
 * Both were the same thread's, and its promise covers both; the other thread's queue is not
 * included.
 */
Test(cpr_wakeup, a_message_wakes_no_other_sleeper)
{
	struct fi_cq_tagged_entry e;
	uint64_t reads;
	struct sleeper s;
	int i;

	post(p.ep[1]);
	send_to(p.ep[1]); /* connects */
	cr_expect_eq(ofi_read(p.cq[1], &e), 1);
	begin(&s, p.cq[0], false);
	reads = __atomic_load_n(&pdom_of(p.cq[0])->app_reads, __ATOMIC_RELAXED);
	for (i = 0; i < 1000; i++) {
		post(p.ep[1]);
		send_to(p.ep[1]);
		cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	}
	/* The sleeper may be woken for another reason, but not by each message. */
	cr_expect_lt(__atomic_load_n(&pdom_of(p.cq[0])->app_reads, __ATOMIC_RELAXED) - reads, 500);
	cr_assert_eq(fi_cq_signal(p.cq[0]), 0);
	pthread_join(s.thread, NULL);
	cr_expect_eq(s.got, -FI_EAGAIN);
}

/* The engine that receives the message is not that of the queue's first endpoint. */
Test(cpr_wakeup, events_of_a_merged_pdom_wake_too)
{
	struct fid_ep *third = ofi_pair_new_ep(&p, p.cq[0], p.cq[1]);
	struct sleeper s;
	int polls;

	for (polls = 0; polls < 2; polls++) {
		post(third);
		begin(&s, p.cq[1], polls);
		send_to(third);
		expect_woken(&s);
		post(p.ep[1]);
		begin(&s, p.cq[1], polls);
		send_to(p.ep[1]);
		expect_woken(&s);
	}
	cr_expect_eq(fi_close(&third->fid), 0);
}

Test(cpr_wakeup, a_sleeper_is_woken_by_pdoms_merged_meanwhile)
{
	struct fid_ep *third;
	struct sleeper s;

	begin(&s, p.cq[1], false);
	third = ofi_pair_new_ep(&p, p.cq[0], p.cq[1]);
	post(third);
	send_to(third);
	expect_woken(&s);
	cr_expect_eq(fi_close(&third->fid), 0);
}

Test(cpr_wakeup, a_sleeper_follows_a_queue_that_moves)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD };
	struct fid_ep *third;
	struct fid_cq *cq;
	struct sleeper s;
	int polls;

	for (polls = 0; polls < 2; polls++) {
		cr_assert_eq(fi_cq_open(p.domain, &attr, &cq, NULL), 0);
		begin(&s, cq, polls);
		third = ofi_pair_new_ep(&p, cq, cq);
		cr_expect_neq(pdom_of(cq), &cpr_domain_of(p.domain)->main);
		post(third);
		send_to(third);
		expect_woken(&s);
		cr_expect_eq(fi_close(&third->fid), 0);
		cr_expect_eq(fi_close(&cq->fid), 0);
	}
}

/* A sleeper that times out was not the only one: another was promised a wakeup. */
Test(cpr_wakeup, a_promise_outlives_a_call_that_timed_out)
{
	struct fi_cq_tagged_entry e;

	post(p.ep[0]);
	send_to(p.ep[0]); /* connects */
	cr_expect_eq(ofi_read(p.cq[0], &e), 1);
	post(p.ep[0]);
	cr_assert_eq(try_wait(p.cq[0]), 0);
	cr_expect_eq(fi_cq_sread(p.cq[0], &e, 1, NULL, 50), -FI_EAGAIN);
	cr_expect(is_asleep(p.cq[0]));
	send_to(p.ep[0]);
	cr_expect(is_readable(p.cq[0], LONG_MS));
	cr_expect_eq(ofi_read(p.cq[0], &e), 1);
}

Test(cpr_wakeup, a_call_that_times_out_leaves_the_wakeup_to_other_sleepers)
{
	struct fi_cq_tagged_entry e;
	struct sleeper s;
	int looks;

	post(p.ep[0]);
	begin(&s, p.cq[0], false);
	cr_expect_eq(fi_cq_sread(p.cq[0], &e, 1, NULL, 50), -FI_EAGAIN);
	for (looks = 0; looks < 30000 && !is_asleep(p.cq[0]); looks++)
		usleep(1000);
	cr_assert(is_asleep(p.cq[0]));
	send_to(p.ep[0]);
	expect_woken(&s);
}

/** Returns CPR_PDOM_BIT of the progress domains with engines that wake a sleeper on the queue. */
static uint64_t watched_by(struct fid_cq *cq)
{
	struct cpr_cq *q = UTIL_CONTAINER_OF(cq, struct cpr_cq, fid);
	struct cpr_pdom *pdom = cpr_member_lock(&q->member);
	uint64_t pdoms = q->wait.pdoms;

	cpr_pdom_unlock(pdom);
	return pdoms;
}

/* Sleeps as run_sleeper; only this thread uses the other queue's progress domain. */
static void *own_and_sleep(void *arg)
{
	struct util_bias *bias = core_dom_bias(&pdom_of(p.cq[1])->core);
	struct fi_cq_tagged_entry e;
	struct sleeper *s = arg;
	int reads;

	for (reads = 0; reads < 1000000 && !util_bias_is_mine(bias); reads++)
		fi_cq_read(p.cq[1], &e, 1);
	if (util_bias_is_mine(bias))
		return run_sleeper(s);
	__atomic_store_n(&s->got, -1, __ATOMIC_RELAXED);
	return NULL;
}

Test(cpr_wakeup, trywait_keeps_the_wakeup_of_another_thread)
{
	uint64_t both = CPR_PDOM_BIT(pdom_of(p.cq[0])) | CPR_PDOM_BIT(pdom_of(p.cq[1]));
	struct sleeper s = { .cq = p.cq[0] };

	cr_assert_eq(pthread_create(&s.thread, NULL, own_and_sleep, &s), 0);
	while (watched_by(p.cq[0]) != both && !__atomic_load_n(&s.got, __ATOMIC_RELAXED))
		usleep(1000);
	if (s.got) {
		pthread_join(s.thread, NULL);
		cr_skip_test("biased locks are off");
	}
	cr_expect_eq(try_wait(p.cq[0]), 0);
	cr_expect_eq(watched_by(p.cq[0]), both);
	cr_assert_eq(fi_cq_signal(p.cq[0]), 0);
	pthread_join(s.thread, NULL);
	cr_expect_eq(s.got, -FI_EAGAIN);
}

/*
 * The sender's end of the connection needs progress, and the only thread sleeps on the receiver's
 * queue.
 */
Test(cpr_wakeup, one_thread_that_sleeps_on_one_queue_serves_its_other_endpoints)
{
	struct fi_cq_tagged_entry e;

	post(p.ep[1]);
	cr_assert_eq(fi_tsend(p.ep[0], "abc", 4, NULL, p.addr[1], 1, NULL), 0);
	cr_expect_eq(fi_cq_sread(p.cq[1], &e, 1, NULL, LONG_MS), 1);
	post(p.ep[0]);
	cr_assert_eq(fi_tsend(p.ep[1], "abc", 4, NULL, p.addr[0], 1, NULL), 0);
	cr_expect_eq(fi_cq_sread(p.cq[1], &e, 1, NULL, LONG_MS), 1, "its own send");
	cr_expect_eq(poll_and_read(p.cq[0]), 1, "the other's first send");
	cr_expect_eq(poll_and_read(p.cq[0]), 1);
}

Test(cpr_wakeup, a_set_sleeps_on_members_of_several_pdoms)
{
	struct fid *fids[2] = { &p.cq[0]->fid, &p.cq[1]->fid };
	struct fi_cq_tagged_entry e;
	int ret, i;

	for (i = 0; i < 2; i++) {
		post(p.ep[i]);
		while ((ret = fi_trywait(p.fabric, fids, 2)) == -FI_EAGAIN)
			usleep(1000);
		cr_assert_eq(ret, 0);
		send_to(p.ep[i]);
		cr_expect(is_readable(p.cq[i], LONG_MS));
		cr_expect_eq(ofi_read(p.cq[i], &e), 1);
	}
}

/* --- without threads --- */

static int woken;

static void count_wake(struct cpr_wakeup_user *user)
{
	woken++;
}

static void stay(struct core_work *work)
{
	core_dom_work(&pdom_of(p.cq[0])->core, work);
}

Test(cpr_wakeup, a_failed_wakeup_wakes_all_users)
{
	struct cpr_pdom *pdom = pdom_of(p.cq[0]);
	struct core_work work = { .run = stay };
	struct cpr_wakeup_user user;

	util_list_init(&work.link);
	cpr_wakeup_user_init(&user, count_wake);
	cr_assert_eq(try_wait(p.cq[0]), 0);
	cpr_pdom_lock(pdom);
	cpr_wakeup_use(pdom, &user);
	core_dom_work(&pdom->core, &work);
	cr_expect_neq(cpr_wakeup_set(pdom), 0);
	cr_expect_eq(woken, 1);
	cr_expect(cpr_wakeup_is_idle(&pdom->wakeup));
	util_list_remove(&work.link);
	cr_expect_eq(cpr_wakeup_set(pdom), 0);
	cr_expect_eq(woken, 1);
	cpr_wakeup_release(pdom, &user);
	cpr_wakeup_invalidate(pdom, &user);
	cr_expect_eq(woken, 1, "it is no user");
	cpr_pdom_unlock(pdom);
}

Test(cpr_wakeup, transfers_are_sent_at_once_while_a_thread_sleeps)
{
	struct cpr_pdom *pdom = pdom_of(p.cq[0]);
	struct cpr_wakeup_user user;

	cpr_wakeup_user_init(&user, count_wake);
	cpr_pdom_lock(pdom);
	cr_expect_not(pdom->core.watched);
	cpr_wakeup_use(pdom, &user);
	cr_expect(pdom->core.watched);
	cpr_wakeup_invalidate_all(pdom);
	cr_expect_eq(woken, 1);
	cr_expect_not(pdom->core.watched);
	cpr_pdom_unlock(pdom);
}

/*
 * Merged progress domains are armed together, so a transfer in each is sent for the other's
 * sleeper.
 */
Test(cpr_wakeup, transfers_are_sent_at_once_while_a_thread_sleeps_on_a_merged_pdom)
{
	struct fid_ep *third = ofi_pair_new_ep(&p, p.cq[0], p.cq[1]);
	struct cpr_pdom *pdom = pdom_of(p.cq[0]), *merged = pdom_of(p.cq[1]);
	struct cpr_wakeup_user user;

	cpr_wakeup_user_init(&user, count_wake);
	cpr_pdom_lock(pdom);
	cpr_wakeup_use(merged, &user);
	cpr_wakeup_update(pdom);
	cr_expect(pdom->core.watched && merged->core.watched);
	cpr_wakeup_release(merged, &user);
	cr_expect_not(pdom->core.watched || merged->core.watched);
	cpr_pdom_unlock(pdom);
	cr_expect_eq(fi_close(&third->fid), 0);
}

Test(cpr_wakeup, an_attended_pdom_stays_watched_without_users)
{
	struct cpr_pdom *pdom = pdom_of(p.cq[0]);

	cpr_pdom_lock(pdom);
	cr_expect_not(pdom->core.watched);
	cpr_wakeup_attend(pdom);
	cr_expect(pdom->core.watched);
	cpr_wakeup_invalidate_all(pdom);
	cr_expect(pdom->core.watched);
	cpr_pdom_unlock(pdom);
}
