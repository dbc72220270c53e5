/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unused connections, and all of a host: see cm_unused.h. */
#include "cm/conn/cm_unused.h"

#include "cm/conn/cm_conn.h"
#include "cm/conn/cm_pending.h"
#include "cm/ep/cm_ep.h"
#include "util/clock.h"

void cm_unused_add(struct cm_conn *conn)
{
	if (!conn->accepted_ns || !(conn->path & (WIRE_CM_PATH_UD | WIRE_CM_PATH_UDP)))
		return;
	conn->is_held = true;
	conn->cep->held_cnt[cm_ep_host(conn->cep, &conn->via.to)]++;
	conn->is_unused = true;
	conn->cep->unused_cnt[cm_ep_host(conn->cep, &conn->via.to)]++;
}

void cm_unused_remove(struct cm_conn *conn)
{
	if (!conn->is_unused)
		return;
	conn->is_unused = false;
	conn->cep->unused_cnt[cm_ep_host(conn->cep, &conn->via.to)]--;
}

void cm_unused_end(struct cm_conn *conn)
{
	cm_unused_remove(conn);
	if (!conn->is_held)
		return;
	conn->is_held = false;
	conn->cep->held_cnt[cm_ep_host(conn->cep, &conn->via.to)]--;
}

/** Uncounts the connections on which the engine has received a message since. */
static void cm_unused_sweep(struct cm_ep *cep)
{
	struct util_list *it;

	for (it = cep->conns.next; it != &cep->conns; it = it->next) {
		struct cm_conn *conn = UTIL_CONTAINER_OF(it, struct cm_conn, cep_link);

		if (conn->is_unused && cep->ops->last_rx_ns &&
		    cep->ops->last_rx_ns(cep->ctx, conn, conn->user))
			cm_unused_remove(conn);
	}
}

bool cm_unused_has_room(struct cm_ep *cep, const union cm_addr *addr, uint64_t now_ns)
{
	uint32_t host = cm_ep_host(cep, addr);
	const uint32_t *cnt = &cep->unused_cnt[host];

	if (cep->held_cnt[host] >= cep->held_max)
		return false;
	if (*cnt < cep->unused_max)
		return true;
	if (now_ns >= cep->unused_sweep_ns) {
		cep->unused_sweep_ns = now_ns + CM_UNUSED_SWEEP_MS * UTIL_NS_PER_MS;
		cm_unused_sweep(cep);
	}
	return *cnt < cep->unused_max;
}
