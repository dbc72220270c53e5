/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sets of sessions keep the order in which members entered, when others leave. */
#include "erpc/base/erpc_set.h"

#include <criterion/criterion.h>

#define CNT 5

static struct erpc_session *places[CNT];
static struct erpc_set set = { .at = places };
static char members[CNT]; /* their addresses are those of sessions */

static struct erpc_session *member(unsigned i)
{
	return (struct erpc_session *)&members[i];
}

Test(erpc_set, members_that_stay_keep_their_order)
{
	unsigned gone, i, at;

	for (gone = 0; gone < CNT; gone++) {
		set.cnt = 0;
		cr_assert(erpc_set_is_empty(&set));
		for (i = 0; i < CNT; i++)
			erpc_set_add(&set, member(i));
		erpc_set_remove(&set, member(gone));
		cr_assert_eq(set.cnt, CNT - 1);
		for (i = 0, at = 0; i < CNT; i++) {
			if (i != gone)
				cr_expect_eq(set.at[at++], member(i));
		}
	}
}

Test(erpc_set, the_last_member_leaves_an_empty_set)
{
	erpc_set_add(&set, member(0));
	cr_expect_not(erpc_set_is_empty(&set));
	erpc_set_remove(&set, member(0));
	cr_expect(erpc_set_is_empty(&set));
}
