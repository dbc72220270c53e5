/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that objects of the whole process hold, and ranges that are registered with RDMA devices,
 * for the statistics page (struct copyrpc_stats_process). Called where memory is taken and given
 * back, which is never per message.
 *
 * The sums are variables of the process: they exist before there is a page, and do not make one.
 * After each change, and at each look (core/watch/core_watch.h), they are copied to the page.
 *
 * Any thread, without a lock. Tested by test/unit/util/test_held.c.
 */
#ifndef UTIL_HELD_H
#define UTIL_HELD_H

#include <copyrpc/stats.h>
#include <stddef.h>
#include <stdint.h>

enum util_held {
	UTIL_HELD_SLOTS, /* buffers for packets */
	UTIL_HELD_POOLS, /* chunks of util/pool.h */
	UTIL_HELD_CNT,
};

/** Adds to what is held; a negative number takes off. */
void util_held_add(enum util_held what, int64_t bytes);

/** Count a range that was registered, one whose registration ended, and one that was refused. */
void util_held_registered(size_t len);
void util_held_deregistered(size_t len);
void util_held_refused(void);

/** Copies the sums to the page of this process, if it has one. */
void util_held_refresh(void);

/** Copies the sums to a page that is being made. */
void util_held_show(struct copyrpc_stats_page *page);
/** Returns the row of the process. */
struct copyrpc_stats_process *util_held_row(struct copyrpc_stats_page *page);

#endif
