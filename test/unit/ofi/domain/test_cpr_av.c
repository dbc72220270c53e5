/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address vectors (fi_av(3)). */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "unit/ofi/ofi_fixture.h"
#include "util/fi_old.h"

static struct ofi_pair p;

static void setup(void)
{
	struct ofi_options opts = { 0 };

	ofi_domain_open(&p, &opts);
}

static void teardown(void)
{
	ofi_pair_close(&p);
}

TestSuite(cpr_av, .init = setup, .fini = teardown);

static void open_av(enum fi_av_type type, uint64_t flags)
{
	struct fi_av_attr attr = { .type = type, .count = 4, .flags = flags };

	cr_assert_eq(fi_av_open(p.domain, &attr, &p.av, NULL), 0);
}

static struct sockaddr_in sin_of(const char *host, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, host, &sin.sin_addr);
	return sin;
}

static void expect_is(fi_addr_t fi_addr, const char *host, uint16_t port)
{
	struct sockaddr_in want = sin_of(host, port), got = { 0 };
	size_t len = sizeof(got);

	cr_assert_eq(fi_av_lookup(p.av, fi_addr, &got, &len), 0);
	cr_expect_eq(len, sizeof(got));
	cr_expect_arr_eq(&got, &want, sizeof(want));
}

Test(cpr_av, a_table_counts_from_zero_in_insertion_order)
{
	struct sockaddr_in addrs[3] = { sin_of("10.0.0.1", 1), sin_of("10.0.0.2", 2),
					sin_of("10.0.0.3", 3) };
	fi_addr_t fi_addr[3];

	open_av(FI_AV_TABLE, 0);
	cr_assert_eq(fi_av_insert(p.av, addrs, 3, fi_addr, FI_MORE, NULL), 3);
	cr_expect_eq(fi_addr[0], 0);
	cr_expect_eq(fi_addr[1], 1);
	cr_expect_eq(fi_addr[2], 2);
	expect_is(0, "10.0.0.1", 1);
	expect_is(2, "10.0.0.3", 3);
}

Test(cpr_av, a_table_does_not_need_the_fi_addr_array)
{
	struct sockaddr_in addr = sin_of("10.0.0.1", 1);

	open_av(FI_AV_TABLE, 0);
	cr_expect_eq(fi_av_insert(p.av, &addr, 1, NULL, 0, NULL), 1);
	expect_is(0, "10.0.0.1", 1);
}

Test(cpr_av, bad_addresses_fail_one_by_one)
{
	struct sockaddr_in addrs[3] = { sin_of("10.0.0.1", 1) };
	fi_addr_t fi_addr[3] = { 0, 0, 0 };
	int errs[3] = { -1, -1, -1 };

	addrs[2] = sin_of("10.0.0.3", 3);
	open_av(FI_AV_MAP, 0);
	cr_expect_eq(fi_av_insert(p.av, addrs, 3, fi_addr, FI_SYNC_ERR, errs), 2);
	cr_expect_eq(fi_addr[1], FI_ADDR_NOTAVAIL);
	cr_expect_eq(errs[0], 0);
	cr_expect_gt(errs[1], 0);
	cr_expect_eq(errs[2], 0);
	expect_is(fi_addr[0], "10.0.0.1", 1);
	expect_is(fi_addr[2], "10.0.0.3", 3);
}

Test(cpr_av, unknown_flags_are_refused)
{
	struct sockaddr_in addr = sin_of("10.0.0.1", 1);
	fi_addr_t fi_addr;

	open_av(FI_AV_MAP, 0);
	cr_expect_eq(fi_av_insert(p.av, &addr, 1, &fi_addr, FI_AV_USER_ID, NULL), -FI_EBADFLAGS);
	cr_expect_eq(fi_av_remove(p.av, &fi_addr, 1, 1), -FI_EINVAL);
}

Test(cpr_av, a_removed_address_is_gone_and_can_come_back)
{
	struct sockaddr_in addr = sin_of("10.0.0.1", 1);
	struct sockaddr_in got;
	size_t len = sizeof(got);
	fi_addr_t fi_addr;
	int i;

	open_av(FI_AV_TABLE, 0);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(fi_av_insert(p.av, &addr, 1, &fi_addr, 0, NULL), 1);
		expect_is(fi_addr, "10.0.0.1", 1);
		cr_expect_eq(fi_av_remove(p.av, &fi_addr, 1, 0), 0);
		cr_expect_eq(fi_av_lookup(p.av, fi_addr, &got, &len), -FI_EINVAL);
	}
	cr_expect_eq(fi_av_remove(p.av, &fi_addr, 1, 0), -FI_EINVAL);
}

