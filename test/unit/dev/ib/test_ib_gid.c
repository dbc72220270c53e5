/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/ib/ib_gid.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>

static struct ibv_gid_entry entry(uint32_t index, uint32_t type, const char *text)
{
	struct ibv_gid_entry e = { .gid_index = index, .port_num = 1, .gid_type = type };

	cr_assert_eq(inet_pton(AF_INET6, text, e.gid.raw), 1);
	return e;
}

/*
 * Fills the table of `show_gids` for a ConnectX port with both kinds of address, in kernel order.
 */
static size_t table(struct ibv_gid_entry *out)
{
	size_t n = 0;

	out[n++] = entry(0, IBV_GID_TYPE_ROCE_V1, "fe80::1234");
	out[n++] = entry(1, IBV_GID_TYPE_ROCE_V2, "fe80::1234");
	out[n++] = entry(2, IBV_GID_TYPE_ROCE_V1, "::ffff:10.1.2.3");
	out[n++] = entry(4, IBV_GID_TYPE_ROCE_V2, "2001:db8::1");
	out[n++] = entry(5, IBV_GID_TYPE_ROCE_V2, "::ffff:10.9.9.9");
	out[n++] = entry(3, IBV_GID_TYPE_ROCE_V2, "::ffff:10.1.2.3");
	return n;
}

Test(ib_gid, ipv4_over_v2_is_first_and_the_lowest_index_among_equals)
{
	struct ibv_gid_entry t[8];
	int best = ib_gid_pick(t, table(t));

	cr_assert_geq(best, 0);
	cr_assert_eq(t[best].gid_index, 3);
}

Test(ib_gid, without_ipv4_a_routable_address_is_next_then_link_local_then_v1)
{
	struct ibv_gid_entry t[8];

	table(t);
	cr_expect_eq(t[ib_gid_pick(t, 4)].gid_index, 4);
	cr_expect_eq(t[ib_gid_pick(t, 3)].gid_index, 1);
	cr_expect_eq(t[ib_gid_pick(t, 1)].gid_index, 0);
}

Test(ib_gid, empty_entries_are_not_chosen)
{
	struct ibv_gid_entry t[2] = { { .gid_type = IBV_GID_TYPE_ROCE_V2 } };

	cr_expect_eq(ib_gid_rank(&t[0]), 0);
	cr_expect_eq(ib_gid_pick(t, 0), -1);
	cr_expect_eq(ib_gid_pick(t, 2), -1);
	t[1] = entry(7, IBV_GID_TYPE_IB, "fe80::1");
	cr_expect_eq(ib_gid_pick(t, 2), 1);
}

Test(ib_gid, text_is_the_usual_notation)
{
	char buf[IB_GID_TEXT_MAX];
	struct ibv_gid_entry v4 = entry(0, 0, "::ffff:10.1.2.3"), v6 = entry(0, 0, "2001:db8::1");

	cr_expect_str_eq(ib_gid_text(&v4.gid, buf), "10.1.2.3");
	cr_expect_str_eq(ib_gid_text(&v6.gid, buf), "2001:db8::1");
}
