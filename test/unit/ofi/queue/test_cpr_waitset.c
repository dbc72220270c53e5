/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wait sets (fi_poll(3)). */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_eq.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit/ofi/ofi_fixture.h"
#include "util/clock.h"
#include "util/fi_old.h"

static struct ofi_pair p;
static struct fid_wait *set;
static struct fid_cq *cq;
static struct fid_cntr *cntr;
static struct fid_eq *eq;

/* Opens a set with one member of each kind; the queue is bound to p.ep[0] instead of the pair's. */
static void open_set(enum fi_wait_obj obj)
{
	struct ofi_options opts = { .threading = FI_THREAD_SAFE };
	struct fi_wait_attr attr = { .wait_obj = obj };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET };
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_SET };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_SET, .flags = FI_WRITE };

	ofi_domain_open(&p, &opts);
	cr_assert_eq(fi_wait_open(p.fabric, &attr, &set), 0);
	cq_attr.wait_set = cntr_attr.wait_set = eq_attr.wait_set = set;
	cr_assert_eq(fi_cq_open(p.domain, &cq_attr, &cq, NULL), 0);
	cr_assert_eq(fi_cntr_open(p.domain, &cntr_attr, &cntr, NULL), 0);
	cr_assert_eq(fi_eq_open(p.fabric, &eq_attr, &eq, NULL), 0);
}

