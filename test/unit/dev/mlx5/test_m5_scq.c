/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "fake_dev.h"

TestSuite(m5_scq, .timeout = 200);

Test(m5_scq, only_queues_with_attached_links_are_polled)
{
	struct fake_dev *f = fake_dev_make();
	struct m5_scq scq[6] = { 0 };
	uint32_t i;

	for (i = 0; i < 6; i++) {
		cr_assert_eq(m5_scq_activate(&f->dev, &scq[i]), 0);
		cr_assert_eq(m5_scq_activate(&f->dev, &scq[i]), 0);
	}
	cr_expect_eq(f->dev.active_cnt, 6);
	f->dev.cursor = 5;
	m5_scq_deactivate(&f->dev, &scq[2]);
	cr_expect_eq(f->dev.active_cnt, 6, "one link is left");
	m5_scq_deactivate(&f->dev, &scq[2]);
	cr_expect_eq(f->dev.active_cnt, 5);
	cr_expect_lt(f->dev.cursor, 5);
	for (i = 0; i < 5; i++)
		cr_expect_neq(f->dev.active[i], &scq[2]);
	fake_dev_free(f);
}

Test(m5_scq, queue_with_room_is_shared)
{
	struct fake_dev *f = fake_dev_make();
	struct m5_scq *scq = calloc(1, sizeof(*scq)), *got; /* m5_scq_put frees the last one */

	cr_assert_not_null(scq);
	scq->room = 100;
	util_list_push_back(&f->dev.scqs, &scq->in_dev);
	cr_assert_eq(m5_scq_get(&f->dev, 60, &got), 0);
	cr_expect_eq(got, scq);
	cr_expect_eq(scq->room, 40);
	cr_expect_eq(scq->link_cnt, 1);
	cr_assert_eq(m5_scq_get(&f->dev, 40, &got), 0);
	cr_expect_eq(scq->room, 0);
	m5_scq_put(scq, 40);
	cr_expect_eq(scq->room, 40);
	util_list_remove(&scq->in_dev);
	free(scq);
	fake_dev_free(f);
}

Test(m5_scq, register_is_shared_with_its_state)
{
	struct fake_dev *f = fake_dev_make();
	uint8_t page[1024];
	struct m5_uar *a, *b, *c;

	cr_assert_eq(m5_reg_get(&f->dev, page, 256, &a), 0);
	cr_assert_eq(m5_reg_get(&f->dev, page, 256, &b), 0);
	cr_assert_eq(m5_reg_get(&f->dev, page + 512, 256, &c), 0);
	cr_expect_eq(a, b);
	cr_expect_neq(a, c);
	m5_reg_put(&f->dev, a);
	cr_expect_eq(b->user_cnt, 1);
	m5_reg_put(&f->dev, b);
	m5_reg_put(&f->dev, c);
	cr_expect(util_list_is_empty(&f->dev.regs));
	fake_dev_free(f);
}
