/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/mlx5/m5_ids.h"

#include <criterion/criterion.h>

static struct m5_ids ids;

Test(m5_ids, an_id_is_used_again_only_after_all_others)
{
	m5_ids_init(&ids);
	for (uint32_t id = 1; id < M5_IDS_CNT; id++) {
		cr_assert_eq(m5_ids_take(&ids), id);
		m5_ids_retire(&ids, id);
		cr_assert_eq(m5_ids_retired(&ids), id);
		m5_ids_free(&ids, id);
		cr_assert_eq(m5_ids_retired(&ids), 0);
	}
	cr_expect_eq(m5_ids_take(&ids), 1, "and 0 is none");
}

Test(m5_ids, a_retired_id_is_not_free)
{
	m5_ids_init(&ids);
	for (uint32_t id = 1; id < M5_IDS_CNT; id++)
		cr_assert_eq(m5_ids_take(&ids), id);
	cr_expect_eq(m5_ids_take(&ids), 0, "all are taken");
	m5_ids_retire(&ids, 63);
	m5_ids_retire(&ids, 65535);
	cr_expect_eq(m5_ids_take(&ids), 0);
	cr_expect_eq(m5_ids_retired(&ids), 63);
	m5_ids_free(&ids, 63);
	cr_expect_eq(m5_ids_take(&ids), 63);
	cr_expect_eq(m5_ids_retired(&ids), 65535);
	m5_ids_free(&ids, 65535);
	cr_expect_eq(m5_ids_take(&ids), 65535);
	cr_expect_eq(m5_ids_take(&ids), 0);
}
