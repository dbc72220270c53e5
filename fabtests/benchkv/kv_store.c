/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shard of a node's keys: see kv_store.h. */
#include "kv_store.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kv_value.h"

int kv_store_init(struct kv_store *store, uint32_t rank, uint32_t daemon, uint32_t daemons,
		  uint64_t keys, size_t value_len)
{
	uint64_t own = (keys + daemons - 1) / daemons;

	*store = (struct kv_store){
		.rank = rank,
		.daemon = daemon,
		.daemons = daemons,
		.keys = keys,
		.value_len = value_len,
		.values = calloc(own, value_len),
		.present = calloc(own, 1),
	};
	if (store->values && store->present)
		return 0;
	kv_store_fini(store);
	return -ENOMEM;
}

void kv_store_fini(struct kv_store *store)
{
	free(store->values);
	free(store->present);
	store->values = store->present = NULL;
}

/* Returns true if the shard can execute the request. */
static bool kv_store_accepts(const struct kv_store *store, const struct kv_request *head,
			     size_t value_len)
{
	if (head->rank != store->rank || head->key >= store->keys ||
	    head->key % store->daemons != store->daemon)
		return false;
	return head->op == KV_GET ? value_len == 0
				  : head->op == KV_PUT && value_len == store->value_len;
}

/* Copies a value; one of the smallest length, the default, without a function call. */
static void kv_store_copy(const struct kv_store *store, void *to, const void *from)
{
	if (store->value_len == KV_VALUE_MIN)
		memcpy(to, from, KV_VALUE_MIN);
	else
		memcpy(to, from, store->value_len);
}

static enum kv_status kv_store_run(struct kv_store *store, const struct kv_request *head,
				   const void *value, void *out)
{
	uint64_t index = head->key / store->daemons;
	uint8_t *at = store->values + index * store->value_len;

	if (head->op == KV_PUT) {
		kv_store_copy(store, at, value);
		store->present[index] = 1;
		return KV_OK;
	}
	if (!store->present[index])
		return KV_NOT_FOUND;
	kv_store_copy(store, out, at);
	return KV_OK;
}

size_t kv_store_execute(struct kv_store *store, const void *request, size_t len, void *response)
{
	uint8_t *value = (uint8_t *)response + sizeof(struct kv_response);
	enum kv_status status = KV_BAD;
	struct kv_request head = { .op = 0 };

	if (len >= sizeof(head)) {
		memcpy(&head, request, sizeof(head));
		if (kv_store_accepts(store, &head, len - sizeof(head)))
			status = kv_store_run(store, &head, (const uint8_t *)request + sizeof(head),
					      value);
	}
	kv_put_response(response, status);
	return sizeof(struct kv_response) +
	       (head.op == KV_GET && status == KV_OK ? store->value_len : 0);
}
