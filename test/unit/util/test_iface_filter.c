/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Value of FI_COPYRPC_IFACE: util/iface_filter.c. */
#include "util/iface_filter.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "util/iface.h"

static struct util_iface iface(const char *name, const char *addr)
{
	struct util_iface it = { .is_loopback = !strcmp(name, "lo") };

	snprintf(it.name, sizeof(it.name), "%s", name);
	it.addr.sa.sa_family = strchr(addr, ':') ? AF_INET6 : AF_INET;
	cr_assert_eq(inet_pton(it.addr.sa.sa_family, addr,
			       strchr(addr, ':') ? (void *)&it.addr.in6.sin6_addr
						 : (void *)&it.addr.in.sin_addr),
		     1);
	return it;
}

static int item(const char *filter, const char *name, const char *addr)
{
	struct util_iface it = iface(name, addr);

	return util_iface_filter_item(filter, &it);
}

Test(util_iface_filter, names_and_patterns_permit_in_their_order)
{
	cr_expect_eq(item("ib0,eth*", "ib0", "10.1.0.1"), 0);
	cr_expect_eq(item("ib0,eth*", "eth7", "10.1.0.1"), 1);
	cr_expect_eq(item(" ib0 , eth* ", "eth7", "10.1.0.1"), 1);
	cr_expect_eq(item("ib0,eth*", "wlan0", "10.1.0.1"), -1);
	cr_expect_eq(item("eth", "eth0", "10.1.0.1"), -1);
	cr_expect_eq(item("eth?", "eth0", "10.1.0.1"), 0);
}

Test(util_iface_filter, a_network_permits_exactly_its_addresses)
{
	cr_expect_eq(item("10.1.0.0/16", "a", "10.1.255.9"), 0);
	cr_expect_eq(item("10.1.0.0/16", "a", "10.2.0.1"), -1);
	cr_expect_eq(item("10.1.2.0/23", "a", "10.1.3.1"), 0);
	cr_expect_eq(item("10.1.2.0/23", "a", "10.1.4.1"), -1);
	cr_expect_eq(item("10.1.2.3", "a", "10.1.2.3"), 0);
	cr_expect_eq(item("10.1.2.3", "a", "10.1.2.4"), -1);
	cr_expect_eq(item("0.0.0.0/0", "a", "10.1.2.4"), 0);
	cr_expect_eq(item("fd00:1::/32", "a", "fd00:1::2"), 0);
	cr_expect_eq(item("fd00:1::/32", "a", "fd00:2::2"), -1);
	cr_expect_eq(item("fd00:1::/32", "a", "10.1.2.4"), -1);
	cr_expect_eq(item("10.1.0.0/33", "a", "10.1.0.1"), -1);
	cr_expect_eq(item("10.1.0.0/x", "a", "10.1.0.1"), -1);
}

Test(util_iface_filter, an_excluding_item_is_stronger_and_alone_permits_the_rest)
{
	const char *marks[] = { "!docker0", "^docker0" };

	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(item(marks[i], "docker0", "172.17.0.1"), -1);
		cr_expect_eq(item(marks[i], "eth0", "10.1.0.1"), 0);
		cr_expect_eq(item(marks[i], "lo", "127.0.0.1"), -1);
	}
	cr_expect_eq(item("eth*,!eth1", "eth1", "10.1.0.1"), -1);
	cr_expect_eq(item("eth*,!eth1", "eth2", "10.1.0.1"), 0);
	cr_expect_eq(item("!172.17.0.0/16", "br0", "172.17.0.1"), -1);
	cr_expect_eq(item("10.1.0.1,!eth1", "eth1", "10.1.0.1"), -1);
}

Test(util_iface_filter, a_caret_in_front_excludes_the_whole_list)
{
	cr_expect_eq(item("^docker0,virbr*", "virbr1", "10.1.0.1"), -1);
	cr_expect_eq(item("^docker0,virbr*", "docker0", "10.1.0.1"), -1);
	cr_expect_eq(item("^docker0,virbr*", "eth0", "10.1.0.1"), 0);
	cr_expect_eq(item("!docker0,virbr*", "virbr1", "10.1.0.1"), 1);
}

Test(util_iface_filter, an_rdma_device_permits_the_interface_over_it)
{
	struct util_iface it = iface("enp1s0", "10.1.0.1");

	cr_expect_eq(util_iface_filter_item("mlx5_0", &it), -1);
	strcpy(it.rdma, "mlx5_0");
	cr_expect_eq(util_iface_filter_item("mlx5_0", &it), 0);
	cr_expect_eq(util_iface_filter_item("eth0,mlx5_0:1", &it), 1);
	cr_expect_eq(util_iface_filter_item("mlx5_01", &it), -1);
	cr_expect_eq(util_iface_filter_item("!mlx5_0", &it), -1);
}

Test(util_iface_filter, all_is_every_interface_and_loopback_must_be_named)
{
	cr_expect_eq(item("all", "eth0", "10.1.0.1"), 0);
	cr_expect_eq(item("all", "lo", "127.0.0.1"), -1);
	cr_expect_eq(item("lo", "lo", "127.0.0.1"), 0);
	cr_expect_eq(item("127.0.0.0/8", "lo", "127.0.0.1"), 0);
}
