/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What becomes of a call: cm/msg/cm_connreq.c. The oracle is docs/connections.md, section 3. */
#include "cm/msg/cm_connreq.h"

#include <criterion/criterion.h>
#include <string.h>

/* Rows: from; columns: dial, asked, guest, waits, meet, over. */
static const char *const allowed[CM_CONNREQ_STATE_CNT] = {
	[CM_CONNREQ_CONNECTING] = ".a...o", [CM_CONNREQ_REQUESTED] = "....mo",
	[CM_CONNREQ_PENDING] = "...w.o",    [CM_CONNREQ_WAITING] = "....mo",
	[CM_CONNREQ_ACCEPTED] = ".....o",   [CM_CONNREQ_ENDED] = "......",
};

Test(cm_connreq, goes_only_where_the_document_says)
{
	for (int from = 0; from < CM_CONNREQ_STATE_CNT; from++)
		for (int to = 0; to < CM_CONNREQ_STATE_CNT; to++)
			cr_expect_eq(cm_connreq_may(from, to), allowed[from][to] != '.', "%s -> %s",
				     cm_connreq_state_name(from), cm_connreq_state_name(to));
}

Test(cm_connreq, states_have_names_of_their_own)
{
	for (int a = 0; a < CM_CONNREQ_STATE_CNT; a++)
		for (int b = 0; b < a; b++)
			cr_expect_str_neq(cm_connreq_state_name(a), cm_connreq_state_name(b));
}
