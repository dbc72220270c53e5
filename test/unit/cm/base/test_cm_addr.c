/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses in canonical form: cm/base/cm_addr.c. */
#include "cm/base/cm_addr.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "unit/cm/cm_fixture.h"

static union cm_addr import(const union cm_addr *raw)
{
	union cm_addr addr;

	cr_assert(!cm_addr_import(&raw->sa, &addr));
	return addr;
}

Test(cm_addr, fields_that_do_not_identify_a_peer_are_ignored)
{
	union cm_addr raw, a, b;

	cm_test_addr("2001:db8::7", 4000, &raw);
	a = import(&raw);
	raw.in6.sin6_flowinfo = 77;
	raw.in6.sin6_scope_id = 3; /* a global address has no scope */
	b = import(&raw);
	cr_assert(cm_addr_is_equal(&a, &b));
	cm_test_addr("127.0.0.1", 4000, &raw);
	a = import(&raw);
	memset(raw.in.sin_zero, 0x55, sizeof(raw.in.sin_zero));
	b = import(&raw);
	cr_assert(cm_addr_is_equal(&a, &b));
}

Test(cm_addr, address_port_family_and_link_distinguish_peers)
{
	union cm_addr raw, a, b;

	cm_test_addr("fe80::1", 4000, &raw);
	a = import(&raw);
	raw.in6.sin6_scope_id = 3;
	b = import(&raw);
	cr_assert(!cm_addr_is_equal(&a, &b));
	cm_test_addr("127.0.0.1", 4000, &a);
	cm_test_addr("127.0.0.1", 4001, &b);
	cr_assert(!cm_addr_is_equal(&a, &b));
	cm_test_addr("127.0.0.2", 4000, &b);
	cr_assert(!cm_addr_is_equal(&a, &b));
	cm_test_addr("::1", 4000, &b);
	cr_assert(!cm_addr_is_equal(&a, &b));
}

Test(cm_addr, ipv4_in_ipv6_is_ipv4)
{
	union cm_addr raw, a, b;

	cm_test_addr("::ffff:127.0.0.1", 4000, &raw);
	cm_test_addr("127.0.0.1", 4000, &b);
	a = import(&raw);
	cr_assert(cm_addr_is_equal(&a, &b));
}

Test(cm_addr, other_families_are_refused)
{
	struct sockaddr sa = { .sa_family = AF_UNIX };
	union cm_addr addr;

	cr_assert_eq(cm_addr_import(&sa, &addr), -FI_EINVAL);
}

Test(cm_addr, only_a_unicast_address_with_a_port_can_be_a_peer)
{
	static const char *const no[] = { "0.0.0.0", "224.0.0.1", "255.255.255.255",
					  "::", "ff02::1" };
	static const char *const yes[] = { "127.0.0.1", "10.0.0.255", "::1", "fe80::1" };
	union cm_addr addr;

	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		cm_test_addr(no[i], 1, &addr);
		cr_assert(!cm_addr_is_peer(&addr), "%s", no[i]);
	}
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		cm_test_addr(yes[i], 1, &addr);
		cr_assert(cm_addr_is_peer(&addr), "%s", yes[i]);
		cm_test_addr(yes[i], 0, &addr);
		cr_assert(!cm_addr_is_peer(&addr), "%s, port 0", yes[i]);
	}
}

Test(cm_addr, loopback_is_recognised)
{
	static const char *const loopback[] = { "127.0.0.1", "127.255.1.2", "::1" };
	static const char *const other[] = { "126.0.0.1", "128.0.0.1", "0.0.0.0", "::2",
					     "fe80::1" };
	union cm_addr addr;

	for (size_t i = 0; i < 3; i++) {
		cm_test_addr(loopback[i], 1, &addr);
		cr_assert(cm_addr_is_loopback(&addr), "%s", loopback[i]);
	}
	for (size_t i = 0; i < 5; i++) {
		cm_test_addr(other[i], 1, &addr);
		cr_assert(!cm_addr_is_loopback(&addr), "%s", other[i]);
	}
}

Test(cm_addr, print_uses_the_usual_notation)
{
	char text[CM_ADDR_TEXT_MAX];
	union cm_addr addr;

	cm_test_addr("10.1.2.3", 65535, &addr);
	cr_assert_str_eq(cm_addr_print(&addr, text), "10.1.2.3:65535");
	cm_test_addr("2001:db8::1", 80, &addr);
	cr_assert_str_eq(cm_addr_print(&addr, text), "[2001:db8::1]:80");
	cm_test_addr("fe80::1", 80, &addr);
	addr.in6.sin6_scope_id = UINT32_MAX;
	cr_assert_str_eq(cm_addr_print(&addr, text), "[fe80::1%4294967295]:80");
	cm_test_addr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535, &addr);
	cr_assert(strlen(cm_addr_print(&addr, text)) < CM_ADDR_TEXT_MAX - 12);
}

Test(cm_addr, wire_form_and_back_is_the_same)
{
	static const char *const ips[] = { "127.0.0.1", "255.0.255.1", "::1", "2001:db8::ff:1" };
	struct wire_cm_addr wire;
	union cm_addr a, b;

	for (size_t i = 0; i < sizeof(ips) / sizeof(ips[0]); i++) {
		cm_test_addr(ips[i], (uint16_t)(1 + 21845 * i), &a);
		cm_addr_to_wire(&a, &wire);
		cm_addr_from_wire(&wire, &b);
		cr_assert(cm_addr_is_equal(&a, &b), "%s", ips[i]);
	}
	cm_test_addr("fe80::1", 1, &a);
	a.in6.sin6_scope_id = 7;
	cm_addr_to_wire(&a, &wire);
	cm_addr_from_wire(&wire, &b);
	cr_assert(cm_addr_is_equal(&a, &b));
}

Test(cm_addr, wildcard_resolves_to_an_address_that_can_be_bound)
{
	static const char *const wild[] = { "0.0.0.0", "::" };

	for (size_t i = 0; i < 2; i++) {
		union cm_addr addr;
		int fd;

		cm_test_addr(wild[i], 0, &addr);
		cr_assert(cm_addr_is_wildcard(&addr));
		cr_assert_eq(cm_addr_resolve(&addr), 0);
		cr_assert(!cm_addr_is_wildcard(&addr));
		fd = socket(addr.sa.sa_family, SOCK_DGRAM, 0);
		cr_assert(!bind(fd, &addr.sa, cm_addr_len(&addr)));
	}
}

Test(cm_addr, resolve_leaves_a_concrete_address_unchanged)
{
	union cm_addr a, b;

	cm_test_addr("127.0.0.9", 9, &a);
	b = a;
	cr_assert_eq(cm_addr_resolve(&b), 0);
	cr_assert(cm_addr_is_equal(&a, &b));
}
