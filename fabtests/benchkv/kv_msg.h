/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests and responses of the key-value benchmark, the same on local channels and between nodes.
 * All nodes of a job have the same byte order, so numbers travel as they are in memory.
 *
 * A key belongs to one node (`rank`) and there to the daemon key % daemons. Keys count from 0 on
 * each node.
 */
#ifndef KV_MSG_H
#define KV_MSG_H

#include <stdint.h>
#include <string.h>

/** Largest value in bytes. */
#define KV_VALUE_MAX 4096u

enum kv_op {
	KV_GET = 1,
	KV_PUT = 2,
};

enum kv_status {
	KV_OK = 0,          /* PutOk, or GetOk with the value behind it */
	KV_NOT_FOUND = 1,   /* no value was put for that key */
	KV_UNREACHABLE = 2, /* the node of the key does not respond */
	KV_BAD = 3, /* the request is malformed: unknown operation, wrong length, no such key */
};

/** Head of a request. The value of a put follows. */
struct kv_request {
	uint32_t op; /* enum kv_op */
	uint32_t rank;
	uint64_t key;
};

/**
 * Head of a response. The value of a successful get follows, at a multiple of the 16 bytes that a
 * channel copies at once (kv_put_words).
 */
struct kv_response {
	uint64_t status; /* enum kv_status */
	uint64_t reserved;
};

/** Returns the word of two numbers that follow each other in memory. */
static inline uint64_t kv_word(uint32_t first, uint32_t second)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? (uint64_t)second << 32 | first
							 : (uint64_t)first << 32 | second;
}

/**
 * Writes 16 bytes with one store. A channel copies a message as soon as it is written, 16 bytes at
 * a time, and a processor cannot pass several smaller stores on to one load.
 */
static inline void kv_put_words(void *to, uint64_t first, uint64_t second)
{
	typedef uint64_t kv_pair __attribute__((vector_size(16)));
	kv_pair pair = { first, second };

	memcpy(to, &pair, sizeof(pair));
}

/** Writes the head of a response. */
static inline void kv_put_response(void *to, enum kv_status status)
{
	kv_put_words(to, status, 0);
}

/** Writes the head of a request. */
static inline void kv_put_request(void *to, enum kv_op op, uint32_t rank, uint64_t key)
{
	kv_put_words(to, kv_word(op, rank), key);
}

#endif
