/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_rto.h, as far as a session with a measured round trip does not need it. */
#include "erpc/pace/erpc_rto.h"

uint64_t erpc_rto_first_cold(const struct erpc_rto *r)
{
	return r->first_ns;
}
