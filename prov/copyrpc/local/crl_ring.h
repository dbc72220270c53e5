/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ring of byte strings with one writer and one reader, in memory that both map. Used by the caller
 * (crl_caller.h) and the callee (crl_callee.h) of every channel.
 *
 * An entry is a head of 16 bytes and the bytes themselves, so that a short string and the word that
 * announces it share a cache line. The word holds the low 32 bits of (position + 1) and the length:
 * the reader loads it once, and knows from it alone whether the entry is new. No position is
 * shared. The writer must know by other means that the reader has left the entry it overwrites: a
 * caller has at most as many calls in flight as its ring has entries.
 *
 * The reader trusts nothing: a length beyond the entry is an error of the writer. Positions are 32
 * bits and wrap. Tested by test/unit/local/test_crl_ring.c.
 */
#ifndef LOCAL_CRL_RING_H
#define LOCAL_CRL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/bits.h"
#include "util/copy.h"

#define CRL_PREFETCH_MAX 320u /* bytes of an entry that are prefetched: 256 and the head */

/* Bytes of a string that share the line of their word. */
#define CRL_RING_SHORT (UTIL_CACHE_LINE - sizeof(struct crl_entry))

/** Entry, at a multiple of a cache line. */
struct crl_entry {
	_Atomic uint64_t word; /* low 32 bits of position + 1, then the length */
	_Atomic uint64_t tag;  /* names the call; the callee returns it */
	unsigned char data[];
};

/** One side's view of a ring; private memory. */
struct crl_ring {
	unsigned char *base;
	uint32_t mask;   /* entries - 1 */
	uint32_t stride; /* bytes of an entry */
	uint32_t max;    /* bytes of a string */
};

/** Result of crl_ring_get. */
struct crl_item {
	const void *data;
	uint64_t tag;
	uint32_t len;
};

/** Returns the bytes of an entry for strings of at most `max` bytes. */
static inline size_t crl_ring_stride(uint32_t max)
{
	return util_align_up(sizeof(struct crl_entry) + max, UTIL_CACHE_LINE);
}

/** Returns the bytes of a ring. */
static inline size_t crl_ring_size(uint32_t entries, uint32_t max)
{
	return crl_ring_stride(max) * entries;
}

/** Describes the ring at `base`. entries: a power of two. */
static inline void crl_ring_init(struct crl_ring *ring, void *base, uint32_t entries, uint32_t max)
{
	*ring = (struct crl_ring){
		.base = base,
		.mask = entries - 1,
		.stride = (uint32_t)crl_ring_stride(max),
		.max = max,
	};
}

static inline struct crl_entry *crl_ring_at(const struct crl_ring *ring, uint32_t pos)
{
	return (struct crl_entry *)(ring->base + (size_t)(pos & ring->mask) * ring->stride);
}

/** Empties the ring. Both sides continue at `start`. Called before the memory is shared. */
static inline void crl_ring_format(const struct crl_ring *ring, uint32_t start)
{
	for (uint32_t i = 0; i <= ring->mask; i++)
		atomic_store_explicit(&crl_ring_at(ring, start + i)->word, (uint64_t)start << 32,
				      memory_order_relaxed);
}

/* Prefetches the lines of an entry behind its first one. */
static inline void crl_ring_prefetch_rest(const struct crl_ring *ring, uint32_t pos)
{
	uint32_t len = ring->stride < CRL_PREFETCH_MAX ? ring->stride : CRL_PREFETCH_MAX;

	for (uint32_t i = UTIL_CACHE_LINE; i < len; i += UTIL_CACHE_LINE)
		util_prefetch_store((const char *)crl_ring_at(ring, pos) + i);
}

/**
 * Prefetches the entries from `pos` + `from` to before `pos` + `to` for their writer. `pos` is the
 * next to be written, and left out: the reader polls it, and would take it back.
 */
