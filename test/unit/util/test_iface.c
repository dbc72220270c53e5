/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of this host and their order: util/iface.c. */
#include "util/iface.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "util/name.h"

static bool can_bind(const struct util_iface *it)
{
	bool is_6 = it->addr.sa.sa_family == AF_INET6;
	int fd = socket(it->addr.sa.sa_family, SOCK_DGRAM, 0);
	int ret;

	cr_assert_geq(fd, 0);
	ret = bind(fd, &it->addr.sa, is_6 ? sizeof(it->addr.in6) : sizeof(it->addr.in));
	close(fd);
	return !ret;
}

Test(util_iface, every_listed_address_can_be_bound_and_the_first_is_the_best)
{
	struct util_iface list[UTIL_IFACE_MAX];
	unsigned cnt = util_iface_list(AF_INET, NULL, list, UTIL_IFACE_MAX);

	cr_assert_gt(cnt, 0u);
	for (unsigned i = 0; i < cnt; i++) {
		cr_expect(can_bind(&list[i]), "%s", list[i].name);
		cr_expect(!i || util_iface_compare(&list[i - 1], &list[i]) <= 0);
		cr_expect_eq(util_iface_is_near(&list[i], &list[i].addr.sa), true);
	}
}

Test(util_iface, loopback_is_listed_only_alone_or_when_named)
{
	struct util_iface list[UTIL_IFACE_MAX];
	unsigned cnt = util_iface_list(AF_INET, NULL, list, UTIL_IFACE_MAX);

	cr_expect(cnt == 1 || !list[0].is_loopback);
	cr_assert_eq(util_iface_list(AF_INET, "lo", list, UTIL_IFACE_MAX), 1u);
	cr_expect_eq(list[0].addr.in.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	cr_expect_eq(util_iface_family("lo"), AF_INET);
}

Test(util_iface, a_filter_that_permits_nothing_lists_nothing)
{
	struct util_iface list[UTIL_IFACE_MAX];

	cr_expect_eq(util_iface_list(AF_INET, "no-such-interface", list, UTIL_IFACE_MAX), 0u);
	cr_expect_eq(util_iface_list(AF_INET6, "no-such-interface", list, UTIL_IFACE_MAX), 0u);
}

Test(util_iface, a_list_is_cut_to_the_best)
{
	struct util_iface all[UTIL_IFACE_MAX], one;

	cr_assert_gt(util_iface_list(AF_UNSPEC, NULL, all, UTIL_IFACE_MAX), 0u);
	cr_assert_eq(util_iface_list(AF_UNSPEC, NULL, &one, 1), 1u);
	cr_expect_eq(memcmp(&one.addr, &all[0].addr, sizeof(one.addr)), 0);
}

Test(util_iface, order_is_filter_then_reach_then_rdma_then_hardware_then_speed_then_route)
{
	struct util_iface best = {
		.rdma = "mlx5_0", .is_physical = true, .speed = 100000, .is_default = true
	};
	struct util_iface worse[8];

	for (unsigned i = 0; i < 8; i++)
		worse[i] = best;
	worse[0].is_default = false;
	worse[1].speed = 10000;
	worse[2].is_physical = false;
	worse[2].speed = 200000;
	worse[3].is_physical = false;
	worse[3].is_bridge = true;
	worse[3].speed = 200000;
	worse[4].rdma[0] = '\0';
	worse[5].is_link_local = true;
	worse[6].is_loopback = true;
	worse[7].item = 1;
	for (unsigned i = 0; i < 8; i++) {
		cr_expect_lt(util_iface_compare(&best, &worse[i]), 0, "%u", i);
		cr_expect_gt(util_iface_compare(&worse[i], &best), 0, "%u", i);
		cr_expect(!i || util_iface_compare(&worse[i - 1], &worse[i]) < 0, "%u", i);
	}
	cr_expect_eq(util_iface_compare(&best, &best), 0);
}

Test(util_iface, further_addresses_of_a_name_are_of_other_networks_and_can_be_bound)
{
	struct util_iface list[UTIL_IFACE_MAX];
	struct in_addr others[UTIL_NAME_OTHERS];
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(1) };
	unsigned cnt;

	cr_assert_gt(util_iface_list(AF_INET, NULL, list, UTIL_IFACE_MAX), 0u);
	name.sin_addr = list[0].addr.in.sin_addr;
	util_iface_add_others((struct sockaddr *)&name, NULL);
	cnt = util_name_others((struct sockaddr *)&name, others);
	for (unsigned i = 0; i < cnt; i++) {
		struct util_iface it = { .name = "further" };

		it.addr.in.sin_family = AF_INET;
		it.addr.in.sin_addr = others[i];
		cr_expect(can_bind(&it));
		cr_expect_not(util_iface_is_near(&list[0], &it.addr.sa));
	}
}

Test(util_iface, a_loopback_name_and_a_filter_add_nothing_that_they_exclude)
{
	struct in_addr others[UTIL_NAME_OTHERS];
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	util_iface_add_others((struct sockaddr *)&name, NULL);
	cr_expect_eq(util_name_others((struct sockaddr *)&name, others), 0u);
	name.sin_addr.s_addr = inet_addr("10.254.253.252");
	util_iface_add_others((struct sockaddr *)&name, "no-such-interface");
	cr_expect_eq(util_name_others((struct sockaddr *)&name, others), 0u);
}

Test(util_iface, the_prefix_of_an_address_is_that_of_its_network)
{
	union util_iface_addr addr = { .in.sin_family = AF_INET };

	addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_expect_eq(util_iface_prefix_of(&addr.sa), 8u);
	addr.in.sin_addr.s_addr = inet_addr("203.0.113.77");
	cr_expect_eq(util_iface_prefix_of(&addr.sa), 32u, "not here");
}

Test(util_iface, near_is_what_the_prefix_has_in_common)
{
	struct util_iface it = { .addr.sa.sa_family = AF_INET, .prefix_len = 22 };
	union util_iface_addr to = { .sa.sa_family = AF_INET };

	it.addr.in.sin_addr.s_addr = inet_addr("10.1.4.1");
	to.in.sin_addr.s_addr = inet_addr("10.1.7.255");
	cr_expect(util_iface_is_near(&it, &to.sa));
	to.in.sin_addr.s_addr = inet_addr("10.1.8.1");
	cr_expect_not(util_iface_is_near(&it, &to.sa));
	to.sa.sa_family = AF_INET6;
	cr_expect_not(util_iface_is_near(&it, &to.sa));
}
