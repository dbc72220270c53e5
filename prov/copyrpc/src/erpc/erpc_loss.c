/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Go-back-N: see erpc_loss.h. */
#include "erpc/erpc_loss.h"

#include "erpc/erpc_kick.h"

static bool erpc_loss_is_lost(const struct erpc_session *s, const struct erpc_tx *tx)
{
	uint64_t rto_ns = erpc_rto_after(&s->rto, tx->tries);

	return erpc_client_in_flight(&tx->c) && !tx->out.unsent &&
	       s->port->now_ns - tx->sent_ns > rto_ns;
}

static void erpc_loss_session(struct erpc_session *s)
{
	uint32_t busy = ~s->free_mask & ERPC_FREE_ALL, slot;

	for (; busy; busy &= busy - 1) {
		slot = (uint32_t)__builtin_ctz(busy);
		if (!erpc_loss_is_lost(s, &s->tx[slot]))
			continue;
		s->port->stats.losses++;
		erpc_kick_go_back(s, slot);
		erpc_session_mark(s);
	}
}

void erpc_loss_scan(struct erpc_port *port)
{
	struct util_list *it, *tmp;

	port->scan_ns = port->now_ns + ERPC_SCAN_NS;
	UTIL_LIST_FOREACH_SAFE (it, tmp, &port->active)
		erpc_loss_session(UTIL_CONTAINER_OF(it, struct erpc_session, active_link));
}
