/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where does the next request come from?
 *
 * A pool of objects of one size: chunks taken from the heap, a LIFO free list through the objects
 * themselves, so that the hottest object is handed out first and the common case is a load and a
 * store. Objects are 64-byte aligned and never move; memory goes back to the heap at fini only.
 * Not locked: the owner's lock covers it.
 *
 * Shown by test/unit/util/test_pool.c.
 */
#ifndef UTIL_POOL_H
#define UTIL_POOL_H

#include <stddef.h>
#include <stdint.h>

struct util_pool_item {
	struct util_pool_item *next;
};

struct util_pool {
	struct util_pool_item *free;
	void *chunks;       /* list of chunks, linked through their first word */
	size_t item_len;    /* bytes, a multiple of 64 */
	size_t chunk_items; /* objects per chunk */
	size_t max_items;   /* 0: unlimited */
	size_t item_cnt;    /* objects made so far */
	size_t used_cnt;    /* objects handed out now */
};

/** Makes an empty pool: nothing is allocated before the first alloc. */
void util_pool_init(struct util_pool *pool, size_t item_len, size_t chunk_items, size_t max_items);

/** Gives all memory back; objects still handed out become invalid. */
void util_pool_fini(struct util_pool *pool);

/** Adds a chunk to the free list: 0, or -FI_ENOMEM (heap empty or max_items reached). */
int util_pool_grow(struct util_pool *pool);

/** The object that the next alloc would hand out, or NULL if the heap would have to be asked. */
static inline void *util_pool_first(struct util_pool *pool)
{
	return pool->free;
}

/** Hands out `obj`, which util_pool_first just returned. */
static inline void util_pool_take(struct util_pool *pool, void *obj)
{
	pool->free = ((struct util_pool_item *)obj)->next;
	pool->used_cnt++;
}

/** An object with undefined content, or NULL (no memory, or max_items in use). */
static inline void *util_pool_alloc(struct util_pool *pool)
{
	struct util_pool_item *item;

	if (__builtin_expect(!pool->free, 0) && util_pool_grow(pool))
		return NULL;
	item = pool->free;
	util_pool_take(pool, item);
	return item;
}

static inline void util_pool_release(struct util_pool *pool, void *obj)
{
	struct util_pool_item *item = obj;

	item->next = pool->free;
	pool->free = item;
	pool->used_cnt--;
}

#endif
