/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arena of pages behind the tables of the segment: an owner per page, next fit, under the table
 * lock.
 *
 * Memory is reserved on allocation, so that a full /dev/shm fails the command that allocates
 * instead of raising SIGBUS later. It is returned to the system when it is freed.
 */
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_segment.h"
#include "model/fabric/mdl_table.h"

#include <sys/mman.h>

static uint16_t *page_owners(void)
{
	return mdl_at(mdl_self.seg->page_map);
}

/* Finds the first page of `count` free ones in [from, to). Returns `to` if there is none. */
static uint64_t find_run(uint64_t from, uint64_t to, uint64_t count)
{
	const uint16_t *owner = page_owners();
	uint64_t run = 0;

	for (uint64_t page = from; page < to; page++) {
		run = owner[page] ? 0 : run + 1;
		if (run == count)
			return page + 1 - count;
	}
	return to;
}

static void mark(uint64_t first, uint64_t count, uint16_t owner)
{
	for (uint64_t page = first; page < first + count; page++)
		page_owners()[page] = owner;
}

static uint64_t take_run(struct mdl_segment *seg, uint64_t count)
{
	uint64_t first = find_run(seg->page_next, seg->page_cnt, count);

	if (first == seg->page_cnt)
		first = find_run(0, seg->page_cnt, count);
	if (first == seg->page_cnt)
		return first;
	mark(first, count, (uint16_t)(mdl_self.slot + 1));
	seg->page_next = first + count;
	return first;
}

uint64_t mdl_pages_alloc(uint64_t pages)
{
	struct mdl_segment *seg = mdl_self.seg;
	uint64_t first, offset;

	if (!pages || pages > seg->page_cnt)
		return 0;
	mdl_lock(&seg->table_lock);
	first = take_run(seg, pages);
	mdl_unlock(&seg->table_lock);
	if (first == seg->page_cnt)
		return 0;

	offset = seg->page_first + first * MDL_PAGE;
	if (MDL_RAW4(fallocate, mdl_segment_fd(), 0, offset, pages * MDL_PAGE) < 0) {
		mdl_pages_free(offset, pages);
		return 0;
	}
	return offset;
}

void mdl_pages_free(uint64_t offset, uint64_t pages)
{
	struct mdl_segment *seg = mdl_self.seg;

	if (!pages)
		return;
	MDL_RAW3(madvise, mdl_at(offset), pages * MDL_PAGE, MADV_REMOVE);
	mdl_lock(&seg->table_lock);
	mark((offset - seg->page_first) / MDL_PAGE, pages, 0);
	mdl_unlock(&seg->table_lock);
}

void mdl_pages_drop(uint32_t slot)
{
	struct mdl_segment *seg = mdl_self.seg;

	for (uint64_t page = 0; page < seg->page_cnt; page++)
		if (page_owners()[page] == slot + 1)
			mdl_pages_free(seg->page_first + page * MDL_PAGE, 1);
}
