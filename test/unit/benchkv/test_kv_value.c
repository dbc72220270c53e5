/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Values: each kind of damage is found, and nothing else. */
#include <criterion/criterion.h>
#include <string.h>

#include "benchkv/kv_value.h"

#define LEN_MAX 200

static const struct kv_value put = { .rank = 3, .writer = 7, .key = 1000, .seq = 5 };

static enum kv_fault check(const void *buf, size_t len, struct kv_value expected)
{
	return kv_value_check(buf, len, LEN_MAX, &expected);
}

Test(kv_value, a_filled_value_is_right_at_every_length)
{
	uint8_t buf[LEN_MAX];

	for (size_t len = KV_VALUE_MIN; len <= LEN_MAX; len++) {
		kv_value_fill(buf, len, &put);
		cr_expect_eq(kv_value_check(buf, len, len, &put), KV_FAULT_NONE, "%zu", len);
	}
}

Test(kv_value, each_changed_byte_is_found)
{
	uint8_t buf[LEN_MAX];
	struct kv_value other = put;

	other.writer = 8; /* so that an older sequence number is no fault by itself */
	for (size_t i = 0; i < LEN_MAX; i++) {
		kv_value_fill(buf, LEN_MAX, &put);
		buf[i] ^= 0x10;
		cr_expect_neq(check(buf, LEN_MAX, other), KV_FAULT_NONE, "byte %zu", i);
	}
}

Test(kv_value, another_length_is_found)
{
	uint8_t buf[LEN_MAX];

	kv_value_fill(buf, LEN_MAX, &put);
	cr_expect_eq(check(buf, LEN_MAX - 1, put), KV_FAULT_LENGTH);
	cr_expect_eq(check(buf, 0, put), KV_FAULT_LENGTH);
	cr_expect_eq(kv_value_check(buf, KV_VALUE_MIN - 1, KV_VALUE_MIN - 1, &put),
		     KV_FAULT_LENGTH);
}

Test(kv_value, the_value_of_another_key_is_found)
{
	uint8_t buf[LEN_MAX];
	struct kv_value expected = put;

	kv_value_fill(buf, LEN_MAX, &put);
	expected.key++;
	cr_expect_eq(check(buf, LEN_MAX, expected), KV_FAULT_KEY);
	expected = put;
	expected.rank++;
	cr_expect_eq(check(buf, LEN_MAX, expected), KV_FAULT_KEY);
}

Test(kv_value, an_older_value_of_the_same_client_is_found)
{
	uint8_t buf[LEN_MAX];
	struct kv_value expected = put;

	kv_value_fill(buf, LEN_MAX, &put);
	expected.seq = put.seq - 1;
	cr_expect_eq(check(buf, LEN_MAX, expected), KV_FAULT_NONE, "newer than demanded");
	expected.seq = put.seq + 1;
	cr_expect_eq(check(buf, LEN_MAX, expected), KV_FAULT_OLD);
	expected.writer++;
	cr_expect_eq(check(buf, LEN_MAX, expected), KV_FAULT_NONE, "another client's order");
}

Test(kv_value, each_fault_has_a_name)
{
	for (unsigned fault = KV_FAULT_NONE; fault <= KV_FAULT_OLD; fault++)
		cr_expect(strlen(kv_fault_name((enum kv_fault)fault)) > 0);
}
