/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Life of a ring connection: attach, drain, end, stop, free. Called by the engine through
 * eng_transport_ops.
 */
#include <stdlib.h>
#include <string.h>

#include "ring/ring_balance.h"
#include "ring/ring_bulk.h"
#include "ring/ring_rail.h"
#include "ring/ring_rx.h"
#include "ring/ring_transport.h"

#define RING_DRAIN_TURNS 1024u /* Upper bound; a completion queue is far shorter */

static struct ring_conn *ring_life_conn(struct eng_conn *conn)
{
	return ring_conn_of(&conn->chan);
}

/** Names the device; queue pairs of DC, which links share, and rails in use are named too. */
const char *ring_life_name(const struct eng_conn *eng)
{
	const struct ring_conn *conn = (const struct ring_conn *)eng;

	if (conn->rail && conn->rail->is_ready)
		return strcmp(eng->transport->ops->name, "mlx5") ? "verbs-rails" : "mlx5-rails";
	return conn->link->caps & DEV_CAP_DC ? "mlx5-dc" : eng->transport->ops->name;
}

int ring_life_attach(struct eng_conn *eng)
{
	struct ring_conn *conn = ring_life_conn(eng);
	int ret = conn->link->ops->attach(conn->link);

	conn->attached = !ret;
	if (ret)
		return ret;
	ring_balance_add(conn);
	ring_rail_attach(conn);
	return 0;
}

static void ring_life_detach(struct ring_conn *conn)
{
	ring_balance_remove(conn);
	if (conn->attached)
		conn->link->ops->detach(conn->link);
	conn->attached = false;
	ring_rail_drop(conn);
}

/** Returns true if a batch of the peer or an acknowledgement has arrived. */
bool ring_life_has_received(const struct eng_conn *eng)
{
	const struct ring_conn *conn = (const struct ring_conn *)eng;

	return conn->rx.producer || conn->tx.placed || conn->tx.flow.remote_consumer;
}

/**
 * Delivers everything that arrived. A device without per-link poll is polled as a whole. Bytes
 * present at the start are at most one ring.
 */
void ring_life_drain(struct eng_conn *eng)
{
	struct ring_conn *conn = ring_life_conn(eng);
	const struct dev_link_ops *ops = conn->link->ops;
	struct eng_transport *transport = eng->transport;
	uint64_t end = conn->rx.parsed + conn->rx.len;
	struct dev_event ev;
	unsigned i;

	for (i = 0; !ops->poll && i < RING_DRAIN_TURNS && transport->ops->poll(transport); i++)
		;
	while (!eng->err && ops->poll && conn->rx.parsed <= end && ops->poll(conn->link, &ev) &&
	       ev.kind != DEV_EV_DOWN) {
		if (ev.kind == DEV_EV_IMM)
			ring_rx_batch(ops, conn, ev.imm);
		else
			ring_rx_event_cold(conn, &ev);
	}
}

/** With registered memory, the device releases it before core is notified. */
void ring_life_end(struct eng_conn *eng)
{
	struct ring_conn *conn = ring_life_conn(eng);

	util_list_remove(&conn->dirty_link);
	util_list_remove(&conn->ack.link);
	ring_balance_remove(conn);
	ring_conn_disable_fast_paths(conn);
	if (!conn->attached || !ring_transport_registers(ring_conn_transport(conn)))
		return;
	ring_life_detach(conn);
	ring_bulk_fail(conn, eng->err);
}

bool ring_life_withdraw(struct eng_conn *eng)
{
	struct ring_conn *conn = ring_life_conn(eng);

	return !conn->attached || !conn->link->ops->withdraw ||
	       conn->link->ops->withdraw(conn->link);
}

void ring_life_stop(struct eng_conn *eng)
{
	struct ring_conn *conn = ring_life_conn(eng);

	util_list_remove(&conn->dirty_link);
	util_list_remove(&conn->ack.link);
	ring_conn_disable_fast_paths(conn);
	ring_life_detach(conn);
	ring_bulk_abandon(conn);
}

void ring_life_free(struct eng_conn *eng)
{
	struct ring_conn *conn = ring_life_conn(eng);

	ring_rail_free(conn);
	ring_rail_close_link(conn);
	ring_conn_fini(conn);
	free(conn);
}
