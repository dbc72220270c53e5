/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* States of a connection request, checked against docs/connections.md, section 3. */
#include "cm/msg/cm_connreq.h"

#include <criterion/criterion.h>

#include "unit/cm/cm_fixture.h"

Test(cm_connreq, transitions_are_those_of_the_document)
{
	static const char *const legal[] = { "connecting>requested", "connecting>ended",
					     "requested>accepted",   "requested>ended",
					     "pending>waiting",      "pending>ended",
					     "waiting>accepted",     "waiting>ended",
					     "accepted>ended" };

	cm_test_transitions(&cm_connreq_states, legal, sizeof(legal) / sizeof(legal[0]));
}
