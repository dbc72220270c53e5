/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Size-class cache of freed blocks: see cache.h. */
#include "util/cache.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MIN_SHIFT 8 /* of UTIL_CACHE_MIN */

static bool cache_keeps(size_t len)
{
	return len > UTIL_CACHE_MIN && len <= UTIL_CACHE_MAX;
}

/**
 * Returns the class with the shortest blocks of at least `len` bytes; *size: length of those
 * blocks.
 */
static unsigned cache_class(size_t len, size_t *size)
{
	size_t last = len - 1; /* 2^top <= last < 2^(top + 1); each doubling has four classes */
	unsigned top = 63u - (unsigned)__builtin_clzll(last);
	unsigned quarter = (unsigned)(last >> (top - 2)) & 3;

	*size = (size_t)(5 + quarter) << (top - 2);
	return (top - MIN_SHIFT) * 4 + quarter;
}

void util_cache_init(struct util_cache *cache, size_t kept_max)
{
	memset(cache, 0, sizeof(*cache));
	cache->kept_max = kept_max;
}

void util_cache_fini(struct util_cache *cache)
{
	for (unsigned c = 0; c < UTIL_CACHE_CLASSES; c++) {
		struct util_cache_block *block = cache->free[c], *next;

		for (; block; block = next) {
			next = block->next;
			free(block);
		}
	}
	util_cache_init(cache, cache->kept_max);
}

void *util_cache_alloc(struct util_cache *cache, size_t len)
{
	struct util_cache_block *block;
	size_t size;
	unsigned c;

	if (!cache_keeps(len))
		return malloc(len);
	c = cache_class(len, &size);
	block = cache->free[c];
	if (!block)
		return malloc(size);
	cache->free[c] = block->next;
	cache->kept -= size;
	return block;
}

void util_cache_free(struct util_cache *cache, void *block, size_t len)
{
	struct util_cache_block *kept = block;
	size_t size;
	unsigned c;

	if (!block)
		return;
	if (!cache_keeps(len)) {
		free(block);
		return;
	}
	c = cache_class(len, &size);
	if (size > cache->kept_max - cache->kept) {
		free(block);
		return;
	}
	kept->next = cache->free[c];
	cache->free[c] = kept;
	cache->kept += size;
}
