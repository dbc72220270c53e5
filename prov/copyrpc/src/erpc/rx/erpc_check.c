/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters of refused packets: see erpc_pkt.h. */
#include "erpc/rx/erpc_pkt.h"

struct erpc_session *erpc_check_no_cold(uint64_t *counter)
{
	(*counter)++;
	return NULL;
}
