/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of shared pages: contents stay as pages move into the segment and back. */
#include "unit/model/kernel/border_bench.h"

#include "model/kernel/krn_share.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

TestSuite(krn_share, .init = border_setup, .fini = border_teardown);

Test(krn_share, contents_move_in_and_out)
{
	char *at = border_pages(3);
	uint64_t offset;

	strcpy(at + 100, "before");
	cr_assert_eq(krn_share((uintptr_t)at + 64, 2 * MDL_PAGE, &offset), 0);
	cr_expect_str_eq((char *)mdl_at(offset) + 36, "before");
	strcpy((char *)mdl_at(offset) + 36, "inside");
	cr_expect_str_eq(at + 100, "inside", "the same page in both places");
	cr_expect_eq(krn_share_find((uintptr_t)at + 100), offset + 36);
	krn_unshare((uintptr_t)at + 64, 2 * MDL_PAGE);
	cr_expect_str_eq(at + 100, "inside", "it stays when the page is private again");
	cr_expect_eq(krn_share_find((uintptr_t)at), 0);
	strcpy(at + 100, "after");
	cr_expect_str_neq((char *)mdl_at(offset) + 36, "after");
}

Test(krn_share, a_page_of_many_records_stays_until_its_last_user)
{
	char *at = border_pages(1);
	uint64_t one, two;

	cr_assert_eq(krn_share((uintptr_t)at, 8, &one), 0);
	cr_assert_eq(krn_share((uintptr_t)at + 64, 8, &two), 0);
	cr_expect_eq(two, one + 64);
	krn_unshare((uintptr_t)at, 8);
	at[64] = 7;
	cr_expect_eq(*(char *)mdl_at(two), 7, "still shared");
	krn_unshare((uintptr_t)at + 64, 8);
	cr_expect_eq(krn_share_find((uintptr_t)at), 0);
	cr_expect_eq(at[64], 7);
}

Test(krn_share, a_range_that_is_half_shared_is_refused)
{
	char *at = border_pages(2);
	uint64_t offset;

	cr_assert_eq(krn_share((uintptr_t)at + MDL_PAGE, 8, &offset), 0);
	cr_expect_eq(krn_share((uintptr_t)at, 2 * MDL_PAGE, &offset), -EINVAL);
	krn_unshare((uintptr_t)at + MDL_PAGE, 8);
	cr_expect_eq(krn_share((uintptr_t)at, 2 * MDL_PAGE, &offset), 0);
}

/*
 * Shares more pages than the initial table holds, so that it grows, then releases all in another
 * order.
 */
Test(krn_share, many_pages)
{
	enum { PAGES = 3000 };
	char *at = border_pages(PAGES);
	uint64_t offset;

	for (uint64_t i = 0; i < PAGES; i++) {
		at[i * MDL_PAGE] = (char)i;
		cr_assert_eq(krn_share((uintptr_t)at + i * MDL_PAGE, 8, &offset), 0);
	}
	for (uint64_t i = 0; i < PAGES; i++)
		cr_assert_eq(*(char *)mdl_at(krn_share_find((uintptr_t)at + i * MDL_PAGE)),
			     (char)i);
	for (uint64_t i = 0, n = 0; n < PAGES; n++, i = (i + 7) % PAGES)
		krn_unshare((uintptr_t)at + i * MDL_PAGE, 8);
	for (uint64_t i = 0; i < PAGES; i++) {
		cr_assert_eq(krn_share_find((uintptr_t)at + i * MDL_PAGE), 0);
		cr_assert_eq(at[i * MDL_PAGE], (char)i);
	}
}

Test(krn_share, nothing_and_wrapping_ranges_are_refused)
{
	uint64_t offset;

	cr_expect_eq(krn_share(0, 8, &offset), -EINVAL);
	cr_expect_eq(krn_share(4096, 0, &offset), -EINVAL);
	cr_expect_eq(krn_share(~0ull - 4, 4096, &offset), -EINVAL);
}