Test(cpr_av, lookup_cuts_to_the_buffer_and_returns_the_length)
{
	struct sockaddr_in addr = sin_of("10.0.0.1", 1);
	uint8_t buf[sizeof(addr) + 1];
	size_t len = 4;
	fi_addr_t fi_addr;

	open_av(FI_AV_TABLE, 0);
	cr_assert_eq(fi_av_insert(p.av, &addr, 1, &fi_addr, 0, NULL), 1);
	memset(buf, 0xEE, sizeof(buf));
	cr_expect_eq(fi_av_lookup(p.av, fi_addr, buf, &len), 0);
	cr_expect_eq(len, sizeof(addr));
	cr_expect_arr_eq(buf, &addr, 4);
	cr_expect_eq(buf[4], 0xEE);
}

Test(cpr_av, services_are_inserted_by_name)
{
	fi_addr_t fi_addr;

	open_av(FI_AV_TABLE, 0);
	cr_assert_eq(fi_av_insertsvc(p.av, "10.0.0.9", "99", &fi_addr, 0, NULL), 1);
	expect_is(fi_addr, "10.0.0.9", 99);
	cr_assert_eq(fi_av_insertsvc(p.av, "fi_sockaddr_in://10.0.0.8:88", NULL, &fi_addr, 0, NULL),
		     1);
	expect_is(fi_addr, "10.0.0.8", 88);
	cr_expect_eq(fi_av_insertsvc(p.av, "10.0.0.9", "no-such-service", &fi_addr, 0, NULL), 0);
	cr_expect_eq(fi_addr, FI_ADDR_NOTAVAIL);
}

Test(cpr_av, a_symmetric_range_is_every_service_of_every_node)
{
	fi_addr_t fi_addr[4];

	open_av(FI_AV_TABLE, 0);
	cr_assert_eq(fi_av_insertsym(p.av, "10.1.1.1", 2, "5000", 2, fi_addr, 0, NULL), 4);
	expect_is(fi_addr[0], "10.1.1.1", 5000);
	expect_is(fi_addr[1], "10.1.1.1", 5001);
	expect_is(fi_addr[2], "10.1.1.2", 5000);
	expect_is(fi_addr[3], "10.1.1.2", 5001);
}

Test(cpr_av, straddr_writes_an_address_that_reads_back)
{
	struct sockaddr_in addr = sin_of("10.2.3.4", 567);
	char buf[64];
	size_t len = sizeof(buf);

	open_av(FI_AV_TABLE, 0);
	cr_expect_eq(fi_av_straddr(p.av, &addr, buf, &len), buf);
	cr_expect_str_eq(buf, "fi_sockaddr_in://10.2.3.4:567");
	cr_expect_eq(len, strlen(buf) + 1);
	len = 5;
	fi_av_straddr(p.av, &addr, buf, &len);
	cr_expect_str_eq(buf, "fi_s");
}

Test(cpr_av, asynchronous_insertion_reports_failures_before_the_end)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct sockaddr_in addrs[2] = { sin_of("10.0.0.1", 1) };
	fi_addr_t fi_addr[2] = { 0, 0 };
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	struct fid_eq *eq;
	uint32_t event;
	int ctx;

	open_av(FI_AV_TABLE, FI_EVENT);
	cr_expect_eq(fi_av_insert(p.av, addrs, 1, fi_addr, 0, NULL), -FI_ENOEQ);
	cr_assert_eq(fi_eq_open(p.fabric, &attr, &eq, NULL), 0);
	cr_assert_eq(fi_av_bind(p.av, &eq->fid, 0), 0);
	cr_expect_eq(fi_av_insert(p.av, addrs, 2, fi_addr, 0, &ctx), 0);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), 1000, 0), -FI_EAVAIL);
	cr_expect_eq(fi_eq_readerr(eq, &err, 0), sizeof(err));
	cr_expect_eq(err.fid, &p.av->fid);
	cr_expect_eq(err.context, &ctx);
	cr_expect_eq(err.data, 1, "the index of the address");
	cr_expect_gt(err.err, 0);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), 1000, 0), sizeof(entry));
	cr_expect_eq(event, FI_AV_COMPLETE);
	cr_expect_eq(entry.data, 1, "addresses that were inserted");
	cr_expect_eq(entry.context, &ctx);
	cr_expect_eq(fi_addr[1], FI_ADDR_NOTAVAIL);
	/* An insertion of no address. */
	cr_expect_eq(fi_av_insert(p.av, addrs, 0, fi_addr, 0, &ctx), 0);
	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	cr_expect_eq(entry.data, 0);
	cr_expect_eq(fi_close(&p.av->fid), 0);
	p.av = NULL;
	cr_expect_eq(fi_close(&eq->fid), 0);
}

Test(cpr_av, shared_vectors_are_refused)
{
	struct fi_av_attr attr = { .name = "shared" };

	cr_expect_eq(fi_av_open(p.domain, &attr, &p.av, NULL), -FI_ENOSYS);
	attr.name = NULL;
	attr.flags = FI_READ;
	cr_expect_eq(fi_av_open(p.domain, &attr, &p.av, NULL), -FI_ENOSYS);
}
