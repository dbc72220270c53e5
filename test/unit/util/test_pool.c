/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pool objects: alignment, no overlap, reuse order, and the limit. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/pool_used.h"
#include "support/rng.h"
#include "util/pool.h"

#define OBJ_CNT 1000

static int compare(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;

	return x < y ? -1 : x > y;
}

Test(pool, nothing_is_allocated_before_the_first_object)
{
	struct util_pool pool;

	util_pool_init(&pool, 100, 16, 0);
	cr_assert_null(pool.chunks);
	cr_assert_eq(pool.item_cnt, 0);
	util_pool_fini(&pool);
}

Test(pool, objects_are_aligned_and_do_not_overlap)
{
	static const size_t lens[] = { 1, 8, 63, 64, 65, 200 };

	for (size_t l = 0; l < sizeof(lens) / sizeof(lens[0]); l++) {
		char *objs[OBJ_CNT];
		struct util_pool pool;
		bool ok = true;

		util_pool_init(&pool, lens[l], 7, 0);
		for (int i = 0; i < OBJ_CNT; i++) {
			objs[i] = util_pool_alloc(&pool);
			ok = ok && objs[i] && (uintptr_t)objs[i] % 64 == 0;
			memset(objs[i], i, lens[l]);
		}
		cr_assert_eq(pool_used(&pool), OBJ_CNT);
		for (int i = 0; i < OBJ_CNT; i++)
			ok = ok && objs[i][0] == (char)i && objs[i][lens[l] - 1] == (char)i;
		qsort(objs, OBJ_CNT, sizeof(objs[0]), compare);
		for (int i = 1; i < OBJ_CNT; i++)
			ok = ok && objs[i] >= objs[i - 1] + lens[l];
		cr_assert(ok);
		util_pool_fini(&pool);
	}
}

Test(pool, the_object_released_last_is_allocated_first)
{
	struct util_pool pool;
	void *a, *b;

	util_pool_init(&pool, 64, 4, 0);
	a = util_pool_alloc(&pool);
	b = util_pool_alloc(&pool);
	util_pool_release(&pool, a);
	util_pool_release(&pool, b);
	cr_assert_eq(pool_used(&pool), 0);
	cr_assert_eq(util_pool_alloc(&pool), b);
	cr_assert_eq(util_pool_alloc(&pool), a);
	util_pool_fini(&pool);
}

Test(pool, objects_of_a_chunk_are_allocated_in_address_order)
{
	struct util_pool pool;
	char *last;

	util_pool_init(&pool, 128, 32, 0);
	last = util_pool_alloc(&pool);
	for (int i = 1; i < 32; i++) {
		char *obj = util_pool_alloc(&pool);

		cr_assert_eq(obj, last + 128);
		last = obj;
	}
	util_pool_fini(&pool);
}

/* Covers limits below, at and above a chunk, and limits in the middle of the last chunk. */
Test(pool, no_more_objects_are_allocated_than_the_limit)
{
	static const size_t limits[] = { 1, 7, 8, 9, 16, 17, 100 };

	for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
		struct util_pool pool;
		void *obj = NULL;

		util_pool_init(&pool, 64, 8, limits[l]);
		for (size_t i = 0; i < limits[l]; i++)
			cr_assert_not_null(obj = util_pool_alloc(&pool));
		cr_assert_null(util_pool_alloc(&pool));
		cr_assert_eq(util_pool_grow(&pool), -FI_ENOMEM);
		cr_assert_eq(pool_used(&pool), limits[l]);
		util_pool_release(&pool, obj);
		cr_assert_eq(util_pool_alloc(&pool), obj);
		util_pool_fini(&pool);
	}
}

Test(pool, large_chunks_begin_at_a_huge_page)
{
	size_t cnt = (UTIL_POOL_HUGE - UTIL_POOL_HEAD) / 4096;
	struct util_pool pool;
	char *first, *last = NULL;

	util_pool_init(&pool, 4096, cnt, 0);
	first = util_pool_alloc(&pool);
	cr_assert_not_null(first);
	cr_expect_eq((uintptr_t)first % UTIL_POOL_HUGE, UTIL_POOL_HEAD);
	for (size_t i = 1; i < cnt; i++) {
		last = util_pool_alloc(&pool);
		cr_assert_not_null(last);
		memset(last, 1, 4096);
	}
	cr_expect_eq(last - first, (ptrdiff_t)((cnt - 1) * 4096), "all on one page");
	cr_expect_eq(pool.item_cnt, cnt);
	util_pool_fini(&pool);
	util_pool_init(&pool, SIZE_MAX - UTIL_POOL_HUGE, 1, 0);
	cr_expect_null(util_pool_alloc(&pool), "rounding up would overflow");
	util_pool_fini(&pool);
}

Test(pool, a_size_that_overflows_is_out_of_memory)
{
	struct util_pool pool;

	util_pool_init(&pool, SIZE_MAX / 4, 16, 0);
	cr_assert_null(util_pool_alloc(&pool));
	util_pool_init(&pool, 1ull << 60, 16, 0);
	cr_assert_null(util_pool_alloc(&pool));
	util_pool_fini(&pool);
}

Test(pool, objects_keep_their_content_while_others_are_released)
{
	static uint64_t *objs[OBJ_CNT];
	struct util_pool pool;
	struct rng rng = { 1 };
	bool ok = true;

	util_pool_init(&pool, 72, 16, 0);
	for (uint64_t step = 1; step < 100000; step++) {
		uint64_t **obj = &objs[rng_below(&rng, OBJ_CNT)];

		if (*obj) {
			ok = ok && (*obj)[0] == (uintptr_t)obj && (*obj)[8] == (uintptr_t)obj;
			util_pool_release(&pool, *obj);
			*obj = NULL;
		} else {
			*obj = util_pool_alloc(&pool);
			(*obj)[0] = (uintptr_t)obj;
			(*obj)[8] = (uintptr_t)obj;
		}
	}
	cr_assert(ok);
	cr_assert_leq(pool.item_cnt, OBJ_CNT + 16);
	util_pool_fini(&pool);
}

Test(pool, the_highest_number_in_use_is_known)
{
	struct rng rng = { 5 };
	struct util_pool pool;
	void *objs[64];
	size_t used = 0, most = 0;
	bool ok = true;

	util_pool_init(&pool, 64, 4, 0);
	for (int i = 0; i < 10000; i++) {
		if (used < 64 && rng_below(&rng, 2)) {
			objs[used++] = util_pool_alloc(&pool);
			most = used > most ? used : most;
		} else if (used) {
			util_pool_release(&pool, objs[--used]);
		}
		ok = ok && pool_used(&pool) == used && pool.used_most == most;
	}
	cr_expect(ok && most > 4, "%zu", most);
	util_pool_fini(&pool);
	cr_expect_eq(pool.used_most, 0);
}
