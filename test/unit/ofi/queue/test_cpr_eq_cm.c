/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection events: read with their data, or dropped when their endpoint is closed. */
#include <criterion/criterion.h>
#include <rdma/fi_cm.h>
#include <string.h>

#include "ofi/queue/cpr_eq.h"
#include "unit/ofi/ofi_fixture.h"

static struct ofi_pair p;
static struct fid_eq *fid;
static struct cpr_eq *eq;
static struct fid ends[2]; /* owners of the events */

static void setup(void)
{
	struct ofi_options opts = { 0 };
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };

	ofi_domain_open(&p, &opts);
	cr_assert_eq(fi_eq_open(p.fabric, &attr, &fid, NULL), 0);
	eq = cpr_eq_of(&fid->fid);
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&fid->fid), 0);
	ofi_pair_close(&p);
}

TestSuite(cpr_eq_cm, .init = setup, .fini = teardown);

/** Reads the next event, into `room` bytes behind its entry. */
static ssize_t next(uint32_t *event, struct fi_eq_cm_entry *entry, char *data, size_t room)
{
	union {
		struct fi_eq_cm_entry entry;
		char bytes[sizeof(struct fi_eq_cm_entry) + 64];
	} buf;
	ssize_t ret = fi_eq_read(fid, event, &buf, sizeof(buf.entry) + room, 0);

	if (ret < 0)
		return ret;
	*entry = buf.entry;
	memcpy(data, buf.bytes + sizeof(buf.entry), (size_t)ret - sizeof(buf.entry));
	return ret - (ssize_t)sizeof(buf.entry);
}

Test(cpr_eq_cm, an_event_has_its_owner_and_the_peers_data)
{
	struct fi_eq_cm_entry entry;
	char data[64];
	uint32_t event;

	cr_assert_eq(cpr_eq_post_cm(eq, FI_CONNECTED, &ends[0], "hello", 5), 0);
	cr_assert_eq(cpr_eq_post_cm(eq, FI_SHUTDOWN, &ends[1], NULL, 0), 0);
	cr_assert_eq(next(&event, &entry, data, 64), 5);
	cr_expect_eq(event, FI_CONNECTED);
	cr_expect_eq(entry.fid, &ends[0]);
	cr_expect_null(entry.info);
	cr_expect_arr_eq(data, "hello", 5);
	cr_assert_eq(next(&event, &entry, data, 64), 0);
	cr_expect_eq(event, FI_SHUTDOWN);
	cr_expect_eq(entry.fid, &ends[1]);
	cr_expect_eq(next(&event, &entry, data, 64), -FI_EAGAIN);
}

Test(cpr_eq_cm, a_short_buffer_cuts_the_data_but_not_the_entry)
{
	struct fi_eq_cm_entry entry;
	char data[64];
	uint32_t event;

	cr_assert_eq(cpr_eq_post_cm(eq, FI_CONNECTED, &ends[0], "hello", 5), 0);
	cr_expect_eq(fi_eq_read(fid, &event, &entry, sizeof(entry) - 1, 0), -FI_ETOOSMALL);
	cr_assert_eq(next(&event, &entry, data, 2), 2);
	cr_expect_arr_eq(data, "he", 2);
	cr_expect_eq(next(&event, &entry, data, 64), -FI_EAGAIN, "and it is read");
}

Test(cpr_eq_cm, a_failure_is_an_error_with_the_peers_data)
{
	char said[8];
	struct fi_eq_err_entry err = { .err_data = said, .err_data_size = sizeof(said) };
	struct fi_eq_cm_entry entry;
	char data[64];
	uint32_t event;

	cr_assert_eq(cpr_eq_post_cm_err(eq, &ends[0], -FI_ECONNREFUSED, "no", 2), 0);
	cr_expect_eq(next(&event, &entry, data, 64), -FI_EAVAIL);
	cr_assert_eq(fi_eq_readerr(fid, &err, 0), sizeof(err));
	cr_expect_eq(err.fid, &ends[0]);
	cr_expect_eq(err.err, FI_ECONNREFUSED);
	cr_expect_eq(err.err_data_size, 2);
	cr_expect_arr_eq(said, "no", 2);
	cr_expect_eq(fi_eq_readerr(fid, &err, 0), -FI_EAGAIN);
}

static unsigned dropped;

static void drop(struct cpr_eq_event *ev)
{
	dropped++;
}

Test(cpr_eq_cm, closing_an_endpoint_drops_its_events)
{
	struct fi_eq_cm_entry entry;
	char data[64];
	uint32_t event;

	for (int i = 0; i < 3; i++) {
		cr_assert_eq(cpr_eq_post_connreq(eq, &ends[0], NULL, NULL, 0, drop), 0);
		cr_assert_eq(cpr_eq_post_cm(eq, FI_SHUTDOWN, &ends[1], NULL, 0), 0);
		cr_assert_eq(cpr_eq_post_cm_err(eq, &ends[0], -FI_EIO, NULL, 0), 0);
	}
	cpr_eq_forget(eq, &ends[0]);
	cr_expect_eq(dropped, 3, "all requests are rejected");
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(next(&event, &entry, data, 64), 0);
		cr_expect_eq(event, FI_SHUTDOWN);
		cr_expect_eq(entry.fid, &ends[1]);
	}
	cr_expect_eq(next(&event, &entry, data, 64), -FI_EAGAIN);
}

Test(cpr_eq_cm, only_unread_events_are_dropped)
{
	struct fi_eq_cm_entry entry;
	char data[64];
	uint32_t event;

	cr_assert_eq(cpr_eq_post_connreq(eq, &ends[0], p.info, NULL, 0, drop), 0);
	cr_assert_eq(cpr_eq_post_connreq(eq, &ends[0], NULL, NULL, 0, drop), 0);
	cr_assert_eq(next(&event, &entry, data, 64), 0);
	cr_expect_eq(event, FI_CONNREQ);
	cr_expect_eq(entry.info, p.info);
	cr_expect_eq(dropped, 0);
	cpr_eq_forget(eq, &ends[0]);
	cr_expect_eq(dropped, 1);
}
