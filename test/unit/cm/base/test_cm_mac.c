/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MACs and cookies: cm/base/cm_mac.c. */
#include "cm/base/cm_mac.h"

#include <criterion/criterion.h>
#include <string.h>

#include "unit/cm/cm_fixture.h"

static struct cm_mac_key key;
static union cm_addr a, b;
static uint8_t buf[100];

static void set_up(void)
{
	cr_assert(!cm_mac_init());
	cm_mac_key_set(&key, "key");
	cm_test_addr("127.0.0.1", 1, &a);
	cm_test_addr("127.0.0.1", 2, &b);
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)i;
	cm_mac_seal(&key, &a, &b, buf, sizeof(buf));
}

TestSuite(cm_mac, .init = set_up);

Test(cm_mac, a_sealed_packet_passes)
{
	cr_assert(cm_mac_check(&key, &a, &b, buf, sizeof(buf)));
}

/*
 * Golden value: BLAKE2b-256 of key, purpose, addresses and bytes, computed with Python's hashlib.
 */
Test(cm_mac, seal_is_the_documented_hash)
{
	static const uint8_t golden[32] = {
		0x62, 0x83, 0x1b, 0x9c, 0x99, 0xe1, 0x23, 0x26, 0x31, 0x32, 0xc2,
		0xfd, 0xca, 0xc7, 0xb8, 0x15, 0x13, 0x21, 0x08, 0x68, 0x14, 0x2c,
		0x7e, 0xe6, 0x3e, 0xac, 0xa0, 0x80, 0xc6, 0x12, 0x52, 0x71,
	};

	cr_assert(!memcmp(buf + sizeof(buf) - 32, golden, sizeof(golden)));
}

Test(cm_mac, every_changed_bit_is_detected)
{
	for (size_t bit = 0; bit < 8 * sizeof(buf); bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert(!cm_mac_check(&key, &a, &b, buf, sizeof(buf)), "bit %zu", bit);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

/** Without a key the digest detects damage all the same, at whatever addresses. */
Test(cm_mac, every_changed_bit_is_detected_without_a_key)
{
	struct cm_mac_key none;

	cm_mac_key_set(&none, NULL);
	cm_mac_seal(&none, &a, &b, buf, sizeof(buf));
	cr_assert(cm_mac_check(&none, &a, &b, buf, sizeof(buf)));
	cr_assert(cm_mac_check(&none, &b, &a, buf, sizeof(buf)), "addresses may be translated");
	for (size_t bit = 0; bit < 8 * sizeof(buf); bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert(!cm_mac_check(&none, &a, &b, buf, sizeof(buf)), "bit %zu", bit);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	memset(buf + sizeof(buf) - 32, 0, 32);
	cr_assert(!cm_mac_check(&none, &a, &b, buf, sizeof(buf)));
}

Test(cm_mac, a_packet_is_invalid_for_any_other_address)
{
	union cm_addr c;

	cr_assert(!cm_mac_check(&key, &b, &a, buf, sizeof(buf)));
	cm_test_addr("127.0.0.1", 3, &c);
	cr_assert(!cm_mac_check(&key, &a, &c, buf, sizeof(buf)));
	cr_assert(!cm_mac_check(&key, &c, &b, buf, sizeof(buf)));
}

/* Each end has its own interface index. */
Test(cm_mac, interface_indices_are_not_hashed)
{
	union cm_addr here, there;

	cm_test_addr("fe80::1", 1, &here);
	there = here;
	here.in6.sin6_scope_id = 3;
	there.in6.sin6_scope_id = 5;
	cm_mac_seal(&key, &here, &b, buf, sizeof(buf));
	cr_expect(cm_mac_check(&key, &there, &b, buf, sizeof(buf)));
	there.in6.sin6_port++;
	cr_expect_not(cm_mac_check(&key, &there, &b, buf, sizeof(buf)));
}

Test(cm_mac, another_key_or_none_does_not_pass)
{
	struct cm_mac_key other;
	char long_key[300];

	cm_mac_key_set(&other, "kez");
	cr_assert(!cm_mac_check(&other, &a, &b, buf, sizeof(buf)));
	cm_mac_key_set(&other, NULL);
	cr_assert(!other.is_set);
	cr_assert(!cm_mac_check(&other, &a, &b, buf, sizeof(buf)));
	cm_mac_key_set(&other, "");
	cr_assert(!other.is_set);
	cm_mac_seal(&other, &a, &b, buf, sizeof(buf));
	cr_assert(cm_mac_check(&other, &a, &b, buf, sizeof(buf)));
	cr_assert(!cm_mac_check(&key, &a, &b, buf, sizeof(buf)));
	/* All of a long key is used. */
	memset(long_key, 'x', sizeof(long_key));
	long_key[299] = '\0';
	cm_mac_key_set(&key, long_key);
	cm_mac_seal(&key, &a, &b, buf, sizeof(buf));
	long_key[298] = 'y';
	cm_mac_key_set(&other, long_key);
	cr_assert(!cm_mac_check(&other, &a, &b, buf, sizeof(buf)));
}

Test(cm_mac, a_cookie_is_valid_for_its_address_incarnation_nonce_and_time_only)
{
	struct cm_cookie_jar jar, other;
	uint8_t cookie[WIRE_CM_COOKIE_LEN];
	uint64_t t = 1000 * CM_COOKIE_TICK_NS;

	cm_cookie_init(&jar);
	cm_cookie_init(&other);
	cm_cookie_make(&jar, &a, 5, 6, t, cookie);
	cr_assert(cm_cookie_check(&jar, &a, 5, 6, t, cookie));
	cr_assert(cm_cookie_check(&jar, &a, 5, 6, t + 2 * CM_COOKIE_TICK_NS - 1, cookie));
	cr_assert(!cm_cookie_check(&jar, &a, 5, 6, t + 2 * CM_COOKIE_TICK_NS, cookie));
	cr_assert(!cm_cookie_check(&jar, &b, 5, 6, t, cookie));
	cr_assert(!cm_cookie_check(&jar, &a, 4, 6, t, cookie));
	cr_assert(!cm_cookie_check(&jar, &a, 5, 7, t, cookie));
	cr_assert(!cm_cookie_check(&other, &a, 5, 6, t, cookie));
	cookie[15] ^= 1;
	cr_assert(!cm_cookie_check(&jar, &a, 5, 6, t, cookie));
}

Test(cm_mac, random_names_are_digits_and_differ)
{
	char x[WIRE_CM_NAME_LEN + 1], y[WIRE_CM_NAME_LEN + 1];

	cm_mac_random_name(x, sizeof(x));
	cm_mac_random_name(y, sizeof(y));
	cr_assert_str_neq(x, y);
	cr_assert_eq(strspn(x, "0123456789abcdef"), WIRE_CM_NAME_LEN);
	cr_assert_eq(strlen(x), WIRE_CM_NAME_LEN);
	cr_assert(cm_mac_random() != cm_mac_random());
}