static void open_ep(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	char name[64];
	size_t len = sizeof(name);

	cr_assert_eq(fi_av_open(p.domain, &attr, &p.av, NULL), 0);
	cr_assert_eq(fi_endpoint(p.domain, p.info, &p.ep[0], NULL), 0);
	cr_assert_eq(fi_ep_bind(p.ep[0], &p.av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(p.ep[0], &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_enable(p.ep[0]), 0);
	cr_assert_eq(fi_getname(&p.ep[0]->fid, name, &len), 0);
	cr_assert_eq(fi_av_insert(p.av, name, 1, &p.addr[0], 0, NULL), 1);
}

static void close_set(void)
{
	if (p.ep[0])
		cr_assert_eq(fi_close(&p.ep[0]->fid), 0);
	p.ep[0] = NULL;
	cr_assert_eq(fi_close(&set->fid), -FI_EBUSY, "it has members");
	cr_assert_eq(fi_close(&eq->fid), 0);
	cr_assert_eq(fi_close(&cntr->fid), 0);
	cr_assert_eq(fi_close(&cq->fid), 0);
	cr_assert_eq(fi_close(&p.fabric->fid), -FI_EBUSY, "the set belongs to it");
	cr_assert_eq(fi_close(&set->fid), 0);
	ofi_pair_close(&p);
}

static void write_event(void)
{
	struct fi_eq_entry entry = { 0 };

	cr_assert_eq(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
}

static void read_event(void)
{
	struct fi_eq_entry entry;
	uint32_t event;

	cr_assert_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
}

Test(cpr_waitset, an_empty_wait_ends_in_time)
{
	uint64_t t0;

	open_set(FI_WAIT_UNSPEC);
	t0 = util_clock_ns();
	cr_expect_eq(fi_wait(set, 30), -FI_ETIMEDOUT);
	cr_expect_geq(util_clock_ns() - t0, 30 * UTIL_NS_PER_MS);
	cr_expect_eq(fi_wait(set, 0), -FI_ETIMEDOUT);
	close_set();
}

Test(cpr_waitset, a_signal_handler_ends_a_wait, .timeout = 60)
{
	struct ofi_kicker kicker;

	open_set(FI_WAIT_FD);
	ofi_kicker_start(&kicker);
	cr_expect_eq(fi_wait(set, -1), -FI_EINTR);
	ofi_kicker_stop(&kicker);
	close_set();
}

static void *write_event_later(void *arg)
{
	usleep(20000);
	write_event();
	return NULL;
}

static void *count_later(void *arg)
{
	usleep(20000);
	fi_cntr_add(cntr, 1);
	return NULL;
}

static void *send_later(void *arg)
{
	usleep(20000);
	if (fi_tinject(p.ep[0], "abc", 4, p.addr[0], 1))
		abort();
	return NULL;
}

static void expect_woken_by(void *(*cause)(void *))
{
	pthread_t thread;

	pthread_create(&thread, NULL, cause, NULL);
	cr_expect_eq(fi_wait(set, 60000), 0);
	pthread_join(thread, NULL);
}

static void every_member_wakes(enum fi_wait_obj obj)
{
	struct fi_cq_tagged_entry e;
	char in[4];

	open_set(obj);
	open_ep();
	expect_woken_by(write_event_later);
	cr_expect_eq(fi_wait(set, -1), 0, "it was not read yet");
	read_event();
	expect_woken_by(count_later);
	cr_expect_eq(fi_cntr_read(cntr), 1);
	cr_assert_eq(fi_trecv(p.ep[0], in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	expect_woken_by(send_later);
	cr_expect_eq(ofi_read(cq, &e), 1);
	cr_expect_eq(fi_wait(set, 10), -FI_ETIMEDOUT, "all is read");
	close_set();
}

Test(cpr_waitset, every_member_wakes_a_sleeper)
{
	every_member_wakes(FI_WAIT_FD);
}

Test(cpr_waitset, every_member_ends_a_yielding_wait)
{
	every_member_wakes(FI_WAIT_YIELD);
}

Test(cpr_waitset, members_return_the_descriptor_of_the_set)
{
	struct pollfd pfd = { .events = POLLIN };
	struct fid *fids[1];
	enum fi_wait_obj obj;
	int fd;

	open_set(FI_WAIT_FD);
	fids[0] = &set->fid;
	cr_assert_eq(fi_control(&set->fid, FI_GETWAIT, &pfd.fd), 0);
	cr_expect_eq(fi_control(&cq->fid, FI_GETWAIT, &fd), 0);
	cr_expect_eq(fd, pfd.fd);
	cr_expect_eq(fi_control(&eq->fid, FI_GETWAITOBJ, &obj), 0);
	cr_expect_eq(obj, FI_WAIT_FD);
	while (fi_trywait(p.fabric, fids, 1) == -FI_EAGAIN)
		;
	cr_expect_eq(poll(&pfd, 1, 0), 0);
	write_event();
	cr_expect_eq(poll(&pfd, 1, 0), 1);
	cr_expect_eq(fi_trywait(p.fabric, fids, 1), -FI_EAGAIN);
	read_event();
	while (fi_trywait(p.fabric, fids, 1) == -FI_EAGAIN)
		;
	cr_expect_eq(poll(&pfd, 1, 0), 0, "nothing is left");
	close_set();
}

static void *try_all_the_time(void *over)
{
	struct fid *fids[1] = { &set->fid };

	while (!__atomic_load_n((bool *)over, __ATOMIC_RELAXED))
		fi_trywait(p.fabric, fids, 1);
	return NULL;
}

Test(cpr_waitset, a_member_is_controlled_while_its_set_is_in_use, .timeout = 60)
{
	bool over = false;
	pthread_t thread;
	int fd;

	open_set(FI_WAIT_FD);
	pthread_create(&thread, NULL, try_all_the_time, &over);
	for (int i = 0; i < 20000; i++)
		cr_assert_eq(fi_control(&eq->fid, FI_GETWAIT, &fd), 0);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	close_set();
}

Test(cpr_waitset, members_do_not_block_alone)
{
	struct fi_cq_tagged_entry e;
	struct fi_eq_entry entry;
	uint32_t event;

	open_set(FI_WAIT_UNSPEC);
	cr_expect_eq(fi_cq_sread(cq, &e, 1, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_cntr_wait(cntr, 1, 0), -FI_ENOSYS);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0), -FI_ENOSYS);
	close_set();
}

Test(cpr_waitset, a_member_may_be_closed_before_others)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_SET };
	struct fid_cq *other;

	open_set(FI_WAIT_FD);
	attr.wait_set = set;
	cr_assert_eq(fi_cq_open(p.domain, &attr, &other, NULL), 0);
	cr_expect_eq(fi_close(&other->fid), 0);
	cr_expect_eq(fi_wait(set, 10), -FI_ETIMEDOUT);
	write_event();
	cr_expect_eq(fi_wait(set, 10), 0);
	close_set();
}

Test(cpr_waitset, invalid_arguments_are_refused)
{
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_SET };
	struct ofi_options opts = { 0 };

	ofi_domain_open(&p, &opts);
	cr_expect_eq(fi_wait_open(p.fabric, &attr, &set), -FI_EINVAL);
	attr.wait_obj = FI_WAIT_SET;
	cr_expect_eq(fi_wait_open(p.fabric, &attr, &set), -FI_EINVAL);
	attr.wait_obj = FI_WAIT_MUTEX_COND;
	cr_expect_eq(fi_wait_open(p.fabric, &attr, &set), -FI_ENOSYS);
	attr = (struct fi_wait_attr){ .wait_obj = FI_WAIT_FD, .flags = 1 };
	cr_expect_eq(fi_wait_open(p.fabric, &attr, &set), -FI_EINVAL);
	cr_expect_eq(fi_cq_open(p.domain, &cq_attr, &cq, NULL), -FI_EINVAL, "no set");
	ofi_pair_close(&p);
}
