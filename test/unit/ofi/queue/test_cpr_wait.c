/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wait objects of one queue or counter (fi_poll(3), fi_cq(3), fi_cntr(3), fi_eq(3)). */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_eq.h>
#include <unistd.h>

#include "unit/ofi/ofi_fixture.h"
#include "util/clock.h"
#include "util/fi_old.h"

static struct ofi_pair p;
static struct fid_eq *eq;

static void open_all(enum fi_wait_obj obj)
{
	struct ofi_options opts = { .counters = true,
				    .wait_obj = obj,
				    .threading = FI_THREAD_SAFE };
	struct fi_eq_attr attr = { .wait_obj = obj, .flags = FI_WRITE };

	ofi_pair_open(&p, &opts);
	cr_assert_eq(fi_eq_open(p.fabric, &attr, &eq, NULL), 0);
}

static void close_all(void)
{
	cr_assert_eq(fi_close(&eq->fid), 0);
	ofi_pair_close(&p);
}

/* One object of each kind. */
#define FIDS 3
static struct fid *fid_of(int i)
{
	struct fid *fids[FIDS] = { &p.cq[1]->fid, &p.rx_cntr[1]->fid, &eq->fid };

	return fids[i];
}

/* Causes something to read: a message; in the event queue, an event. */
static void cause_event(int i)
{
	struct fi_eq_entry entry = { 0 };
	static char in[4], out[4];

	if (fid_of(i)->fclass == FI_CLASS_EQ) {
		cr_assert_eq(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
		return;
	}
	cr_assert_eq(fi_trecv(p.ep[1], in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[0], out, 4, p.addr[1], 1)), 0);
}

Test(cpr_wait, each_kind_is_reported_and_has_its_descriptor)
{
	static const enum fi_wait_obj kinds[] = { FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD };
	enum fi_wait_obj obj;
	unsigned k;
	int i;

	for (k = 0; k < 3; k++) {
		open_all(kinds[k]);
		for (i = 0; i < FIDS; i++) {
			struct pollfd pfd = { .fd = -1 };
			struct fi_wait_pollfd list = { .nfds = 1, .fd = &pfd };
			int fd = -1;

			cr_expect_eq(fi_control(fid_of(i), FI_GETWAITOBJ, &obj), 0);
			cr_expect_eq(obj, kinds[k] == FI_WAIT_UNSPEC ? FI_WAIT_FD : kinds[k]);
			cr_expect_eq(fi_control(fid_of(i), FI_GETWAIT,
						obj == FI_WAIT_FD ? (void *)&fd : &list),
				     0);
			cr_expect_geq(obj == FI_WAIT_FD ? fd : pfd.fd, 0);
			cr_expect_eq(fi_control(fid_of(i), FI_GETWAIT, NULL), -FI_EINVAL);
		}
		close_all();
	}
}

Test(cpr_wait, a_short_list_returns_its_length)
{
	struct pollfd pfd;
	struct fi_wait_pollfd list = { .nfds = 0, .fd = &pfd };
	uint64_t index;

	open_all(FI_WAIT_POLLFD);
	cr_expect_eq(fi_control(&p.cq[0]->fid, FI_GETWAIT, &list), -FI_ETOOSMALL);
	cr_expect_eq(list.nfds, 1);
	index = list.change_index;
	cr_expect_eq(fi_control(&p.cq[0]->fid, FI_GETWAIT, &list), 0);
	cr_expect_eq(pfd.events, POLLIN);
	cr_expect_eq(list.change_index, index, "nothing has changed");
	close_all();
}

Test(cpr_wait, condition_variables_are_refused)
{
	struct ofi_options opts = { 0 };
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct fid_cntr *cntr;
	struct fid_cq *cq;

	ofi_domain_open(&p, &opts);
	cr_expect_eq(fi_cq_open(p.domain, &cq_attr, &cq, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_cntr_open(p.domain, &cntr_attr, &cntr, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_eq_open(p.fabric, &eq_attr, &eq, NULL), -FI_ENOSYS);
	cntr_attr = (struct fi_cntr_attr){ .events = FI_CNTR_EVENTS_COMP + 1 };
	cr_expect_eq(fi_cntr_open(p.domain, &cntr_attr, &cntr, NULL), -FI_ENOSYS);
	ofi_pair_close(&p);
}

Test(cpr_wait, yielding_has_no_descriptor_and_ends_in_time)
{
	struct fi_cq_tagged_entry e;
	struct fi_eq_entry entry;
	enum fi_wait_obj obj;
	uint64_t t0;
	uint32_t event;
	int fd, i;

	open_all(FI_WAIT_YIELD);
	for (i = 0; i < FIDS; i++) {
		struct fid *fids[1] = { fid_of(i) };

		cr_expect_eq(fi_control(fid_of(i), FI_GETWAITOBJ, &obj), 0);
		cr_expect_eq(obj, FI_WAIT_YIELD);
		cr_expect_eq(fi_control(fid_of(i), FI_GETWAIT, &fd), -FI_ENOSYS);
		cr_expect_eq(fi_trywait(p.fabric, fids, 1), -FI_EINVAL);
	}
	t0 = util_clock_ns();
	cr_expect_eq(fi_cq_sread(p.cq[1], &e, 1, NULL, 20), -FI_EAGAIN);
	cr_expect_eq(fi_cntr_wait(p.rx_cntr[1], 1, 20), -FI_ETIMEDOUT);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), 20, 0), -FI_EAGAIN);
	cr_expect_geq(util_clock_ns() - t0, 60 * UTIL_NS_PER_MS);
	cause_event(0);
	cause_event(2);
	cr_expect_eq(fi_cntr_wait(p.rx_cntr[1], 1, -1), 0);
	cr_expect_eq(fi_cq_sread(p.cq[1], &e, 1, NULL, -1), 1);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0), sizeof(entry));
	close_all();
}

