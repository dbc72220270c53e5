/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Numbers of addresses that are inserted twice, removed, and inserted again, after fi_av(3). */
#include "dgram/dgram_av.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

static struct dev_desc desc_of(uint32_t n, uint32_t len)
{
	struct dev_desc d = { .len = len };

	memcpy(d.bytes, &n, sizeof(n));
	return d;
}

static uint64_t insert(struct dgram_av *av, uint32_t n)
{
	struct dev_desc d = desc_of(n, 24);
	uint64_t idx;

	cr_assert_eq(dgram_av_insert(av, &d, &idx), 0);
	return idx;
}

Test(dgram_av, numbers_count_up_and_a_known_address_keeps_its_number)
{
	struct dgram_av *av = dgram_av_open();

	for (uint32_t n = 0; n < 100; n++)
		cr_assert_eq(insert(av, n), n);
	for (uint32_t n = 0; n < 100; n++)
		cr_assert_eq(insert(av, n), n);
	dgram_av_close(av);
}

Test(dgram_av, an_inserted_address_is_returned)
{
	struct dgram_av *av = dgram_av_open();
	struct dev_desc want = desc_of(5, 48), got;
	uint64_t idx;

	cr_assert_eq(dgram_av_insert(av, &want, &idx), 0);
	cr_assert(dgram_av_desc(av, idx, &got));
	cr_expect_eq(got.len, 48);
	cr_expect_eq(got.fd_cnt, 0);
	cr_expect_arr_eq(got.bytes, want.bytes, 48);
	cr_expect_not(dgram_av_desc(av, idx + 1, &got));
	want.len = 49;
	cr_expect_eq(dgram_av_insert(av, &want, &idx), -FI_EINVAL);
	dgram_av_close(av);
}

Test(dgram_av, the_last_reference_frees_the_lowest_number)
{
	struct dgram_av *av = dgram_av_open();
	struct dev_desc d;
	bool gone;

	for (uint32_t n = 0; n < 20; n++)
		insert(av, n);
	insert(av, 7);
	cr_assert_eq(dgram_av_remove(av, 7, &gone), 0);
	cr_expect_not(gone);
	cr_assert_eq(dgram_av_remove(av, 7, &gone), 0);
	cr_expect(gone);
	cr_expect_eq(dgram_av_remove(av, 7, &gone), -FI_EINVAL);
	cr_expect_eq(dgram_av_remove(av, 20, &gone), -FI_EINVAL);
	cr_expect_not(dgram_av_desc(av, 7, &d));
	cr_assert_eq(dgram_av_remove(av, 3, &gone), 0);
	cr_expect_eq(insert(av, 1000), 3);
	cr_expect_eq(insert(av, 7), 7);
	cr_expect_eq(insert(av, 1001), 20);
	dgram_av_close(av);
}