UTIL_INLINE void crl_ring_prefetch(const struct crl_ring *ring, uint32_t pos, uint32_t from,
				   uint32_t to)
{
	bool is_long = ring->stride > UTIL_CACHE_LINE;

	for (uint32_t i = from ? from : 1; i < to; i++) {
		util_prefetch_store(crl_ring_at(ring, pos + i));
		if (UTIL_UNLIKELY(is_long))
			crl_ring_prefetch_rest(ring, pos + i);
	}
}

static inline void crl_ring_publish(struct crl_entry *entry, uint32_t pos, uint64_t tag,
				    uint32_t len)
{
	atomic_store_explicit(&entry->tag, tag, memory_order_relaxed);
	atomic_store_explicit(&entry->word, (uint64_t)(pos + 1) << 32 | len, memory_order_release);
}

/** Writes an entry, len <= max. Pairs with crl_ring_get. */
static inline void crl_ring_put(const struct crl_ring *ring, uint32_t pos, uint64_t tag,
				const void *data, uint32_t len)
{
	struct crl_entry *entry = crl_ring_at(ring, pos);

	util_copy(entry->data, data, len);
	crl_ring_publish(entry, pos, tag, len);
}

/**
 * Writes an entry without a function call, so that the caller needs no stack frame. len: at most
 * UTIL_COPY_SHORT and max.
 */
UTIL_INLINE void crl_ring_put_short(const struct crl_ring *ring, uint32_t pos, uint64_t tag,
				    const void *data, uint32_t len)
{
	struct crl_entry *entry = crl_ring_at(ring, pos);

	if (UTIL_LIKELY(len - 16 <= 16))
		UTIL_COPY_PAIR(unsigned __int128, entry->data, data, len);
	else
		util_copy_short(entry->data, data, len);
	crl_ring_publish(entry, pos, tag, len);
}

/** Returns the length from which on crl_ring_put_short may not be used. */
static inline uint32_t crl_ring_long(const struct crl_ring *ring)
{
	return (ring->max < UTIL_COPY_SHORT ? ring->max : UTIL_COPY_SHORT) + 1;
}

/** Returns true if the entry at `pos` is there. */
static inline bool crl_ring_ready(const struct crl_ring *ring, uint32_t pos)
{
	uint64_t word = atomic_load_explicit(&crl_ring_at(ring, pos)->word, memory_order_relaxed);

	return (uint32_t)(word >> 32) == pos + 1;
}

/** Reads the entry at `pos`. Returns false if it is not there yet. The length is not checked. */
static inline bool crl_ring_get(const struct crl_ring *ring, uint32_t pos, struct crl_item *item)
{
	struct crl_entry *entry = crl_ring_at(ring, pos);
	uint64_t word = atomic_load_explicit(&entry->word, memory_order_acquire);

	if ((uint32_t)(word >> 32) != pos + 1)
		return false;
	item->len = (uint32_t)word;
	item->tag = atomic_load_explicit(&entry->tag, memory_order_relaxed);
	item->data = entry->data;
	return true;
}

/* Prefetches the lines that a string of `len` bytes takes behind the first one. */
static inline void crl_ring_fetch_rest(const struct crl_entry *entry, uint32_t len)
{
	uint32_t end = len < CRL_PREFETCH_MAX ? (uint32_t)sizeof(*entry) + len : CRL_PREFETCH_MAX;

	for (uint32_t i = UTIL_CACHE_LINE; i < end; i += UTIL_CACHE_LINE)
		__builtin_prefetch((const char *)entry + i);
}

/**
 * Counts the entries that are there from `pos` on, at most `max`, and prefetches their strings for
 * the reader. So the lines of all of them are on their way before the first is copied; those of
 * later entries stay with their writer.
 */
static inline int crl_ring_fetch(const struct crl_ring *ring, uint32_t pos, int max)
{
	int cnt = 0;

	for (; cnt < max; cnt++, pos++) {
		struct crl_entry *entry = crl_ring_at(ring, pos);
		uint64_t word = atomic_load_explicit(&entry->word, memory_order_relaxed);

		if ((uint32_t)(word >> 32) != pos + 1)
			break;
		crl_ring_fetch_rest(entry, (uint32_t)word);
	}
	return cnt;
}

#endif
