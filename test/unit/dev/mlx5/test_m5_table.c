/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/mlx5/m5_table.h"

#include <criterion/criterion.h>

#include "support/rng.h"

TestSuite(m5_table, .timeout = 200);

static uint64_t user[8];

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
