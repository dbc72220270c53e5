/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/ib/ib_early.h"

#include <criterion/criterion.h>

Test(ib_early, immediates_are_taken_in_order_once)
{
	struct ib_early early = { 0 };
	uint32_t i, imm;

	cr_expect(ib_early_is_empty(&early));
	for (i = 0; i < 100; i++)
		cr_assert(ib_early_put(&early, 4096, 7 * i));
	for (i = 0; i < 100; i++) {
		cr_expect_not(ib_early_is_empty(&early));
		cr_assert(ib_early_take(&early, &imm));
		cr_assert_eq(imm, 7 * i);
	}
	cr_expect(ib_early_is_empty(&early));
	cr_expect(!ib_early_take(&early, &imm));
	ib_early_fini(&early);
}

Test(ib_early, more_than_a_ring_holds_are_refused)
{
	struct ib_early early = { 0 };
	uint32_t cnt = 0;

	while (cnt < 1000 && ib_early_put(&early, 1024, cnt))
		cnt++;
	cr_expect_geq(cnt, 1024 / 32);
	cr_expect_lt(cnt, 1000);
	ib_early_fini(&early);
	cr_expect(ib_early_is_empty(&early));
	cr_expect(ib_early_put(&early, 1024, 1));
	ib_early_fini(&early);
}
