/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements held.h. */
#include "util/held.h"

#include "util/stats.h"

static struct {
	uint64_t held[UTIL_HELD_CNT];
	uint64_t registered;
	uint64_t pinned;
	uint64_t registrations;
	uint64_t registration_errors;
} util_held_sums;

struct copyrpc_stats_process *util_held_row(struct copyrpc_stats_page *page)
{
	const struct copyrpc_stats_table *table = &page->tables[COPYRPC_STATS_PROCESS];

	return (void *)((char *)page + table->offset + table->row_len);
}

static void util_held_copy(uint64_t *to, const uint64_t *sum)
{
	__atomic_store_n(to, __atomic_load_n(sum, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

void util_held_show(struct copyrpc_stats_page *page)
{
	struct copyrpc_stats_process *row = util_held_row(page);

	util_held_copy(&row->registered, &util_held_sums.registered);
	util_held_copy(&row->pinned, &util_held_sums.pinned);
	util_held_copy(&row->slots, &util_held_sums.held[UTIL_HELD_SLOTS]);
	util_held_copy(&row->pools, &util_held_sums.held[UTIL_HELD_POOLS]);
	util_held_copy(&row->registrations, &util_held_sums.registrations);
	util_held_copy(&row->registration_errors, &util_held_sums.registration_errors);
}

void util_held_refresh(void)
{
	const struct copyrpc_stats_page *page = util_stats_page();

	if (page)
		util_held_show((struct copyrpc_stats_page *)(uintptr_t)page);
}

static void util_held_grow(uint64_t *sum, uint64_t more)
{
	__atomic_fetch_add(sum, more, __ATOMIC_RELAXED);
}

void util_held_add(enum util_held what, int64_t bytes)
{
	util_held_grow(&util_held_sums.held[what], (uint64_t)bytes);
	util_held_refresh();
}

void util_held_registered(size_t len)
{
	util_held_grow(&util_held_sums.registrations, 1);
	util_held_grow(&util_held_sums.registered, 1);
	util_held_grow(&util_held_sums.pinned, len);
	util_held_refresh();
}

void util_held_deregistered(size_t len)
{
	util_held_grow(&util_held_sums.registered, UINT64_MAX);
	util_held_grow(&util_held_sums.pinned, (uint64_t)0 - len);
	util_held_refresh();
}

void util_held_refused(void)
{
	util_held_grow(&util_held_sums.registration_errors, 1);
	util_held_refresh();
}
