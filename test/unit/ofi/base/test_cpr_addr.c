/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses: names, text, routes (fi_getinfo(3), fi_av(3)). */
#include "ofi/base/cpr_addr.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

static void expect_print(const struct sockaddr_storage *addr, const char *want)
{
	char buf[CPR_ADDR_STR_MAX];

	cr_expect_eq(cpr_addr_print((const struct sockaddr *)addr, buf, sizeof(buf)),
		     strlen(want) + 1);
	cr_expect_str_eq(buf, want);
}

static void expect_resolves(const char *node, const char *service, int family, const char *want)
{
	struct sockaddr_storage addr;

	cr_assert_eq(cpr_addr_resolve(node, service, family, AI_NUMERICHOST, &addr), 0, "%s", want);
	expect_print(&addr, want);
}

Test(cpr_addr, numeric_nodes_and_services_become_addresses)
{
	expect_resolves("127.0.0.1", "9228", AF_UNSPEC, "fi_sockaddr_in://127.0.0.1:9228");
	expect_resolves("10.1.2.3", NULL, AF_INET, "fi_sockaddr_in://10.1.2.3:0");
	expect_resolves("::1", "7", AF_UNSPEC, "fi_sockaddr_in6://[::1]:7");
}

Test(cpr_addr, text_addresses_are_read_back)
{
	expect_resolves("fi_sockaddr_in://1.2.3.4:5", NULL, AF_UNSPEC,
			"fi_sockaddr_in://1.2.3.4:5");
	expect_resolves("fi_sockaddr://1.2.3.4:5", NULL, AF_INET, "fi_sockaddr_in://1.2.3.4:5");
	expect_resolves("fi_sockaddr_in6://[fe80::1]:6", NULL, AF_UNSPEC,
			"fi_sockaddr_in6://[fe80::1]:6");
}

Test(cpr_addr, malformed_addresses_are_refused)
{
	static const char *const nodes[] = { "fi_sockaddr_in://1.2.3.4",
					     "fi_sockaddr_in6://[::1",
					     "fi_sockaddr_ib://1.2.3.4:5",
					     "://",
					     "300.1.1.1",
					     "fi_sockaddr_in6://[::1]:99999" };
	struct sockaddr_storage addr;
	size_t i;

	for (i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		cr_expect_eq(cpr_addr_resolve(nodes[i], NULL, AF_UNSPEC, AI_NUMERICHOST, &addr),
			     -FI_ENODATA, "%s", nodes[i]);
	cr_expect_eq(cpr_addr_resolve(NULL, NULL, AF_UNSPEC, 0, &addr), -FI_ENODATA);
	cr_expect_eq(cpr_addr_resolve("fi_sockaddr_in://1.2.3.4:5", NULL, AF_INET6, 0, &addr),
		     -FI_ENODATA);
}

Test(cpr_addr, a_short_buffer_cuts_the_text_and_returns_its_length)
{
	struct sockaddr_storage addr;
	char buf[8];

	cr_assert_eq(cpr_addr_resolve("127.0.0.1", "1", AF_INET, 0, &addr), 0);
	cr_expect_eq(cpr_addr_print((struct sockaddr *)&addr, buf, sizeof(buf)),
		     sizeof("fi_sockaddr_in://127.0.0.1:1"));
	cr_expect_str_eq(buf, "fi_sock");
}

Test(cpr_addr, the_source_address_to_loopback_is_loopback)
{
	struct sockaddr_storage dest, src;

	cr_assert_eq(cpr_addr_resolve("127.0.0.1", "9", AF_INET, 0, &dest), 0);
	cr_assert_eq(cpr_addr_local(AF_INET, (struct sockaddr *)&dest, &src), 0);
	expect_print(&src, "fi_sockaddr_in://127.0.0.1:0");
}

Test(cpr_addr, the_local_address_is_local_and_a_foreign_one_is_not)
{
	struct sockaddr_storage addr;

	cr_assert_eq(cpr_addr_local(AF_INET, NULL, &addr), 0);
	cr_expect(cpr_addr_is_local((struct sockaddr *)&addr));
	cr_assert_eq(cpr_addr_resolve("198.51.100.77", "0", AF_INET, 0, &addr), 0);
	cr_expect_not(cpr_addr_is_local((struct sockaddr *)&addr));
}

Test(cpr_addr, formats_and_families_correspond)
{
	cr_expect_eq(cpr_addr_format(AF_INET), FI_SOCKADDR_IN);
	cr_expect_eq(cpr_addr_format(AF_INET6), FI_SOCKADDR_IN6);
	cr_expect_eq(cpr_addr_format(AF_UNIX), FI_FORMAT_UNSPEC);
	cr_expect_eq(cpr_addr_family(FI_FORMAT_UNSPEC), AF_UNSPEC);
	cr_expect_eq(cpr_addr_family(FI_ADDR_STR), -1);
	cr_expect_eq(cpr_addr_len(FI_SOCKADDR_IN), sizeof(struct sockaddr_in));
	cr_expect_eq(cpr_addr_len(FI_SOCKADDR_IN6), sizeof(struct sockaddr_in6));
}

Test(cpr_addr, stepping_carries_and_stops_at_the_end)
{
	struct sockaddr_storage addr;

	cr_assert_eq(cpr_addr_resolve("10.0.0.255", "5000", AF_INET, 0, &addr), 0);
	cr_expect(cpr_addr_step(&addr, 2, 3));
	expect_print(&addr, "fi_sockaddr_in://10.0.1.1:5003");
	cr_assert_eq(cpr_addr_resolve("fe80::ffff", "1", AF_INET6, 0, &addr), 0);
	cr_expect(cpr_addr_step(&addr, 1, 0));
	expect_print(&addr, "fi_sockaddr_in6://[fe80::1:0]:1");
	cr_assert_eq(cpr_addr_resolve("255.255.255.255", "65535", AF_INET, 0, &addr), 0);
	cr_expect_not(cpr_addr_step(&addr, 1, 0));
	cr_expect_not(cpr_addr_step(&addr, 0, 1));
}
