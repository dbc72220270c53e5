/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What becomes of a call: cm/dial/cm_call.c. The oracle is docs/dialing.md, section 3. */
#include "cm/dial/cm_call.h"

#include <criterion/criterion.h>
#include <string.h>

/* Rows: from; columns: dial, asked, guest, waits, meet, over. */
static const char *const allowed[CM_CALL_STATE_CNT] = {
	[CM_CALL_DIAL] = ".a...o",  [CM_CALL_ASKED] = "....mo", [CM_CALL_GUEST] = "...w.o",
	[CM_CALL_WAITS] = "....mo", [CM_CALL_MEET] = ".....o",  [CM_CALL_OVER] = "......",
};

Test(cm_call, goes_only_where_the_document_says)
{
	for (int from = 0; from < CM_CALL_STATE_CNT; from++)
		for (int to = 0; to < CM_CALL_STATE_CNT; to++)
			cr_expect_eq(cm_call_may(from, to), allowed[from][to] != '.', "%s -> %s",
				     cm_call_state_name(from), cm_call_state_name(to));
}

Test(cm_call, states_have_names_of_their_own)
{
	for (int a = 0; a < CM_CALL_STATE_CNT; a++)
		for (int b = 0; b < a; b++)
			cr_expect_str_neq(cm_call_state_name(a), cm_call_state_name(b));
}
