/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters of refused packets: see erpc_pkt.h. */
#include "erpc/erpc_pkt.h"

struct erpc_session *erpc_check_no_cold(uint64_t *counter)
{
	(*counter)++;
	return NULL;
}

void erpc_pkt_refuse(struct erpc_session *s, enum erpc_verdict verdict)
{
	struct erpc_stats *stats = &s->ep->stats;

	switch (verdict) {
	case ERPC_REPEAT: stats->rx_repeats++; break;
	case ERPC_STALE: stats->rx_stale++; break;
	case ERPC_EARLY: stats->rx_early++; break;
	case ERPC_BAD: stats->rx_bad++; break;
	case ERPC_TAKE:
	case ERPC_LAST: break;
	}
}
