/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The number of objects of a pool that are in use, which the pool itself does not count. */
#ifndef TEST_SUPPORT_POOL_USED_H
#define TEST_SUPPORT_POOL_USED_H

#include <stddef.h>

#include "util/pool.h"

/** Returns the objects that ever were on the free list and are not on it now. */
static inline size_t pool_used(const struct util_pool *pool)
{
	const struct util_pool_item *item;
	size_t cnt = pool->used_most;

	for (item = pool->free; item; item = item->next)
		cnt--;
	return cnt;
}

#endif
