/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Size-class cache of freed heap blocks, for receive buffers of unexpected messages.
 *
 * The heap returns memory to the kernel as soon as 128 KiB at its end are free. The next unexpected
 * message would then cost a page fault per page, several times the cost of its copy. The cache
 * retains freed blocks up to a limit. Classes are a quarter of a power of two apart, so at most a
 * fifth of a block is wasted. Shorter and longer blocks go straight to the heap. Not locked: the
 * owner's lock covers the cache.
 */
#ifndef UTIL_CACHE_H
#define UTIL_CACHE_H

#include <stddef.h>

#define UTIL_CACHE_MIN     256u        /* bytes; blocks up to this length are not cached */
#define UTIL_CACHE_MAX     (64u << 10) /* bytes; longer blocks are not cached */
#define UTIL_CACHE_CLASSES 32          /* from 256 bytes to 64 KiB, four classes per doubling */

struct util_cache_block {
	struct util_cache_block *next;
};

struct util_cache {
	struct util_cache_block *free[UTIL_CACHE_CLASSES];
	size_t kept;     /* bytes retained in `free` */
	size_t kept_max; /* limit for `kept` */
};

/** Initialises an empty cache that retains at most `kept_max` bytes. */
void util_cache_init(struct util_cache *cache, size_t kept_max);

/** Returns all retained blocks to the heap. */
void util_cache_fini(struct util_cache *cache);

/**
 * Returns at least `len` bytes of undefined content, aligned like malloc, or NULL without memory.
 */
void *util_cache_alloc(struct util_cache *cache, size_t len);

/** Frees a block of util_cache_alloc; `len` is the length that was requested. */
void util_cache_free(struct util_cache *cache, void *block, size_t len);

#endif
