/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* States of a connection request, checked against docs/connections.md, section 3. */
#include "cm/msg/cm_connreq.h"

#include <criterion/criterion.h>
#include <string.h>

/* Rows: from; columns: connecting, requested, pending, waiting, accepted, ended. */
static const char *const allowed[CM_CONNREQ_STATE_CNT] = {
	[CM_CONNREQ_CONNECTING] = ".a...o", [CM_CONNREQ_REQUESTED] = "....mo",
	[CM_CONNREQ_PENDING] = "...w.o",    [CM_CONNREQ_WAITING] = "....mo",
	[CM_CONNREQ_ACCEPTED] = ".....o",   [CM_CONNREQ_ENDED] = "......",
};

Test(cm_connreq, transitions_are_those_of_the_document)
{
	for (int from = 0; from < CM_CONNREQ_STATE_CNT; from++)
		for (int to = 0; to < CM_CONNREQ_STATE_CNT; to++)
			cr_expect_eq(cm_connreq_may(from, to), allowed[from][to] != '.', "%s -> %s",
				     cm_connreq_state_name(from), cm_connreq_state_name(to));
}

Test(cm_connreq, state_names_differ)
{
	for (int a = 0; a < CM_CONNREQ_STATE_CNT; a++)
		for (int b = 0; b < a; b++)
			cr_expect_str_neq(cm_connreq_state_name(a), cm_connreq_state_name(b));
}
