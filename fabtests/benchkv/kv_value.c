/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Values that prove themselves: see kv_value.h. */
#include "kv_value.h"

#include <string.h>

/* Returns the byte at `i` behind the head of a value. */
static uint8_t kv_value_byte(uint64_t hash, size_t i)
{
	return (uint8_t)(kv_value_mix(hash, i) >> 24);
}

void kv_value_fill_rest(void *buf, size_t len, uint64_t hash)
{
	uint8_t *bytes = (uint8_t *)buf + sizeof(struct kv_value);

	for (size_t i = 0; i < len - sizeof(struct kv_value); i++)
		bytes[i] = kv_value_byte(hash, i);
}

enum kv_fault kv_value_check(const void *buf, size_t len, size_t value_len,
			     const struct kv_value *expected)
{
	const uint8_t *bytes = (const uint8_t *)buf + sizeof(struct kv_value);
	struct kv_value got;

	if (len != value_len || len < sizeof(got))
		return KV_FAULT_LENGTH;
	memcpy(&got, buf, sizeof(got));
	if (got.key != expected->key || got.rank != expected->rank)
		return KV_FAULT_KEY;
	if (got.hash != kv_value_hash(&got))
		return KV_FAULT_BYTES;
	for (size_t i = 0; i < len - sizeof(got); i++)
		if (bytes[i] != kv_value_byte(got.hash, i))
			return KV_FAULT_BYTES;
	if (got.writer == expected->writer && got.seq < expected->seq)
		return KV_FAULT_OLD;
	return KV_FAULT_NONE;
}

const char *kv_fault_name(enum kv_fault fault)
{
	static const char *const name[] = {
		[KV_FAULT_NONE] = "none",
		[KV_FAULT_LENGTH] = "a value of another length",
		[KV_FAULT_KEY] = "the value of another key",
		[KV_FAULT_BYTES] = "a torn value",
		[KV_FAULT_REFUSED] = "a correct request was refused as malformed",
		[KV_FAULT_OLD] = "an older value than this client had put",
	};

	return name[fault];
}
