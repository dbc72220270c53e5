/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Empties the heap and prevents it from growing, to test lack of memory.
 *
 * The address space is limited to its present size, and all free heap memory is allocated, down to
 * the smallest piece. Does not work with a sanitizer, which needs memory itself: NO_MEMORY_WORKS is
 * 0.
 */
#ifndef UNIT_CORE_NO_MEMORY_H
#define UNIT_CORE_NO_MEMORY_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NO_MEMORY_WORKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
	__has_feature(memory_sanitizer)
#define NO_MEMORY_WORKS 0
#endif
#endif
#ifndef NO_MEMORY_WORKS
#define NO_MEMORY_WORKS 1
#endif

struct no_memory {
	struct no_memory *next;
};

/** Returns the bytes of address space in use. */
static inline rlim_t no_memory_mapped(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (!f || fscanf(f, "%lu", &pages) != 1)
		abort();
	fclose(f);
	return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static inline void no_memory_limit(rlim_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit))
		abort();
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	if (setrlimit(RLIMIT_AS, &limit))
		abort();
}

/** Allocates all memory: malloc returns NULL until no_memory_end. */
static inline struct no_memory *no_memory_begin(void)
{
	struct no_memory *taken = NULL, *piece;

	no_memory_limit(no_memory_mapped());
	for (size_t len = 1 << 20; len >= sizeof(*piece); len /= 2) {
		while ((piece = malloc(len))) {
			piece->next = taken;
			taken = piece;
		}
	}
	return taken;
}

static inline void no_memory_end(struct no_memory *taken)
{
	struct no_memory *next;

	no_memory_limit(RLIM_INFINITY);
	for (; taken; taken = next) {
		next = taken->next;
		free(taken);
	}
}

#endif
