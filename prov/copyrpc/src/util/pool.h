/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pool of objects of one size.
 *
 * Chunks come from the heap. A LIFO free list runs through the objects, so the object most likely
 * in the cache is allocated first and the common case is one load and one store. Objects are
 * 64-byte aligned and never move. Memory returns to the heap only at fini. Chunks that fill huge
 * pages but for a 32nd are on them, where the system has some. Not locked: the owner's lock covers
 * the pool.
 *
 * An object that was never in use enters the free list only when that is empty. So the number of
 * objects that ever were on it is the highest number in use at a time, which costs nothing to know.
 */
#ifndef UTIL_POOL_H
#define UTIL_POOL_H

#include <stddef.h>

#define UTIL_POOL_HUGE ((size_t)2 << 20)

/** Bytes of a chunk that are not for objects. */
#define UTIL_POOL_HEAD 64u

struct util_pool_item {
	struct util_pool_item *next;
};

struct util_pool {
	struct util_pool_item *free;
	void *chunks;       /* list of chunks, linked through their first word */
	size_t item_len;    /* bytes, a multiple of 64 */
	size_t chunk_items; /* objects per chunk */
	size_t max_items;   /* 0: unlimited */
	size_t item_cnt;    /* objects allocated from the heap so far */
	size_t used_most;   /* highest number of objects in use at a time */
	char *fresh;        /* next object of the last chunk that was never in use */
};

/** Initialises an empty pool. Allocates nothing before the first util_pool_alloc. */
void util_pool_init(struct util_pool *pool, size_t item_len, size_t chunk_items, size_t max_items);

/** Frees all memory; objects still in use become invalid. */
void util_pool_fini(struct util_pool *pool);

/**
 * Puts an object that was never in use on the free list, which is empty. Returns 0, or -FI_ENOMEM
 * without memory or at max_items.
 */
int util_pool_grow(struct util_pool *pool);

/** Returns the object that the next alloc returns, or NULL if the free list is empty. */
static inline void *util_pool_first(struct util_pool *pool)
{
	return pool->free;
}

/** Allocates `obj`, the last result of util_pool_first. */
static inline void util_pool_take(struct util_pool *pool, void *obj)
{
	pool->free = ((struct util_pool_item *)obj)->next;
}

/** Returns an object with undefined content, or NULL without memory or at max_items. */
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
}

#endif
