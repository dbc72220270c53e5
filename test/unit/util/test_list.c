/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Order, insertion and removal of list members. */
#include <criterion/criterion.h>

#include "util/list.h"

struct item {
	int n;
	struct util_list link;
};

static struct util_list head;
static struct item items[4];

static void fill(void)
{
	util_list_init(&head);
	for (int i = 0; i < 4; i++) {
		items[i].n = i;
		util_list_push_back(&head, &items[i].link);
	}
}

static void expect(int cnt, const int *order)
{
	struct util_list *it = head.next;

	for (int i = 0; i < cnt; i++, it = it->next) {
		cr_assert_eq(UTIL_CONTAINER_OF(it, struct item, link)->n, order[i]);
		cr_assert_eq(it->prev->next, it);
		cr_assert_eq(it->next->prev, it);
	}
	cr_assert_eq(it, &head);
}

Test(list, an_empty_list_has_no_first)
{
	util_list_init(&head);
	cr_assert(util_list_is_empty(&head));
	cr_assert_null(util_list_first(&head));
	cr_assert_null(util_list_pop(&head));
}

Test(list, push_back_keeps_the_order_and_push_front_reverses_it)
{
	fill();
	expect(4, (int[]){ 0, 1, 2, 3 });
	util_list_init(&head);
	for (int i = 0; i < 4; i++)
		util_list_push_front(&head, &items[i].link);
	expect(4, (int[]){ 3, 2, 1, 0 });
}

Test(list, insert_places_the_item_after_the_given_one)
{
	struct item late = { .n = 9 };

	fill();
	util_list_insert(&items[1].link, &late.link);
	expect(5, (int[]){ 0, 1, 9, 2, 3 });
}

Test(list, removal_works_anywhere_and_twice)
{
	fill();
	util_list_remove(&items[0].link);
	expect(3, (int[]){ 1, 2, 3 });
	util_list_remove(&items[2].link);
	util_list_remove(&items[2].link);
	expect(2, (int[]){ 1, 3 });
	cr_assert(util_list_is_empty(&items[2].link));
	util_list_remove(&items[3].link);
	util_list_remove(&items[1].link);
	cr_assert(util_list_is_empty(&head));
}

Test(list, pop_returns_members_in_order)
{
	fill();
	for (int i = 0; i < 4; i++) {
		cr_assert_eq(util_list_first(&head), &items[i].link);
		cr_assert_eq(util_list_pop(&head), &items[i].link);
	}
	cr_assert(util_list_is_empty(&head));
}

Test(list, foreach_safe_allows_removing_the_current_member)
{
	struct util_list *it, *tmp;
	int n = 0;

	fill();
	UTIL_LIST_FOREACH_SAFE (it, tmp, &head) {
		cr_assert_eq(UTIL_CONTAINER_OF(it, struct item, link)->n, n++);
		if (n % 2)
			util_list_remove(it);
	}
	cr_assert_eq(n, 4);
	expect(2, (int[]){ 1, 3 });
}

Test(list, move_keeps_the_order_and_empties_the_source)
{
	struct util_list to, *from = &head;

	fill();
	util_list_move(from, &to);
	cr_expect(util_list_is_empty(from));
	for (int i = 0; i < 4; i++)
		cr_expect_eq(UTIL_CONTAINER_OF(util_list_pop(&to), struct item, link)->n, i);
	cr_expect(util_list_is_empty(&to));
	util_list_move(from, &to);
	cr_expect(util_list_is_empty(&to), "an empty list moves nothing");
}
