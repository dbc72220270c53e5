/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory between two inaccessible pages, to find reads beyond a buffer.
 *
 * The area ends exactly at a guard page; an area of whole pages also begins exactly after one.
 */
#ifndef SUPPORT_GUARD_H
#define SUPPORT_GUARD_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define GUARD_PAGE 4096u

static inline size_t guard_span(size_t len)
{
	return (len + GUARD_PAGE - 1) & ~(size_t)(GUARD_PAGE - 1);
}

/** Returns `len` zeroed bytes, a multiple of 32, that end at a guard page. */
static inline uint8_t *guard_alloc(size_t len)
{
	size_t span = guard_span(len);
	uint8_t *map =
		mmap(NULL, span + 2 * GUARD_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED || mprotect(map + GUARD_PAGE, span, PROT_READ | PROT_WRITE))
		abort();
	return map + GUARD_PAGE + span - len;
}

static inline void guard_free(uint8_t *area, size_t len)
{
	munmap(area + len - guard_span(len) - GUARD_PAGE, guard_span(len) + 2 * GUARD_PAGE);
}

#endif
