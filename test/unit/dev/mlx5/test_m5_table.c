/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/mlx5/m5_table.h"

#include <criterion/criterion.h>

#include "support/rng.h"

TestSuite(m5_table, .timeout = 200);

static uint64_t user[8];

Test(m5_table, dense_completion_ends_all_since_the_last_one)
{
	struct m5_dense t;
	uint16_t first, cnt, i;

	m5_dense_init(&t, user, 8, 0);
	for (i = 0; i < 5; i++)
		m5_dense_put(&t, i, 100u + i);
	cr_assert(m5_dense_complete(&t, 2, &first, &cnt));
	cr_expect_eq(first, 0);
	cr_expect_eq(cnt, 3);
	for (i = 0; i < cnt; i++)
		cr_expect_eq(m5_dense_get(&t, (uint16_t)(first + i)), 100u + i);
	cr_assert(m5_dense_complete(&t, 4, &first, &cnt));
	cr_expect_eq(first, 3);
	cr_expect_eq(cnt, 2);
}

Test(m5_table, dense_refuses_counters_that_are_not_open)
{
	struct m5_dense t;
	uint16_t first, cnt;

	m5_dense_init(&t, user, 8, 10);
	cr_expect(!m5_dense_complete(&t, 10, &first, &cnt));
	cr_expect(!m5_dense_complete(&t, 9, &first, &cnt));
	m5_dense_put(&t, 10, 1);
	cr_expect(!m5_dense_complete(&t, 11, &first, &cnt));
	cr_expect(m5_dense_complete(&t, 10, &first, &cnt));
	cr_expect(!m5_dense_complete(&t, 10, &first, &cnt));
}

Test(m5_table, dense_wraps_at_its_end_and_at_16_bits)
{
	uint16_t counter = 0xfff0, first, cnt, i;
	struct m5_dense t;
	unsigned round;

	m5_dense_init(&t, user, 8, counter);
	for (round = 0; round < 100; round++) {
		uint16_t n = (uint16_t)(1 + round % 8); /* full at 8 */

		for (i = 0; i < n; i++)
			m5_dense_put(&t, (uint16_t)(counter + i), 1000u * round + i);
		cr_assert(m5_dense_complete(&t, (uint16_t)(counter + n - 1), &first, &cnt));
		cr_assert_eq(first, counter);
		cr_assert_eq(cnt, n);
		for (i = 0; i < n; i++)
			cr_assert_eq(m5_dense_get(&t, (uint16_t)(first + i)), 1000u * round + i);
		counter = (uint16_t)(counter + n);
	}
}

Test(m5_table, sparse_returns_a_word_once)
{
	struct m5_sparse t;

	m5_sparse_init(&t, user, 8);
	m5_sparse_put(&t, 0xffff, 7);
	m5_sparse_put(&t, 0, 8);
	cr_expect_eq(m5_sparse_take(&t, 0xffff), 7);
	cr_expect_eq(m5_sparse_take(&t, 0xffff), 0);
	cr_expect_eq(m5_sparse_take(&t, 0), 8);
	m5_sparse_put(&t, 8, 9); /* equal place, a lap later */
	cr_expect_eq(m5_sparse_take(&t, 8), 9);
}

Test(m5_table, slots_come_back_in_any_order)
{
	struct m5_slot slot[8];
	uint32_t gen[8], i;
	struct m5_slots t;
	uint64_t word;

	m5_slots_init(&t, slot, 8);
	for (i = 0; i < 8; i++)
		cr_assert(m5_slots_put(&t, (uint16_t)i, i + 50, &gen[i]));
	cr_expect_eq(m5_slots_count_free(&t), 0);
	cr_expect(!m5_slots_put(&t, 8, 1, &gen[0]), "in use");
	for (i = 8; i--;) {
		cr_assert(m5_slots_take(&t, (uint16_t)i, gen[i], &word));
		cr_expect_eq(word, i + 50);
		cr_expect(m5_slots_is_free(&t, (uint16_t)i));
	}
	cr_expect_eq(m5_slots_count_free(&t), 8);
}

Test(m5_table, slot_of_an_earlier_use_is_refused)
{
	struct m5_slot slot[8];
	struct m5_slots t;
	uint32_t old, now;
	uint64_t word;

	m5_slots_init(&t, slot, 8);
	slot[3].gen = UINT32_MAX - 1;
	cr_assert(m5_slots_put(&t, 3, 1, &old));
	cr_assert(m5_slots_take(&t, 3, old, &word));
	cr_expect(!m5_slots_take(&t, 3, old, &word), "given back");
	cr_assert(m5_slots_put(&t, 11, 2, &now));
	cr_expect_neq(old, now);
	cr_expect(!m5_slots_take(&t, 3, old, &word), "in use again");
	cr_expect(m5_slots_take(&t, 3, now, &word));
	cr_expect_eq(word, 2);
}

Test(m5_table, receive_queue_counts_exactly)
{
	struct rng r = { rng_env("COPYRPC_TEST_SEED", 4) };
	uint32_t open = 0, step;
	struct m5_recv t;
	uint64_t word;
	uint16_t put = 0xfffa, take = 0xfffa;

	m5_recv_init(&t, user, 8, 0xfffa);
	cr_expect(!m5_recv_take(&t, 0, &word), "empty");
	for (step = 0; step < 10000; step++) {
		if (open < 8 && rng_chance(&r, 1, 2)) {
			m5_recv_put(&t, put, put);
			put++;
			open++;
		} else if (open) {
			cr_assert(m5_recv_take(&t, take, &word));
			cr_assert_eq(word, take);
			take++;
			open--;
		}
		cr_assert_eq(m5_recv_posted(&t), open);
		cr_assert_eq(m5_recv_free(&t), 8 - open);
	}
}
