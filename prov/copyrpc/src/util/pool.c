/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Chunks of the object pool: see pool.h.
 *
 * A chunk is one 64-byte line, which links the chunks, followed by the objects. Objects enter the
 * free list in address order, so a burst of allocations walks memory forwards. All chunks have
 * chunk_items objects, but for the last one before max_items.
 */
#include "util/pool.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "util/bits.h"
#include "util/held.h"

struct util_pool_chunk {
	struct util_pool_chunk *next;
	size_t len; /* of the chunk, this line included */
} __attribute__((aligned(UTIL_CACHE_LINE)));

static_assert(sizeof(struct util_pool_chunk) == UTIL_POOL_HEAD, "pool.h");

void util_pool_init(struct util_pool *pool, size_t item_len, size_t chunk_items, size_t max_items)
{
	assert(item_len && chunk_items);
	*pool = (struct util_pool){
		.item_len = util_align_up(item_len, UTIL_CACHE_LINE),
		.chunk_items = chunk_items,
		.max_items = max_items,
	};
}

void util_pool_fini(struct util_pool *pool)
{
	struct util_pool_chunk *chunk = pool->chunks;

	while (chunk) {
		struct util_pool_chunk *next = chunk->next;

		util_held_add(UTIL_HELD_POOLS, -(int64_t)chunk->len);
		free(chunk);
		chunk = next;
	}
	pool->chunks = NULL;
	pool->free = NULL;
	pool->item_cnt = 0;
	pool->used_most = 0;
}

/* Returns the object count of the next chunk: fewer than usual close to the limit. */
static size_t util_pool_next_items(const struct util_pool *pool)
{
	if (pool->max_items && pool->max_items - pool->item_cnt < pool->chunk_items)
		return pool->max_items - pool->item_cnt;
	return pool->chunk_items;
}

/* Allocates a chunk of `len` bytes, with advice to use huge pages if it fills them. */
static struct util_pool_chunk *util_pool_chunk_alloc(size_t len)
{
	void *chunk;

	if (len > PTRDIFF_MAX - UTIL_POOL_HUGE)
		return NULL;
	if (len % UTIL_POOL_HUGE && len % UTIL_POOL_HUGE < UTIL_POOL_HUGE / 32 * 31)
		return aligned_alloc(UTIL_CACHE_LINE, len);
	len = util_align_up(len, UTIL_POOL_HUGE);
	chunk = aligned_alloc(UTIL_POOL_HUGE, len);
	if (chunk)
		madvise(chunk, len, MADV_HUGEPAGE);
	return chunk;
}

/** Allocates the next chunk. Returns 0 or -FI_ENOMEM. */
static int util_pool_add_chunk(struct util_pool *pool)
{
	size_t items = util_pool_next_items(pool);
	struct util_pool_chunk *chunk;
	size_t len;

	if (!items || __builtin_mul_overflow(items, pool->item_len, &len) ||
	    __builtin_add_overflow(len, sizeof(*chunk), &len))
		return -FI_ENOMEM;
	chunk = util_pool_chunk_alloc(len);
	if (!chunk)
		return -FI_ENOMEM;
	*chunk = (struct util_pool_chunk){ .next = pool->chunks, .len = len };
	pool->chunks = chunk;
	pool->fresh = (char *)(chunk + 1);
	pool->item_cnt += items;
	util_held_add(UTIL_HELD_POOLS, (int64_t)len);
	return 0;
}

int util_pool_grow(struct util_pool *pool)
{
	struct util_pool_item *item;
	int ret = pool->used_most == pool->item_cnt ? util_pool_add_chunk(pool) : 0;

	if (ret)
		return ret;
	item = (void *)pool->fresh;
	pool->fresh += pool->item_len;
	pool->used_most++;
	item->next = pool->free;
	pool->free = item;
	return 0;
}
