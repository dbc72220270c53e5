/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Descriptions of UDP endpoints: their bytes, and malformed ones. */
#include "dev/udp/udp_addr.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

static union udp_addr addr_of(const char *ip, uint16_t port)
{
	union udp_addr a = { 0 };

	if (inet_pton(AF_INET, ip, &a.in.sin_addr) == 1) {
		a.in.sin_family = AF_INET;
		a.in.sin_port = htons(port);
	} else {
		cr_assert_eq(inet_pton(AF_INET6, ip, &a.in6.sin6_addr), 1);
		a.in6.sin6_family = AF_INET6;
		a.in6.sin6_port = htons(port);
	}
	return a;
}

Test(udp_addr, the_description_is_24_bytes_in_this_order)
{
	static const uint8_t golden[UDP_DESC_LEN] = { 1, 4, 0x34, 0x12, 0xDC, 0x05,
						      0, 0, 10,   20,   30,   40 };
	union udp_addr a = addr_of("10.20.30.40", 0x1234);
	struct dev_desc desc;

	udp_desc_encode(&a, 1500, &desc);
	cr_assert_eq(desc.len, UDP_DESC_LEN);
	cr_expect_eq(desc.fd_cnt, 0);
	cr_expect(!memcmp(desc.bytes, golden, sizeof(golden)));
}

Test(udp_addr, an_encoded_description_is_decoded)
{
	static const char *const ips[] = { "127.0.0.1", "10.0.0.1", "::1", "2001:db8::5",
					   "fe80::1" };
	union udp_addr a, b;
	struct dev_desc desc;
	uint32_t mtu, i;

	for (i = 0; i < sizeof(ips) / sizeof(ips[0]); i++) {
		a = addr_of(ips[i], (uint16_t)(1000 + i));
		udp_desc_encode(&a, 1452, &desc);
		cr_assert_eq(udp_desc_decode(&desc, &b, &mtu), 0);
		cr_expect_eq(mtu, 1452);
		cr_expect(!memcmp(&a, &b, udp_addr_len(&a)));
	}
}

/* Each differs from a valid one by one byte. */
Test(udp_addr, malformed_descriptions_are_refused)
{
	static const char *const ips[] = { "0.0.0.0", "255.255.255.255", "224.0.0.1",
					   "::",      "ff02::1",         "::ffff:1.2.3.4" };
	union udp_addr a = addr_of("10.0.0.1", 5), b;
	struct dev_desc good, desc;
	uint32_t mtu, i;

	udp_desc_encode(&a, UDP_MTU_MIN, &good);
	cr_assert_eq(udp_desc_decode(&good, &b, &mtu), 0);
	for (i = 0; i < sizeof(ips) / sizeof(ips[0]); i++) {
		a = addr_of(ips[i], 5);
		udp_desc_encode(&a, 1500, &desc);
		cr_expect_eq(udp_desc_decode(&desc, &b, &mtu), -FI_EINVAL, "%s", ips[i]);
	}
	for (i = 0; i < UDP_DESC_LEN; i++) {
		desc = good;
		desc.len = i;
		cr_expect_eq(udp_desc_decode(&desc, &b, &mtu), -FI_EINVAL, "short");
	}
	desc = good;
	desc.fd_cnt = 1;
	cr_expect_eq(udp_desc_decode(&desc, &b, &mtu), -FI_EINVAL, "with a descriptor");
	for (i = 12; i < UDP_DESC_LEN; i++) {
		desc = good;
		desc.bytes[i] = 1;
		cr_expect_eq(udp_desc_decode(&desc, &b, &mtu), -FI_EINVAL, "IPv4 and more");
	}
	desc = good;
	desc.bytes[0] = 2;
	cr_expect_eq(udp_desc_decode(&desc, &b, &mtu), -FI_EINVAL, "version");
	desc = good;
	desc.bytes[1] = 5;
	cr_expect_eq(udp_desc_decode(&desc, &b, &mtu), -FI_EINVAL, "family");
	desc = good;
	desc.bytes[2] = desc.bytes[3] = 0;
	cr_expect_eq(udp_desc_decode(&desc, &b, &mtu), -FI_EINVAL, "port 0");
	desc = good;
	desc.bytes[5] = 1;
	cr_expect_eq(udp_desc_decode(&desc, &b, &mtu), -FI_EINVAL, "mtu 256");
	desc.bytes[6] = 1;
	cr_expect_eq(udp_desc_decode(&desc, &b, &mtu), -FI_EINVAL, "mtu above 64 KiB");
}

Test(udp_addr, ids_differ_by_address_and_by_port)
{
	union udp_addr a[] = { addr_of("10.0.0.1", 5), addr_of("10.0.0.2", 5),
			       addr_of("10.0.0.1", 6), addr_of("::1", 5), addr_of("::2", 5) };
	struct dev_dgram_id id[5];
	uint32_t i, j;

	for (i = 0; i < 5; i++)
		udp_addr_id(&a[i], &id[i]);
	for (i = 0; i < 5; i++)
		for (j = 0; j < 5; j++)
			cr_expect_eq(!memcmp(&id[i], &id[j], sizeof(id[0])), i == j);
}

Test(udp_addr, addresses_have_the_usual_notation)
{
	union udp_addr a = addr_of("10.0.0.1", 5), b = addr_of("2001:db8::5", 80);
	char text[64];

	cr_expect_str_eq(udp_addr_text(&a, text, sizeof(text)), "10.0.0.1:5");
	cr_expect_str_eq(udp_addr_text(&b, text, sizeof(text)), "[2001:db8::5]:80");
}
