/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Links between two devices for tests of shm_watch.c: link i of device `da` is a[i], and b[i] at
 * device `db`, which is watched. Everything is static: each including file has its own copy.
 */
#ifndef UNIT_SHM_WATCHED_H
#define UNIT_SHM_WATCHED_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/shm/shm_watch.h"
#include "shm_pair.h"

#define MOST 200
#define HALF 16 /* units of a ring */

static struct shm_dev *da, *db;
static struct transport a[MOST], b[MOST];

static inline void setup_of(int cnt)
{
	int i;

	da = pair_dev();
	db = pair_dev();
	for (i = 0; i < cnt; i++)
		pair_open(da, &a[i], 1024, db, &b[i], 1024);
}

static inline bool is_active(int i)
{
	return pair_shm_link(&b[i])->act_idx != SHM_IDX_NONE;
}

static inline void poll_idle(uint32_t polls)
{
	struct dev_event ev;

	cr_assert(!pair_poll(db, &ev, polls));
}

static inline void park(int i)
{
	cr_assert(shm_watch_park(db, pair_shm_link(&b[i])));
}

/* Simulates a writer's load of notify before the change: the writer will not post. */
static inline void lose_notification(int i)
{
	pair_shm_link(&a[i])->posted = pair_shm_link(&b[i])->epoch;
}

static inline uint32_t unsettled_cnt(void)
{
	struct util_list *it;
	uint32_t n = 0;

	for (it = db->unsettled.next; it != &db->unsettled; it = it->next)
		n++;
	return n;
}

static inline void erase_posts(void)
{
	cr_assert(shm_inbox_is_set(db->inbox));
	memset(db->inbox, 0, offsetof(struct shm_inbox, sleeping));
}

/* Opens links that are all parked and settled. */
static inline void setup_settled(int cnt)
{
	int i;

	setup_of(cnt);
	for (i = 0; i < cnt; i++)
		park(i);
	cr_assert_eq(shm_watch_arm_all(db), 0);
	cr_assert_eq(unsettled_cnt(), 0);
}

#endif
