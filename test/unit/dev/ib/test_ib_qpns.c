/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/ib/ib_qpns.h"

#include <criterion/criterion.h>

static struct ib_qpns map;

static void setup(void)
{
	ib_qpns_init(&map);
}

static void teardown(void)
{
	ib_qpns_fini(&map);
}

TestSuite(ib_qpns, .init = setup, .fini = teardown);

Test(ib_qpns, an_unknown_number_is_null_anywhere)
{
	int link;

	cr_expect_null(ib_qpns_get(&map, 0));
	cr_expect_null(ib_qpns_get(&map, 0xffffff));
	cr_assert_eq(ib_qpns_set(&map, 0x1000, &link), 0);
	cr_expect_null(ib_qpns_get(&map, 0x0fff));
	cr_expect_null(ib_qpns_get(&map, 0x1001));
}

Test(ib_qpns, numbers_at_every_edge_have_links_of_their_own)
{
	static const uint32_t qpns[] = { 0, 1, 0xfff, 0x1000, 0x1fff, 0x2000, 0xffe000, 0xffffff };
	int links[8];

	for (int i = 0; i < 8; i++)
		cr_assert_eq(ib_qpns_set(&map, qpns[i], &links[i]), 0);
	for (int i = 0; i < 8; i++)
		cr_expect_eq(ib_qpns_get(&map, qpns[i]), &links[i], "0x%x", qpns[i]);
	ib_qpns_clear(&map, 0xfff);
	cr_expect_null(ib_qpns_get(&map, 0xfff));
	cr_expect_eq(ib_qpns_get(&map, 1), &links[1]);
}

Test(ib_qpns, numbers_of_no_queue_pair_are_beside_those_of_queue_pairs)
{
	int links[3];
	uint32_t at = 2;

	cr_assert_eq(ib_qpns_set(&map, 1, &links[0]), 0);
	cr_assert_eq(ib_qpns_set(&map, IB_QPNS_OWN | 1, &links[1]), 0);
	cr_assert_eq(ib_qpns_set(&map, IB_QPNS_OWN | 0xffff, &links[2]), 0);
	cr_expect_eq(ib_qpns_get(&map, 1), &links[0]);
	cr_expect_eq(ib_qpns_get(&map, IB_QPNS_OWN | 1), &links[1]);
	cr_expect_eq(ib_qpns_next(&map, &at), &links[1]);
	cr_expect_eq(at, IB_QPNS_OWN | 1);
	at++;
	cr_expect_eq(ib_qpns_next(&map, &at), &links[2]);
	at++;
	cr_expect_null(ib_qpns_next(&map, &at));
}

Test(ib_qpns, clearing_an_unknown_number_is_harmless)
{
	int link;

	ib_qpns_clear(&map, 77);
	cr_assert_eq(ib_qpns_set(&map, 77, &link), 0);
	ib_qpns_clear(&map, 77);
	ib_qpns_clear(&map, 77);
	cr_expect_null(ib_qpns_get(&map, 77));
	cr_assert_eq(ib_qpns_set(&map, 77, &link), 0);
	cr_expect_eq(ib_qpns_get(&map, 77), &link);
}

Test(ib_qpns, a_number_of_more_than_25_bits_is_not_looked_up_outside)
{
	cr_expect_null(ib_qpns_get(&map, UINT32_MAX));
}

Test(ib_qpns, all_are_found_in_order)
{
	static const uint32_t set[] = { 0, 1, 4095, 4096, 0x123456, 0xffffff };
	uint32_t qpn = 0;
	unsigned i;

	ib_qpns_init(&map);
	cr_expect_null(ib_qpns_next(&map, &qpn));
	for (i = 0; i < 6; i++)
		cr_assert_eq(ib_qpns_set(&map, set[i], &map), 0);
	for (i = 0; ib_qpns_next(&map, &qpn); i++, qpn++)
		cr_assert_eq(qpn, set[i]);
	cr_expect_eq(i, 6);
	ib_qpns_fini(&map);
}
