/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Entries arrive whole, once and in order, at every start of the counters and in every lap. */
#include "local/crl_ring.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define ENTRIES 4u
#define MAX     100u

static struct crl_ring new_ring(uint32_t start)
{
	size_t size = crl_ring_size(ENTRIES, MAX);
	struct crl_ring ring;

	crl_ring_init(&ring, aligned_alloc(UTIL_CACHE_LINE, size), ENTRIES, MAX);
	memset(ring.base, 0, size);
	crl_ring_format(&ring, start);
	return ring;
}

static void check_laps(uint32_t start)
{
	struct crl_ring ring = new_ring(start);
	unsigned char bytes[MAX];
	struct crl_item item = { 0 };

	for (uint32_t pos = start; pos != start + 3 * ENTRIES + 1; pos++) {
		uint32_t len = (pos * 37) % (MAX + 1);

		memset(bytes, (int)pos, sizeof(bytes));
		cr_assert_not(crl_ring_ready(&ring, pos), "start %u, pos %u", start, pos);
		cr_assert_not(crl_ring_get(&ring, pos, &item));
		crl_ring_put(&ring, pos, ~(uint64_t)pos, bytes, len);
		cr_assert(crl_ring_ready(&ring, pos));
		cr_assert_not(crl_ring_ready(&ring, pos + 1));
		cr_assert(crl_ring_get(&ring, pos, &item));
		cr_assert_eq(item.len, len);
		cr_assert_eq(item.tag, ~(uint64_t)pos);
		cr_assert_eq(memcmp(item.data, bytes, len), 0);
	}
	free(ring.base);
}

Test(crl_ring, three_laps_from_every_start)
{
	check_laps(0);
	check_laps(1);
	check_laps(UINT32_MAX - 1);
	check_laps(UINT32_MAX - ENTRIES);
	check_laps(1u << 31);
}

Test(crl_ring, zeroed_memory_is_an_empty_ring_at_0)
{
	struct crl_ring ring = new_ring(0);

	for (uint32_t pos = 0; pos < ENTRIES; pos++)
		cr_assert_not(crl_ring_ready(&ring, pos));
	free(ring.base);
}

Test(crl_ring, entries_that_were_written_wait_in_order)
{
	struct crl_ring ring = new_ring(7);
	struct crl_item item = { 0 };

	for (uint32_t i = 0; i < ENTRIES; i++)
		crl_ring_put(&ring, 7 + i, i, &i, sizeof(i));
	for (uint32_t i = 0; i < ENTRIES; i++) {
		cr_assert(crl_ring_get(&ring, 7 + i, &item));
		cr_assert_eq(item.tag, i);
	}
	cr_assert_not(crl_ring_get(&ring, 7 + ENTRIES, &item), "one lap is not the next");
	free(ring.base);
}

Test(crl_ring, short_strings_of_every_length_arrive_whole)
{
	struct crl_ring ring = new_ring(0);
	unsigned char bytes[UTIL_COPY_SHORT];
	struct crl_item item = { 0 };

	for (uint32_t len = 0; len < crl_ring_long(&ring); len++) {
		for (uint32_t i = 0; i < len; i++)
			bytes[i] = (unsigned char)(len + i);
		memset(crl_ring_at(&ring, len)->data, 0xee, MAX);
		crl_ring_put_short(&ring, len, len, bytes, len);
		cr_assert(crl_ring_get(&ring, len, &item));
		cr_assert_eq(item.len, len);
		cr_assert_eq(item.tag, len);
		cr_assert_eq(memcmp(item.data, bytes, len), 0);
		cr_assert_eq(((const unsigned char *)item.data)[len], 0xee);
	}
	ring.max = 3;
	cr_assert_eq(crl_ring_long(&ring), 4);
	free(ring.base);
}

Test(crl_ring, short_strings_share_the_line_of_their_word)
{
	cr_assert_eq(crl_ring_stride(48), 64);
	cr_assert_eq(crl_ring_stride(49), 128);
}

Test(crl_ring, a_reader_fetches_what_is_there_and_nothing_behind)
{
	struct crl_ring ring = new_ring(UINT32_MAX - 1);
	const uint32_t first = UINT32_MAX - 1;
	unsigned char bytes[MAX] = { 0 };

	for (int there = 0; there <= (int)ENTRIES; there++) {
		for (int max = 0; max <= (int)ENTRIES + 1; max++)
			cr_assert_eq(crl_ring_fetch(&ring, first, max), there < max ? there : max,
				     "%d of %d", max, there);
		if (there < (int)ENTRIES)
			crl_ring_put(&ring, first + (uint32_t)there, 0, bytes, MAX);
	}
	/* Prefetches have an end where a length has none. */
	atomic_store(&crl_ring_at(&ring, first)->word, (uint64_t)(first + 1) << 32 | UINT32_MAX);
	cr_assert_eq(crl_ring_fetch(&ring, first, ENTRIES), ENTRIES);
	free(ring.base);
}
