/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where does memory come from that was given back a moment ago?
 *
 * Blocks of any length, kept when they are given back, up to a limit. The heap would return them to the
 * kernel as soon as 128 KiB at its end are free, and a message that arrives before its receive would cost a page fault
 * for each of its pages: several times as much as to copy it. Classes are a quarter of a power
 * of two apart, so that a fifth of a block is wasted at most; what is shorter or longer than that is the heap's.
 * Not locked: the owner's lock covers it.
 *
 * Shown by test/unit/util/test_cache.c.
 */
#ifndef UTIL_CACHE_H
#define UTIL_CACHE_H

#include <stddef.h>

#define UTIL_CACHE_MIN     256u        /* bytes: no block is as short as that, */
#define UTIL_CACHE_MAX     (64u << 10) /* and none longer */
#define UTIL_CACHE_CLASSES 32          /* from 256 bytes to 64 KiB, four to a doubling */

struct util_cache_block {
	struct util_cache_block *next;
};

struct util_cache {
	struct util_cache_block *free[UTIL_CACHE_CLASSES];
	size_t kept;     /* bytes in `free` */
	size_t kept_max; /* and at most */
};

/** Keeps nothing yet, and later `kept_max` bytes at most. */
void util_cache_init(struct util_cache *cache, size_t kept_max);

/** Gives what is kept back to the heap. */
void util_cache_fini(struct util_cache *cache);

/** At least `len` bytes of undefined content, aligned as malloc does; or NULL: no memory. */
void *util_cache_alloc(struct util_cache *cache, size_t len);

/** Gives back what alloc returned for the same `len`. */
void util_cache_free(struct util_cache *cache, void *block, size_t len);

#endif
