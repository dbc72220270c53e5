/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Table of shared pages: open addressing by page number, grown by doubling. */
#include "model/kernel/krn_share.h"
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_segment.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct page {
	uint64_t number; /* address / MDL_PAGE; 0: never used, 1: deleted */
	uint64_t offset; /* seg offset */
	uint32_t users;
};

#define PAGE_GONE 1

static struct page *table;
static uint64_t table_size, table_used; /* table_size is a power of two */
static pthread_mutex_t share_lock = PTHREAD_MUTEX_INITIALIZER;

static void *map_private(uint64_t bytes)
{
	long at = MDL_RAW6(mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	return at < 0 && at > -4096 ? NULL : (void *)at;
}

static uint64_t hash(uint64_t number)
{
	return number * 0x9e3779b97f4a7c15ull >> 32;
}

static struct page *find(uint64_t number)
{
	for (uint64_t at = hash(number), n = 0; n < table_size; n++) {
		struct page *page = &table[(at + n) & (table_size - 1)];

		if (page->number == number)
			return page;
		if (!page->number)
			return NULL;
	}
	return NULL;
}

static struct page *insert(uint64_t number)
{
	for (uint64_t at = hash(number);; at++) {
		struct page *page = &table[at & (table_size - 1)];

		if (page->number > PAGE_GONE)
			continue;
		table_used += !page->number;
		page->number = number;
		return page;
	}
}

/* Grows the table for `more` pages and drops deleted entries. */
static int grow(uint64_t more)
{
	uint64_t old_size = table_size, size = old_size ? old_size : 1024;
	struct page *old = table;

	if ((table_used + more) * 2 <= table_size)
		return 0;
	while (size < (table_used + more) * 2)
		size *= 2;
	table = map_private(size * sizeof(*table));
	if (!table) {
		table = old;
		return -ENOMEM;
	}
	table_size = size;
	table_used = 0;
	for (uint64_t i = 0; i < old_size; i++)
		if (old[i].number > PAGE_GONE)
			*insert(old[i].number) = old[i];
	if (old)
		MDL_RAW2(munmap, old, old_size * sizeof(*old));
	return 0;
}

/*
 * Returns 1 if all pages are shared and contiguous in the segment, 0 if none is shared, else
 * -EINVAL.
 */
static int look(uint64_t first, uint64_t count)
{
	struct page *head = find(first);

	for (uint64_t i = 0; i < count; i++) {
		struct page *page = find(first + i);

		if (!page != !head || (page && page->offset != head->offset + i * MDL_PAGE))
			return -EINVAL;
	}
	return head != NULL;
}

static int move_in(uint64_t first, uint64_t count)
{
	uint64_t offset = mdl_pages_alloc(count), address = first * MDL_PAGE;
	long at;

	if (!offset)
		return -ENOMEM;
	memcpy(mdl_at(offset), (void *)address, count * MDL_PAGE);
	at = MDL_RAW6(mmap, address, count * MDL_PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_FIXED, mdl_segment_fd(), offset);
	if (at != (long)address) {
		mdl_pages_free(offset, count);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < count; i++) {
		struct page *page = insert(first + i);

		page->offset = offset + i * MDL_PAGE;
		page->users = 0;
	}
	return 0;
}

static int share_locked(uint64_t first, uint64_t count)
{
	int state, err = grow(count);

	if (err)
		return err;
	state = look(first, count);
	if (state < 0)
		return state;
	if (!state && (err = move_in(first, count)))
		return err;
	for (uint64_t i = 0; i < count; i++)
		find(first + i)->users++;
	return 0;
}

int krn_share(uint64_t address, uint64_t length, uint64_t *offset)
{
	uint64_t first = address / MDL_PAGE, last = (address + length - 1) / MDL_PAGE;
	int err;

	if (!length || !address || address + length < address)
		return -EINVAL;
	pthread_mutex_lock(&share_lock);
	err = share_locked(first, last - first + 1);
	if (!err)
		*offset = find(first)->offset + address % MDL_PAGE;
	pthread_mutex_unlock(&share_lock);
	return err;
}

/* Replaces shared pages by private memory in one step, so that no thread finds a hole. */
static void move_out(uint64_t first, uint64_t count)
{
	uint64_t bytes = count * MDL_PAGE, offset = find(first)->offset;
	void *fresh = map_private(bytes);

	if (!fresh)
		return;
	memcpy(fresh, mdl_at(offset), bytes);
	MDL_RAW6(mremap, fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, first * MDL_PAGE, 0);
	mdl_pages_free(offset, count);
	for (uint64_t i = 0; i < count; i++)
		find(first + i)->number = PAGE_GONE;
}

/* Drops a user of pages and makes runs of unused ones private. */
static void unshare_locked(uint64_t first, uint64_t count)
{
	uint64_t run = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct page *page = find(first + i);
		bool unused = page && !--page->users;

		run = unused ? run + 1 : 0;
		if (run && (i + 1 == count || find(first + i + 1)->users > 1)) {
			move_out(first + i + 1 - run, run);
			run = 0;
		}
	}
}

void krn_unshare(uint64_t address, uint64_t length)
{
	uint64_t first = address / MDL_PAGE, last = (address + length - 1) / MDL_PAGE;

	if (!length)
		return;
	pthread_mutex_lock(&share_lock);
	if (find(first) && find(last))
		unshare_locked(first, last - first + 1);
	pthread_mutex_unlock(&share_lock);
}

uint64_t krn_share_find(uint64_t address)
{
	struct page *page;

	pthread_mutex_lock(&share_lock);
	page = find(address / MDL_PAGE);
	pthread_mutex_unlock(&share_lock);
	return page ? page->offset + address % MDL_PAGE : 0;
}
