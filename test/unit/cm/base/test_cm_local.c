/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of this host: cm/base/cm_local.c. */
#include "cm/base/cm_local.h"

#include <criterion/criterion.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "unit/cm/cm_fixture.h"

static bool has(const char *ip)
{
	union cm_addr addr;

	cm_test_addr(ip, 9, &addr);
	return cm_local_has(&addr) > 0;
}

Test(cm_local, loopback_is_this_host)
{
	cr_expect(has("127.0.0.1"));
	cr_expect(has("127.0.0.2"));
	cr_expect(has("127.255.255.254"));
	cr_expect(has("::1"));
}

/* Documentation addresses and the like: at most a default route leads there. */
Test(cm_local, addresses_of_others_are_not_this_host)
{
	cr_expect(!has("203.0.113.1"));
	cr_expect(!has("198.51.100.7"));
	cr_expect(!has("126.255.255.255"));
	cr_expect(!has("128.0.0.1"));
	cr_expect(!has("2001:db8::1"));
	cr_expect(!has("::2"));
}

/** Returns whether an interface that is up has the address. */
static bool is_listed(const union cm_addr *addr)
{
	struct ifaddrs *all, *it;
	union cm_addr one;

	cr_assert(!getifaddrs(&all));
	for (it = all; it; it = it->ifa_next)
		if (it->ifa_addr && it->ifa_flags & IFF_UP && !cm_addr_import(it->ifa_addr, &one) &&
		    cm_addr_is_equal(&one, addr))
			break;
	freeifaddrs(all);
	return it;
}

/** Returns false if an address that stays listed is not taken for one of this host. */
static bool has_while_listed(const union cm_addr *addr)
{
	/* Another process may remove the interface, or has just added it. */
	for (unsigned i = 0; i < 500 && is_listed(addr); i++) {
		if (cm_local_has(addr) == 1)
			return true;
		cm_test_sleep_ms(10);
	}
	return !is_listed(addr);
}

Test(cm_local, every_address_of_every_interface_is_this_host)
{
	struct ifaddrs *all, *it;
	char text[CM_ADDR_TEXT_MAX];
	union cm_addr addr;

	cr_assert(!getifaddrs(&all));
	for (it = all; it; it = it->ifa_next) {
		if (!it->ifa_addr || !(it->ifa_flags & IFF_UP) ||
		    cm_addr_import(it->ifa_addr, &addr))
			continue;
		cr_expect(has_while_listed(&addr), "%s", cm_addr_print(&addr, text));
	}
	freeifaddrs(all);
}

/* The second way is for systems without netlink. Both agree where no address is secondary. */
Test(cm_local, both_ways_agree)
{
	static const char *const ips[] = { "127.0.0.1", "203.0.113.1", "::1", "2001:db8::1" };
	union cm_addr addr;

	for (unsigned i = 0; i < sizeof(ips) / sizeof(ips[0]); i++) {
		if (strchr(ips[i], ':') && i == 2)
			cm_test_need_ipv6();
		cm_test_addr(ips[i], 9, &addr);
		cr_expect_eq(cm_local_by_route(&addr) == 1, cm_local_by_source(&addr) == 1, "%s",
			     ips[i]);
		cr_expect_eq(cm_local_by_route(&addr), i % 2 == 0, "%s", ips[i]);
	}
}

Test(cm_local, without_a_descriptor_it_is_unknown)
{
	union cm_addr addr;
	int ret;

	cm_test_addr("203.0.113.1", 9, &addr);
	cm_test_limit_fds(0);
	ret = cm_local_has(&addr);
	cm_test_limit_fds(-1);
	cr_expect_eq(ret, -FI_EMFILE, "%d", ret);
	cr_expect_eq(cm_local_has(&addr), 0);
}
