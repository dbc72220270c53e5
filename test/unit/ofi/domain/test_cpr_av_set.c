/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address sets: fi_av_set(3). */
#include "ofi/base/cpr_av_set.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "unit/ofi/ofi_fixture.h"

#define PEERS 10u

static struct ofi_pair p;

/* Opens an AV with the numbers 0 to 9, of which 4 is not in use. */
static void setup(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct ofi_options opts = { .threading = FI_THREAD_SAFE };
	struct sockaddr_in sin = { .sin_family = AF_INET };
	fi_addr_t gone = 4;

	ofi_domain_open(&p, &opts);
	cr_assert_eq(fi_av_open(p.domain, &attr, &p.av, NULL), 0);
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (unsigned i = 0; i < PEERS; i++) {
		sin.sin_port = htons((uint16_t)(1000 + i));
		cr_assert_eq(fi_av_insert(p.av, &sin, 1, NULL, 0, NULL), 1);
	}
	cr_assert_eq(fi_av_remove(p.av, &gone, 1, 0), 0);
}

static void teardown(void)
{
	ofi_pair_close(&p);
}

TestSuite(cpr_av_set, .init = setup, .fini = teardown, .timeout = 100);

static struct fid_av_set *open_range(fi_addr_t first, fi_addr_t last, uint64_t stride)
{
	struct fi_av_set_attr attr = { .start_addr = first, .end_addr = last, .stride = stride };
	struct fid_av_set *set;

	cr_assert_eq(fi_av_set(p.av, &attr, &set, NULL), 0);
	return set;
}

static struct fid_av_set *open_empty(void)
{
	return open_range(FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL, 0);
}

static void expect(const struct fid_av_set *fid, size_t cnt, const fi_addr_t *addrs)
{
	const struct cpr_av_set *set = cpr_av_set_of(fid);

	cr_assert_eq(set->cnt, cnt, "%zu", set->cnt);
	for (size_t i = 0; i < cnt; i++)
		cr_expect_eq(set->addrs[i], addrs[i]);
}

#define EXPECT(set, ...)                                                                           \
	do {                                                                                       \
		const fi_addr_t want_[] = { __VA_ARGS__ };                                         \
		expect(set, sizeof(want_) / sizeof(want_[0]), want_);                              \
	} while (0)

Test(cpr_av_set, a_range_holds_the_addresses_in_use)
{
	struct fi_av_set_attr all = { .start_addr = FI_ADDR_NOTAVAIL,
				      .end_addr = FI_ADDR_NOTAVAIL,
				      .flags = FI_UNIVERSE | FI_BARRIER_SET };
	struct fid_av_set *set = open_range(1, 9, 3);

	EXPECT(set, 1, 7);
	cr_expect_eq(fi_close(&set->fid), 0);
	set = open_range(8, 1000000000, 1);
	EXPECT(set, 8, 9);
	cr_expect_eq(fi_close(&set->fid), 0);
	cr_assert_eq(fi_av_set(p.av, &all, &set, NULL), 0);
	EXPECT(set, 0, 1, 2, 3, 5, 6, 7, 8, 9);
	cr_expect_eq(fi_close(&set->fid), 0);
}

Test(cpr_av_set, sets_are_changed_in_order)
{
	struct fid_av_set *a = open_empty(), *b = open_range(5, 7, 1);

	cr_expect_eq(fi_av_set_insert(a, 9), 0);
	cr_expect_eq(fi_av_set_insert(a, 6), 0);
	cr_expect_eq(fi_av_set_insert(a, 2), 0);
	cr_expect_eq(fi_av_set_insert(a, 6), -FI_EINVAL, "it is there");
	cr_expect_eq(fi_av_set_insert(a, 4), -FI_EINVAL, "no such address");
	cr_expect_eq(fi_av_set_union(a, b), 0);
	EXPECT(a, 9, 6, 2, 5, 7);
	cr_expect_eq(fi_av_set_remove(a, 6), 0);
	cr_expect_eq(fi_av_set_remove(a, 6), -FI_EINVAL);
	EXPECT(a, 9, 2, 5, 7);
	cr_expect_eq(fi_av_set_diff(b, a), 0);
	EXPECT(b, 6);
	cr_expect_eq(fi_av_set_insert(b, 2), 0);
	cr_expect_eq(fi_av_set_intersect(a, b), 0);
	EXPECT(a, 2);
	cr_expect_eq(fi_av_set_union(a, a), 0);
	cr_expect_eq(fi_av_set_intersect(a, a), 0);
	EXPECT(a, 2);
	cr_expect_eq(fi_av_set_diff(a, a), 0);
	expect(a, 0, NULL);
	cr_expect_eq(fi_close(&p.av->fid), -FI_EBUSY, "sets of it are open");
	cr_expect_eq(fi_close(&a->fid), 0);
	cr_expect_eq(fi_close(&b->fid), 0);
}

static void *insert_one(void *set)
{
	cr_expect_eq(fi_av_set_insert(set, 1), 0);
	return NULL;
}

/* Another thread that reads or changes the list has the lock meanwhile. */
Test(cpr_av_set, a_change_waits_for_the_lock_of_the_sets)
{
	struct fid_av_set *set = open_empty();
	const fi_addr_t addr = 1;
	pthread_t thread;

	cpr_av_set_lock(cpr_av_set_of(set));
	cr_assert_eq(pthread_create(&thread, NULL, insert_one, set), 0);
	usleep(50000);
	expect(set, 0, NULL);
	cpr_av_set_unlock(cpr_av_set_of(set));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	expect(set, 1, &addr);
	cr_assert_eq(fi_close(&set->fid), 0);
}

Test(cpr_av_set, each_set_has_an_address)
{
	struct fid_av_set *a = open_empty(), *b = open_empty();
	fi_addr_t addr_a, addr_b;

	cr_expect_eq(fi_av_set_addr(a, &addr_a), 0);
	cr_expect_eq(fi_av_set_addr(b, &addr_b), 0);
	cr_expect_neq(addr_a, addr_b);
	cr_expect_eq(fi_close(&a->fid), 0);
	cr_expect_eq(fi_close(&b->fid), 0);
}

Test(cpr_av_set, invalid_arguments_are_refused)
{
	struct fi_av_set_attr attr = { .start_addr = 3, .end_addr = 2, .stride = 1 };
	struct fid_av_set *set;
	uint8_t key = 0;

	cr_expect_eq(fi_av_set(p.av, &attr, &set, NULL), -FI_EINVAL);
	attr.end_addr = 5;
	attr.stride = 0;
	cr_expect_eq(fi_av_set(p.av, &attr, &set, NULL), -FI_EINVAL);
	attr.stride = 1;
	attr.count = 2; /* of three */
	cr_expect_eq(fi_av_set(p.av, &attr, &set, NULL), -FI_EINVAL);
	attr.count = 3;
	attr.flags = FI_SYMMETRIC;
	cr_expect_eq(fi_av_set(p.av, &attr, &set, NULL), -FI_EBADFLAGS);
	attr.flags = 0;
	attr.comm_key = &key;
	attr.comm_key_size = 1;
	cr_expect_eq(fi_av_set(p.av, &attr, &set, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_av_set(p.av, NULL, &set, NULL), -FI_EINVAL);
}
