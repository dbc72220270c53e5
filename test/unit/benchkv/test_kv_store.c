/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shards: what was put is got, from the right shard only, and malformed requests change nothing. */
#include <criterion/criterion.h>
#include <string.h>

#include "benchkv/kv_store.h"

#define VALUE 32
#define KEYS  10

static struct kv_store store;
static uint8_t response[sizeof(struct kv_response) + VALUE];

static void open_shard(void)
{
	cr_assert_eq(kv_store_init(&store, 2, 1, 3, KEYS, VALUE), 0); /* keys 1, 4, 7 */
}

static void close_shard(void)
{
	kv_store_fini(&store);
}

TestSuite(kv_store, .init = open_shard, .fini = close_shard);

static size_t execute(uint8_t op, uint32_t rank, uint64_t key, uint8_t fill, size_t value_len)
{
	uint8_t request[sizeof(struct kv_request) + 2 * VALUE];
	struct kv_request head = { .op = op, .rank = rank, .key = key };

	memcpy(request, &head, sizeof(head));
	memset(request + sizeof(head), fill, value_len);
	return kv_store_execute(&store, request, sizeof(head) + value_len, response);
}

static enum kv_status status(void)
{
	struct kv_response head;

	memcpy(&head, response, sizeof(head));
	return (enum kv_status)head.status;
}

Test(kv_store, a_key_is_not_found_until_it_is_put_and_keeps_the_last_value)
{
	static const uint64_t own[] = { 1, 4, 7 };

	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(execute(KV_GET, 2, own[i], 0, 0), sizeof(struct kv_response));
		cr_assert_eq(status(), KV_NOT_FOUND);
		for (unsigned round = 0; round < 2; round++) {
			cr_assert_eq(execute(KV_PUT, 2, own[i], (uint8_t)(own[i] + round), VALUE),
				     sizeof(struct kv_response));
			cr_assert_eq(status(), KV_OK);
		}
	}
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(execute(KV_GET, 2, own[i], 0, 0), sizeof(response));
		cr_assert_eq(status(), KV_OK);
		for (unsigned k = 0; k < VALUE; k++)
			cr_assert_eq(response[sizeof(struct kv_response) + k], own[i] + 1);
	}
}

Test(kv_store, keys_of_other_shards_and_nodes_are_refused)
{
	for (uint64_t key = 0; key < KEYS + 3; key++) {
		execute(KV_PUT, 2, key, 1, VALUE);
		cr_expect_eq(status(), key % 3 == 1 && key < KEYS ? KV_OK : KV_BAD, "key %lu", key);
	}
	execute(KV_PUT, 1, 4, 1, VALUE);
	cr_expect_eq(status(), KV_BAD);
	execute(KV_GET, 2, UINT64_MAX, 1, 0);
	cr_expect_eq(status(), KV_BAD);
}

Test(kv_store, malformed_requests_are_refused)
{
	static const size_t wrong[] = { 0, 1, VALUE - 1, VALUE + 1 };

	for (unsigned i = 0; i < 4; i++) {
		execute(KV_PUT, 2, 4, 1, wrong[i]);
		cr_expect_eq(status(), KV_BAD, "a put of %zu bytes", wrong[i]);
	}
	execute(KV_GET, 2, 4, 1, 1);
	cr_expect_eq(status(), KV_BAD, "a get with a value");
	for (unsigned op = 0; op < 256; op++) {
		execute((uint8_t)op, 2, 4, 1, VALUE);
		cr_expect_eq(status(), op == KV_PUT ? KV_OK : KV_BAD, "operation %u", op);
	}
	for (size_t len = 0; len < sizeof(struct kv_request); len++) {
		uint8_t request[sizeof(struct kv_request)] = { KV_GET };

		kv_store_execute(&store, request, len, response);
		cr_expect_eq(status(), KV_BAD, "%zu bytes", len);
	}
}
