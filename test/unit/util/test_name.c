/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of endpoints and their further addresses: util/name.c. */
#include "util/name.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

static struct sockaddr_in make(const char *first, const char *second, const char *third)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(4711) };
	struct in_addr others[2] = { { inet_addr(second) }, { inet_addr(third) } };

	name.sin_addr.s_addr = inet_addr(first);
	memset(name.sin_zero, 0xEE, sizeof(name.sin_zero));
	util_name_set_others(&name, others, 2);
	return name;
}

static unsigned others_of(const struct sockaddr_in *name)
{
	struct in_addr others[UTIL_NAME_OTHERS];

	return util_name_others((const struct sockaddr *)name, others);
}

Test(util_name, the_bytes_are_the_addresses_in_network_order)
{
	struct sockaddr_in name = make("10.0.0.1", "10.1.2.3", "192.168.4.5");
	struct in_addr others[UTIL_NAME_OTHERS];

	cr_expect_eq(memcmp(name.sin_zero, "\x0A\x01\x02\x03\xC0\xA8\x04\x05", 8), 0);
	cr_assert_eq(util_name_others((struct sockaddr *)&name, others), 2);
	cr_expect_eq(others[0].s_addr, inet_addr("10.1.2.3"));
	cr_expect_eq(others[1].s_addr, inet_addr("192.168.4.5"));
}

Test(util_name, a_shorter_list_has_zeros_behind)
{
	struct sockaddr_in name = make("10.0.0.1", "10.1.2.3", "10.1.2.4");
	struct in_addr one = { inet_addr("10.9.9.9") };

	util_name_set_others(&name, &one, 1);
	cr_expect_eq(memcmp(name.sin_zero, "\x0A\x09\x09\x09\0\0\0\0", 8), 0);
	cr_expect_eq(others_of(&name), 1);
	util_name_set_others(&name, NULL, 0);
	cr_expect_eq(others_of(&name), 0, "that of an older version");
}

Test(util_name, one_invalid_address_invalidates_all)
{
	static const char *const bad[][2] = {
		{ "127.0.0.1", "0.0.0.0" },       { "0.1.2.3", "0.0.0.0" },
		{ "224.0.0.1", "0.0.0.0" },       { "240.0.0.1", "0.0.0.0" },
		{ "255.255.255.255", "0.0.0.0" }, { "10.0.0.1", "0.0.0.0" },
		{ "10.2.0.1", "10.2.0.1" },       { "10.2.0.1", "10.0.0.1" },
		{ "10.2.0.1", "127.0.0.1" },      { "0.0.0.0", "10.2.0.1" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sockaddr_in name = make("10.0.0.1", bad[i][0], bad[i][1]);

		cr_expect_eq(others_of(&name), 0, "%s %s", bad[i][0], bad[i][1]);
	}
}

Test(util_name, an_ipv6_name_has_one_address)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6,
				     .sin6_port = htons(1),
				     .sin6_flowinfo = 0x01020304,
				     .sin6_scope_id = 0x05060708 };
	struct in_addr others[UTIL_NAME_OTHERS];
	struct sockaddr_in6 same;

	inet_pton(AF_INET6, "fd00::1", &name.sin6_addr);
	same = name;
	same.sin6_scope_id = 0;
	cr_expect_eq(util_name_others((struct sockaddr *)&name, others), 0);
	cr_expect(util_name_has((struct sockaddr *)&name, (struct sockaddr *)&same));
	same.sin6_port = htons(2);
	cr_expect_not(util_name_has((struct sockaddr *)&name, (struct sockaddr *)&same));
}

Test(util_name, link_local_addresses_of_two_links_differ)
{
	struct sockaddr_in6 one = { .sin6_family = AF_INET6,
				    .sin6_port = htons(1),
				    .sin6_scope_id = 1 };
	struct sockaddr_in6 two = one;

	inet_pton(AF_INET6, "fe80::1", &one.sin6_addr);
	two.sin6_addr = one.sin6_addr;
	cr_expect(util_name_is_same((struct sockaddr *)&one, (struct sockaddr *)&two));
	cr_expect(util_name_has((struct sockaddr *)&one, (struct sockaddr *)&two));
	two.sin6_scope_id = 2;
	cr_expect_not(util_name_is_same((struct sockaddr *)&one, (struct sockaddr *)&two));
	cr_expect_not(util_name_has((struct sockaddr *)&one, (struct sockaddr *)&two));
}

Test(util_name, a_name_has_its_addresses_at_its_port)
{
	struct sockaddr_in name = make("10.0.0.1", "10.1.2.3", "192.168.4.5");
	static const char *const own[] = { "10.0.0.1", "10.1.2.3", "192.168.4.5" };
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(4711) };

	for (unsigned i = 0; i < 3; i++) {
		addr.sin_addr.s_addr = inet_addr(own[i]);
		addr.sin_port = htons(4711);
		cr_expect(util_name_has((struct sockaddr *)&name, (struct sockaddr *)&addr));
		addr.sin_port = htons(4712);
		cr_expect_not(util_name_has((struct sockaddr *)&name, (struct sockaddr *)&addr));
	}
	addr.sin_addr.s_addr = inet_addr("10.1.2.4");
	addr.sin_port = htons(4711);
	cr_expect_not(util_name_has((struct sockaddr *)&name, (struct sockaddr *)&addr));
}
