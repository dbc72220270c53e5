/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Order and removal of stack members. */
#include <criterion/criterion.h>

#include "util/stack.h"

#define CNT 4u

static struct util_stack head, items[CNT];

static void fill(void)
{
	unsigned i;

	util_stack_init(&head);
	for (i = 0; i < CNT; i++)
		util_stack_push(&head, &items[i]);
}

Test(stack, the_last_member_leaves_first)
{
	unsigned i;

	fill();
	for (i = CNT; i--;) {
		cr_assert_not(util_stack_is_empty(&head));
		cr_assert(util_stack_is_on(&items[i]));
		cr_assert_eq(util_stack_pop(&head), &items[i]);
		cr_assert_not(util_stack_is_on(&items[i]));
	}
	cr_assert(util_stack_is_empty(&head));
	cr_assert_null(util_stack_pop(&head));
}

Test(stack, any_member_can_be_removed_and_pushed_again)
{
	unsigned i;

	for (i = 0; i < CNT; i++) {
		fill();
		util_stack_remove(&head, &items[i]);
		cr_assert_not(util_stack_is_on(&items[i]));
		util_stack_remove(&head, &items[i]);
		util_stack_push(&head, &items[i]);
		cr_assert_eq(util_stack_pop(&head), &items[i]);
		for (unsigned k = CNT; k--;)
			if (k != i)
				cr_assert_eq(util_stack_pop(&head), &items[k]);
		cr_assert(util_stack_is_empty(&head));
	}
}
