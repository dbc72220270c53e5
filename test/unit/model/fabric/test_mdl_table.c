/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the tables: numbers find their objects, stale numbers find none, and pages are returned.
 */
#include "unit/model/kernel/border_bench.h"

#include "model/fabric/mdl_table.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

TestSuite(mdl_table, .init = border_setup, .fini = border_teardown);

Test(mdl_table, a_number_finds_its_object_only_while_it_is_published)
{
	uint32_t number;
	struct mdl_pd *pd = mdl_table_claim(MDL_TABLE_PD, 3, &number);

	cr_assert_not_null(pd);
	cr_expect_null(mdl_table_find(MDL_TABLE_PD, number));
	mdl_table_publish(pd, number);
	cr_expect_eq(mdl_table_find(MDL_TABLE_PD, number), pd);
	mdl_table_hide(pd);
	cr_expect_null(mdl_table_find(MDL_TABLE_PD, number));
	mdl_table_release(pd);
}

/* Makes three laps through every table. No number repeats, and none is reserved by the device. */
Test(mdl_table, numbers_do_not_repeat_and_are_never_reserved)
{
	for (int table = 0; table < MDL_TABLE_MAX; table++) {
		uint32_t last = 0;

		for (uint32_t i = 0; i < 3 * MDL_SRQ_MAX; i++) {
			uint32_t number;
			void *object = mdl_table_claim((enum mdl_table)table, 0, &number);

			cr_assert_not_null(object);
			mdl_table_publish(object, number);
			cr_assert_neq(number, last);
			cr_assert_eq(mdl_table_find((enum mdl_table)table, number), object);
			cr_assert_gt(number, 1);
			if (table == MDL_TABLE_MR)
				cr_assert_neq(number, 0x100, "this key ends a scatter list");
			else
				cr_assert_lt(number, 1u << 24);
			if (last)
				cr_assert_null(mdl_table_find((enum mdl_table)table, last));
			last = number;
			mdl_table_hide(object);
			mdl_table_release(object);
		}
	}
}

Test(mdl_table, a_full_table_refuses_and_recovers)
{
	uint32_t number, count = 0;
	void *object, *last = NULL;

	while ((object = mdl_table_claim(MDL_TABLE_SRQ, 0, &number))) {
		last = object;
		count++;
	}
	cr_expect_eq(count, MDL_SRQ_MAX - 1, "%u", count);
	mdl_table_release(last);
	cr_expect_eq(mdl_table_claim(MDL_TABLE_SRQ, 0, &number), last);
}

Test(mdl_table, next_gives_the_objects_of_one_context)
{
	uint32_t number, at = 0;
	void *of_one[2], *of_two;

	for (int i = 0; i < 2; i++) {
		of_one[i] = mdl_table_claim(MDL_TABLE_PD, 1, &number);
		mdl_table_publish(of_one[i], number);
	}
	of_two = mdl_table_claim(MDL_TABLE_PD, 2, &number);
	mdl_table_publish(of_two, number);
	cr_expect_eq(mdl_table_next(MDL_TABLE_PD, 1, &at), of_one[0]);
	cr_expect_eq(mdl_table_next(MDL_TABLE_PD, 1, &at), of_one[1]);
	cr_expect_null(mdl_table_next(MDL_TABLE_PD, 1, &at));
	at = 0;
	cr_expect_eq(mdl_table_next(MDL_TABLE_PD, 2, &at), of_two);
}

Test(mdl_table, pages_are_zero_when_they_come_again)
{
	uint64_t first = mdl_pages_alloc(3), again;

	cr_assert_neq(first, 0);
	memset(mdl_at(first), 0xff, 3 * MDL_PAGE);
	mdl_pages_free(first, 3);
	mdl_self.seg->page_next = 0;
	again = mdl_pages_alloc(3);
	cr_expect_eq(again, first);
	for (uint32_t i = 0; i < 3 * MDL_PAGE; i++)
		cr_assert_eq(((char *)mdl_at(again))[i], 0);
	cr_expect_eq(mdl_pages_alloc(mdl_self.seg->page_cnt), 0, "there are not that many left");
	mdl_pages_free(again, 3);
}

Test(mdl_table, everything_of_a_dead_process_goes)
{
	uint32_t qpn, ctx = border_open(), slot = mdl_self.slot;
	uint32_t pd = border_pd(ctx), cq = border_cq(ctx, 15);

	qpn = border_qp(ctx, pd, cq, MDL_QPT_RC);
	cr_assert_neq(qpn, 0);
	mdl_self.slot = slot + 1; /* another process sweeps */
	mdl_table_drop(slot);
	cr_expect_null(mdl_qp_find(qpn));
	cr_expect_null(mdl_cq_find(cq));
	cr_expect_null(mdl_table_find(MDL_TABLE_PD, pd));
}

static struct mdl_qp *taken;
static int claimed;

static void *claim_again(void *unused)
{
	uint32_t number;

	taken = mdl_table_claim(MDL_TABLE_QP, 0, &number);
	__atomic_store_n(&claimed, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* A thread that watches doorbells may hold a lock of the previous object in the entry. */
Test(mdl_table, a_new_object_waits_for_holders_of_the_previous_one)
{
	uint32_t number;
	struct mdl_qp *qp = mdl_table_claim(MDL_TABLE_QP, 0, &number);
	pthread_t thread;

	cr_assert_not_null(qp);
	mdl_lock(&qp->rq_lock);
	qp->dest_qpn = 77;
	mdl_table_release(qp);
	/* fills all other entries: the next claim gets this one */
	for (uint32_t i = 0; i < MDL_QP_MAX; i++)
		if (mdl_self.seg->next[MDL_TABLE_QP] % MDL_QP_MAX !=
		    (uint32_t)(qp - mdl_self.seg->qp))
			mdl_self.seg->next[MDL_TABLE_QP]++;
	cr_assert_eq(pthread_create(&thread, NULL, claim_again, NULL), 0);
	usleep(50000);
	cr_expect_eq(__atomic_load_n(&claimed, __ATOMIC_ACQUIRE), 0);
	cr_expect_eq(qp->dest_qpn, 77);
	mdl_unlock(&qp->rq_lock);
	pthread_join(thread, NULL);
	cr_assert_eq(taken, qp);
	cr_expect_eq(qp->dest_qpn, 0);
}
