/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Event queues (fi_eq(3)). */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "ofi/queue/cpr_eq.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/clock.h"

static struct ofi_pair p;
static struct fid_eq *eq;

static void open_eq(uint64_t flags, enum fi_wait_obj wait_obj)
{
	struct fi_eq_attr attr = { .flags = flags, .wait_obj = wait_obj };

	cr_assert_eq(fi_eq_open(p.fabric, &attr, &eq, NULL), 0);
}

static void setup(void)
{
	struct ofi_options opts = { 0 };

	ofi_domain_open(&p, &opts);
}

static void teardown(void)
{
	if (eq)
		cr_expect_eq(fi_close(&eq->fid), 0);
	ofi_pair_close(&p);
}

TestSuite(cpr_eq, .init = setup, .fini = teardown);

static void put(uintptr_t number)
{
	struct fi_eq_entry entry = { .fid = &eq->fid, .context = (void *)number };

	cr_assert_eq(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
}

static ssize_t take(uintptr_t *number, uint64_t flags)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t event = ~0u;
	ssize_t ret = fi_eq_read(eq, &event, &entry, sizeof(entry), flags);

	if (ret > 0)
		cr_expect_eq(event, FI_NOTIFY);
	*number = (uintptr_t)entry.context;
	return ret;
}

Test(cpr_eq, events_written_by_the_user_come_back_in_order)
{
	uintptr_t i, got;

	open_eq(FI_WRITE, FI_WAIT_NONE);
	for (i = 0; i < 100; i++)
		put(i);
	for (i = 0; i < 100; i++) {
		cr_expect_eq(take(&got, FI_PEEK), sizeof(struct fi_eq_entry));
		cr_expect_eq(got, i);
		cr_expect_eq(take(&got, 0), sizeof(struct fi_eq_entry));
		cr_expect_eq(got, i);
	}
	cr_expect_eq(take(&got, 0), -FI_EAGAIN);
}

Test(cpr_eq, an_empty_queue_has_neither_events_nor_errors)
{
	struct fi_eq_err_entry err = { 0 };
	uintptr_t got;

	open_eq(0, FI_WAIT_NONE);
	cr_expect_eq(take(&got, 0), -FI_EAGAIN);
	cr_expect_eq(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN);
}

Test(cpr_eq, writing_needs_fi_write)
{
	struct fi_eq_entry entry = { 0 };

	open_eq(0, FI_WAIT_NONE);
	cr_expect_eq(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), -FI_EINVAL);
}

Test(cpr_eq, a_buffer_too_small_leaves_the_event)
{
	struct fi_eq_entry entry;
	uint32_t event;
	uintptr_t got;

	open_eq(FI_WRITE, FI_WAIT_NONE);
	put(5);
	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry) - 1, 0), -FI_ETOOSMALL);
	cr_expect_eq(take(&got, 0), sizeof(entry));
	cr_expect_eq(got, 5);
}

Test(cpr_eq, sread_ends_after_its_time)
{
	struct fi_eq_entry entry;
	uint64_t t0 = util_clock_ns();
	uint32_t event;

	open_eq(0, FI_WAIT_UNSPEC);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), 50, 0), -FI_EAGAIN);
	cr_expect_geq(util_clock_ns() - t0, 50 * UTIL_NS_PER_MS);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0), -FI_EAGAIN);
}

static void *write_later(void *arg)
{
	usleep(20000);
	put(77);
	return NULL;
}

Test(cpr_eq, an_event_of_another_thread_ends_sread)
{
	struct fi_eq_entry entry;
	uint32_t event;
	pthread_t thread;

	open_eq(FI_WRITE, FI_WAIT_UNSPEC);
	pthread_create(&thread, NULL, write_later, NULL);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0), sizeof(entry));
	cr_expect_eq((uintptr_t)entry.context, 77);
	pthread_join(thread, NULL);
}

Test(cpr_eq, a_signal_handler_ends_sread, .timeout = 60)
{
	struct fi_eq_entry entry;
	struct ofi_kicker kicker;
	uint32_t event;

	open_eq(0, FI_WAIT_FD);
	ofi_kicker_start(&kicker);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0), -FI_EAGAIN);
	ofi_kicker_stop(&kicker);
}

Test(cpr_eq, sread_needs_a_wait_object)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct fi_eq_entry entry;
	uint32_t event;
	int fd;

	open_eq(0, FI_WAIT_NONE);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0), -FI_ENOSYS);
	cr_expect_eq(fi_control(&eq->fid, FI_GETWAIT, &fd), -FI_ENOSYS);
	cr_expect_eq(fi_eq_open(p.fabric, &attr, &eq, NULL), -FI_ENOSYS);
}

Test(cpr_eq, the_descriptor_is_readable_when_there_is_an_event)
{
	struct fid *fids[1];
	struct pollfd pfd = { .events = POLLIN };
	uintptr_t got;

	open_eq(FI_WRITE, FI_WAIT_FD);
	fids[0] = &eq->fid;
	cr_assert_eq(fi_control(&eq->fid, FI_GETWAIT, &pfd.fd), 0);
	cr_expect_eq(fi_trywait(p.fabric, fids, 1), 0);
	cr_expect_eq(poll(&pfd, 1, 0), 0);
	put(1);
	cr_expect_eq(poll(&pfd, 1, 0), 1);
	cr_expect_eq(fi_trywait(p.fabric, fids, 1), -FI_EAGAIN);
	cr_expect_eq(take(&got, 0), sizeof(struct fi_eq_entry));
	cr_expect_eq(fi_trywait(p.fabric, fids, 1), 0);
	cr_expect_eq(poll(&pfd, 1, 0), 0);
}

Test(cpr_eq, errors_have_texts)
{
	char buf[64];

	open_eq(0, FI_WAIT_NONE);
	cr_expect_str_eq(fi_eq_strerror(eq, FI_EINVAL, NULL, buf, sizeof(buf)),
			 fi_strerror(FI_EINVAL));
	cr_expect_str_eq(buf, fi_strerror(FI_EINVAL));
}

/*
 * A peer may request the next connection before this end has handled that the first is established.
 */
Test(cpr_eq, connected_is_reported_before_waiting_requests)
{
	static const uint32_t order[] = { FI_SHUTDOWN, FI_CONNECTED, FI_CONNECTED, FI_CONNREQ,
					  FI_CONNREQ };
	struct fi_eq_cm_entry entry;
	struct cpr_eq *queue;
	uint32_t event, i;

	open_eq(0, FI_WAIT_NONE);
	queue = cpr_eq_of(&eq->fid);
	cr_assert_eq(cpr_eq_post_cm(queue, FI_SHUTDOWN, &p.domain->fid, NULL, 0), 0);
	cr_assert_eq(cpr_eq_post_connreq(queue, &eq->fid, NULL, NULL, 0, NULL), 0);
	cr_assert_eq(cpr_eq_post_cm(queue, FI_CONNECTED, &p.domain->fid, NULL, 0), 0);
	cr_assert_eq(cpr_eq_post_connreq(queue, &eq->fid, NULL, NULL, 0, NULL), 0);
	cr_assert_eq(cpr_eq_post_cm(queue, FI_CONNECTED, &p.fabric->fid, NULL, 0), 0);
	for (i = 0; i < 5; i++) {
		cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
		cr_expect_eq(event, order[i]);
	}
}