static void *cause_event_later(void *arg)
{
	usleep(20000);
	cause_event(*(int *)arg);
	return NULL;
}

/* Reads one entry. Returns false if there is none. */
static bool read_one(int i)
{
	struct fi_cq_tagged_entry e;
	struct fi_eq_entry entry;
	static uint64_t counted;
	uint32_t event;

	switch (fid_of(i)->fclass) {
	case FI_CLASS_CQ: return fi_cq_read(p.cq[1], &e, 1) == 1;
	case FI_CLASS_EQ: return fi_eq_read(eq, &event, &entry, sizeof(entry), 0) > 0;
	default:
		if (fi_cntr_read(p.rx_cntr[1]) == counted)
			return false;
		counted = fi_cntr_read(p.rx_cntr[1]);
		return true;
	}
}

/* Loop of fi_poll(3): fi_trywait, sleep on the descriptor, read. */
Test(cpr_wait, trywait_and_poll_are_woken_on_every_object, .timeout = 200)
{
	struct pollfd pfd = { .events = POLLIN };
	int i, round, ready;
	pthread_t thread;

	open_all(FI_WAIT_FD);
	for (i = 0; i < FIDS; i++) {
		struct fid *fids[1] = { fid_of(i) };

		cr_assert_eq(fi_control(fid_of(i), FI_GETWAIT, &pfd.fd), 0);
		while (read_one(i))
			;
		for (round = 0; round < 3; round++) {
			pthread_create(&thread, NULL, cause_event_later, &i);
			do {
				ready = 1;
				if (!fi_trywait(p.fabric, fids, 1))
					ready = poll(&pfd, 1, 60000);
				cr_assert_eq(ready, 1, "object not woken: %d", i);
			} while (!read_one(i));
			pthread_join(thread, NULL);
		}
	}
	close_all();
}

Test(cpr_wait, a_counter_that_changed_since_it_was_read_is_not_slept_on)
{
	struct fid *fids[1];

	open_all(FI_WAIT_FD);
	fids[0] = &p.rx_cntr[0]->fid;
	cr_expect_eq(fi_cntr_read(p.rx_cntr[0]), 0);
	while (fi_trywait(p.fabric, fids, 1))
		;
	fi_cntr_add(p.rx_cntr[0], 1);
	cr_expect_eq(fi_trywait(p.fabric, fids, 1), -FI_EAGAIN, "not read since");
	fi_cntr_adderr(p.rx_cntr[0], 1);
	cr_expect_eq(fi_trywait(p.fabric, fids, 1), -FI_EAGAIN);
	while (fi_trywait(p.fabric, fids, 1))
		;
	close_all();
}

/* Makes fi_trywait permit to sleep on `fid`, and returns the descriptor. */
static struct pollfd permitted(struct fid *fid)
{
	struct pollfd pfd = { .events = POLLIN };
	struct fid *fids[1] = { fid };

	cr_assert_eq(fi_control(fid, FI_GETWAIT, &pfd.fd), 0);
	while (fi_trywait(p.fabric, fids, 1))
		;
	return pfd;
}

Test(cpr_wait, who_may_sleep_is_woken_although_another_thread_has_waited)
{
	struct fi_cq_tagged_entry e;
	static char out[4];
	struct pollfd pfd;

	open_all(FI_WAIT_FD);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[0], out, 4, p.addr[1], 1)), 0);
	pfd = permitted(&p.cq[0]->fid);
	cr_assert_eq(fi_cq_sread(p.cq[0], &e, 1, NULL, 1), -FI_EAGAIN);
	cr_assert_eq(fi_tsend(p.ep[0], out, 4, NULL, p.addr[1], 1, NULL), 0);
	cr_expect_eq(poll(&pfd, 1, 10000), 1, "a queue");
	pfd = permitted(&p.rx_cntr[0]->fid);
	cr_assert_eq(fi_cntr_wait(p.rx_cntr[0], 1, 1), -FI_ETIMEDOUT);
	cr_assert_eq(fi_cntr_add(p.rx_cntr[0], 1), 0);
	cr_expect_eq(poll(&pfd, 1, 10000), 1, "a counter");
	close_all();
}
