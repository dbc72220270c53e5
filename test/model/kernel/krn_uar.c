/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registry of mapped UAR pages, filled from /proc/self/maps. */
#include "model/kernel/krn_uar.h"
#include "model/kernel/krn_ctx.h"
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MAPPING_MAX 1024

/* Written under the lock, read without by the handler: valid is set last and cleared first. */
static struct mapping {
	uintptr_t address;
	uint32_t ctx, page;
	uint32_t valid;
} mappings[MAPPING_MAX];
static uint32_t mapping_cnt;
static pthread_mutex_t mapping_lock = PTHREAD_MUTEX_INITIALIZER;

static struct mapping *find_at(uintptr_t address)
{
	uint32_t count = __atomic_load_n(&mapping_cnt, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count; i++)
		if (__atomic_load_n(&mappings[i].valid, __ATOMIC_ACQUIRE) &&
		    mappings[i].address == (address & ~(uintptr_t)(MDL_PAGE - 1)))
			return &mappings[i];
	return NULL;
}

bool krn_uar_lookup(uintptr_t address, uint32_t *ctx, uint32_t *page, uint32_t *off)
{
	const struct mapping *mapping = find_at(address);

	if (!mapping)
		return false;
	*ctx = mapping->ctx;
	*page = mapping->page;
	*off = (uint32_t)(address & (MDL_PAGE - 1));
	return true;
}

static struct mapping *take_entry(void)
{
	for (uint32_t i = 0; i < mapping_cnt; i++)
		if (!mappings[i].valid)
			return &mappings[i];
	if (mapping_cnt == MAPPING_MAX)
		return NULL;
	return &mappings[__atomic_fetch_add(&mapping_cnt, 1, __ATOMIC_RELEASE)];
}

static void add_page(uintptr_t address, uint32_t ctx, uint32_t page)
{
	struct mapping *mapping = find_at(address);

	if (!mapping)
		mapping = take_entry();
	if (!mapping)
		mdl_fatal("more than %d UAR pages are mapped", MAPPING_MAX);
	mapping->address = address;
	mapping->ctx = ctx;
	mapping->page = page;
	__atomic_store_n(&mapping->valid, 1, __ATOMIC_RELEASE);
	if (mdl_self.config.mode != MDL_MODE_POLL)
		MDL_RAW3(mprotect, address, MDL_PAGE, PROT_READ);
}

/* Registers a line of maps that is a mapping of this inode, other than the model's own. */
static void take_line(const char *line, uint64_t inode, uint32_t index)
{
	struct krn_ctx *ctx = krn_ctx_get(index);
	unsigned long from, to, offset, found;

	if (sscanf(line, "%lx-%lx %*s %lx %*s %lu", &from, &to, &offset, &found) != 4 ||
	    found != inode || from == (uintptr_t)ctx->pages)
		return;
	for (; from < to; from += MDL_PAGE, offset += MDL_PAGE) {
		uint32_t page = offset / MDL_PAGE & 0xff;

		if (page >= MDL_UAR_PAGES)
			continue;
		add_page(from, index, page);
		__atomic_store_n(&ctx->place[page], offset / MDL_PAGE, __ATOMIC_RELAXED);
		ctx->mapped |= 1u << page;
	}
}

static void scan_maps(uint64_t inode, uint32_t index)
{
	char text[8192];
	size_t used = 0;
	long fd = MDL_RAW4(openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0), got;

	if (fd < 0)
		return;
	while ((got = MDL_RAW3(read, fd, text + used, sizeof(text) - 1 - used)) > 0) {
		char *line = text, *end;

		used += (size_t)got;
		text[used] = 0;
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = 0;
			if (strstr(line, "/memfd:uverbs0"))
				take_line(line, inode, index);
		}
		used = (size_t)(text + used - line);
		memmove(text, line, used);
	}
	MDL_RAW1(close, fd);
}

void krn_uar_find(uint32_t index)
{
	struct krn_ctx *ctx = krn_ctx_get(index);
	struct stat st = { 0 };

	if (!ctx || ctx->mapped == (1u << MDL_UAR_PAGES) - 1 || MDL_RAW2(fstat, ctx->fd, &st) < 0)
		return;
	pthread_mutex_lock(&mapping_lock);
	scan_maps(st.st_ino, index);
	pthread_mutex_unlock(&mapping_lock);
}

void krn_uar_unmapped(uint32_t ctx)
{
	pthread_mutex_lock(&mapping_lock);
	for (uint32_t i = 0; i < mapping_cnt; i++)
		if (mappings[i].ctx == ctx)
			__atomic_store_n(&mappings[i].valid, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&mapping_lock);
}

void krn_uar_forget(void)
{
	memset(mappings, 0, sizeof(mappings));
	mapping_cnt = 0;
	pthread_mutex_init(&mapping_lock, NULL);
}
