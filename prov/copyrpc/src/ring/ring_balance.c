/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Moves of connections by traffic: see ring_balance.h. */
#include "ring/ring_balance.h"

#include "engine/eng_stats.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/param.h"

static uint64_t ring_balance_traffic(struct ring_conn *conn)
{
	uint64_t *accesses = &conn->moves.accesses;

	*accesses += conn->link->access_cnt - (uint32_t)*accesses;
	return conn->tx.flow.producer + conn->rx.producer + *accesses * RING_BALANCE_ACCESS;
}

static bool ring_balance_is_own(const struct ring_conn *conn)
{
	return !(conn->link->caps & DEV_CAP_DC);
}

void ring_balance_add(struct ring_conn *conn)
{
	struct ring_transport *transport = ring_conn_transport(conn);

	if (!(conn->link->caps & DEV_CAP_MOVE))
		return;
	conn->moves.is_own = ring_balance_is_own(conn);
	util_list_push_back(&transport->movable, &conn->balance_link);
}

static void ring_balance_see(struct ring_moves *look, struct ring_conn *conn)
{
	bool is_own = ring_balance_is_own(conn);

	if (!ring_moves_see(look, &conn->moves, ring_balance_traffic(conn), is_own))
		return;
	eng_stats_conn_moved(&conn->eng);
	UTIL_INFO(EP_DATA, "a connection now goes by %s\n",
		  is_own ? "a queue pair of its own" : "shared queue pairs (DC)");
}

void ring_balance_look_at(struct ring_transport *transport, uint64_t now_ns)
{
	uint64_t interval_ns = (uint64_t)util_params.rc_interval_ms * UTIL_NS_PER_MS;
	struct ring_move chosen[RING_MOVES_MAX];
	struct util_list *it, *tmp;
	struct ring_moves look;
	uint32_t cnt;

	/* Several endpoints may share a transport, and each has ticks. */
	if (util_list_is_empty(&transport->movable) ||
	    now_ns - transport->balanced_ns < interval_ns / 2)
		return;
	transport->balanced_ns = now_ns;
	ring_moves_begin(&look);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->movable)
		ring_balance_see(&look, UTIL_CONTAINER_OF(it, struct ring_conn, balance_link));
	cnt = ring_moves_decide(&look, transport->dev_ops->own_left(transport->dev), chosen);
	for (uint32_t i = 0; i < cnt; i++) {
		struct ring_conn *conn = UTIL_CONTAINER_OF(chosen[i].conn, struct ring_conn, moves);

		if (!conn->link->ops->move(conn->link, chosen[i].own))
			ring_moves_asked(chosen[i].conn);
	}
}

void ring_balance_look(struct eng_transport *eng)
{
	ring_balance_look_at(ring_transport_of(eng), util_clock_ns());
}
