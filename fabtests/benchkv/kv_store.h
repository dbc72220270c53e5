/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shard of a node's keys: those with key % daemons == daemon. Owned by one daemon thread, which
 * executes requests on it. Tested by test/unit/benchkv/test_kv_store.c.
 */
#ifndef KV_STORE_H
#define KV_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "kv_msg.h"

struct kv_store {
	uint32_t rank, daemon, daemons;
	uint64_t keys;    /* keys of the node, all shards together */
	size_t value_len; /* bytes of each value */
	uint8_t *values;  /* value_len bytes a key of this shard */
	uint8_t *present; /* 1 if a value was put */
};

/** Allocates an empty shard. Returns 0 or -ENOMEM. */
int kv_store_init(struct kv_store *store, uint32_t rank, uint32_t daemon, uint32_t daemons,
		  uint64_t keys, size_t value_len);
void kv_store_fini(struct kv_store *store);

/**
 * Executes a request of `len` bytes and writes the response, of at most sizeof(struct kv_response)
 * + value_len bytes. Returns its length. A malformed request is replied to with KV_BAD.
 */
size_t kv_store_execute(struct kv_store *store, const void *request, size_t len, void *response);

#endif
