/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Values that prove themselves. Filled by the client that puts them, checked by the client that
 * gets them.
 *
 * A value names its key, its writer and the writer's count of puts to that key; the rest of its
 * bytes follow from these. So a response for another key, a torn value, and a value that is older
 * than one that the same client had put before are all detected. Tested by
 * test/unit/benchkv/test_kv_value.c.
 */
#ifndef KV_VALUE_H
#define KV_VALUE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "kv_msg.h"

/** Smallest value: the fields of struct kv_value. */
#define KV_VALUE_MIN ((size_t)32)

/** Beginning of each value. */
struct kv_value {
	uint32_t rank;   /* node of the key */
	uint32_t writer; /* global number of the client */
	uint64_t key;
	uint64_t seq;  /* puts of this writer to this key, this one included */
	uint64_t hash; /* of the fields above; set by kv_value_fill */
};

static_assert(offsetof(struct kv_value, writer) == 4 && offsetof(struct kv_value, key) == 8 &&
		      offsetof(struct kv_value, seq) == 16 && sizeof(struct kv_value) == 32,
	      "kv_value_fill writes it by words");

enum kv_fault {
	KV_FAULT_NONE = 0,
	KV_FAULT_LENGTH,  /* not as long as each value of this run */
	KV_FAULT_KEY,     /* the value of another key */
	KV_FAULT_BYTES,   /* torn, or overwritten */
	KV_FAULT_REFUSED, /* KV_BAD: the node found the request malformed */
	KV_FAULT_OLD,     /* older than a put of the same client that was sent before the get */
};

static inline uint64_t kv_value_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 32;
}

/** Returns kv_value.hash. */
static inline uint64_t kv_value_hash(const struct kv_value *value)
{
	uint64_t hash = kv_value_mix(1, (uint64_t)value->rank << 32 | value->writer);

	return kv_value_mix(kv_value_mix(hash, value->key), value->seq);
}

/** Fills the bytes behind the fields. */
void kv_value_fill_rest(void *buf, size_t len, uint64_t hash);

/**
 * Fills `len` bytes, at least KV_VALUE_MIN. Inline, so that the fields of the caller's structure
 * stay in registers: one load of several fields that were just stored waits until all stores before
 * them have left the processor, those to lines of another processor among them.
 */
static inline void kv_value_fill(void *buf, size_t len, const struct kv_value *value)
{
	uint64_t hash = kv_value_hash(value);

	kv_put_words(buf, kv_word(value->rank, value->writer), value->key);
	kv_put_words((uint8_t *)buf + 16, value->seq, hash);
	if (len > sizeof(*value))
		kv_value_fill_rest(buf, len, hash);
}

/**
 * Checks the value that a get of `expected->key` returned. expected->writer is the client that
 * asked, expected->seq the number of puts to that key that it had sent before. Returns enum
 * kv_fault.
 */
enum kv_fault kv_value_check(const void *buf, size_t len, size_t value_len,
			     const struct kv_value *expected);

/** Returns the name of a fault, for reports. */
const char *kv_fault_name(enum kv_fault fault);

#endif
