/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Branch hints for branches measured to be one-sided, inlining, UTIL_CONTAINER_OF, hints about
 * registers, CPU pause, prefetch, alignment and powers of two.
 */
#ifndef UTIL_BITS_H
#define UTIL_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTIL_LIKELY(x)   __builtin_expect(!!(x), 1)
#define UTIL_UNLIKELY(x) __builtin_expect(!!(x), 0)

/** Inlines a function into every caller, so that constant arguments specialise it. */
#define UTIL_INLINE static inline __attribute__((always_inline))

/** Returns the object of `type` that contains member `field` at `ptr`. */
#define UTIL_CONTAINER_OF(ptr, type, field) ((type *)((char *)(ptr)-offsetof(type, field)))

/**
 * Reads a variable in memory once more. A value that is kept for later in a register that calls
 * preserve costs a save and a restore, and this one instruction.
 */
#define UTIL_REREAD(variable) (*(__typeof__(variable) volatile *)&(variable))

/** Makes the compiler forget how `pointer` was computed: it keeps no second one beside it. */
#define UTIL_OPAQUE(pointer) __asm__("" : "+r"(pointer))

/**
 * Cache line size in bytes on all supported machines. Arm's 128-byte prefetch fetches two lines.
 */
#define UTIL_CACHE_LINE 64

/** Pauses between two reads of a word that another processor will write. */
static inline void util_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

/**
 * Requests the cache line at `at` for a store that follows soon, with `at` in any memory or none.
 * The stores of a processor leave it in order, so one to a line of another processor delays all
 * that follow.
 */
UTIL_INLINE void util_prefetch_store(const void *at)
{
#if defined(__x86_64__)
	/* The builtin is a prefetch for reading there, unless -mprfchw is given. */
	__asm__ volatile("prefetchw %0" ::"m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}

static inline bool util_is_pow2(uint64_t v)
{
	return v && !(v & (v - 1));
}

/** Returns `v` rounded up to a multiple of `align`, a power of two. */
static inline uint64_t util_align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

/** Returns the largest power of two not above `v` (v > 0). */
static inline uint64_t util_pow2_floor(uint64_t v)
{
	return 1ull << (63 - __builtin_clzll(v));
}

/** Returns the smallest power of two not below `v` (0 < v <= 2^63). */
static inline uint64_t util_pow2_ceil(uint64_t v)
{
	return v <= 1 ? 1 : 1ull << (64 - __builtin_clzll(v - 1));
}

#endif
