/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Initialization, failure and consumer reads of a connection: see ring_conn.h. */
#include "ring/ring_conn.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "engine/eng_engine.h"
#include "ring/ring_ack.h"
#include "ring/ring_transport.h"
#include "ring/ring_tx.h"
#include "util/clock.h"
#include "util/log.h"

/**
 * Returns the largest message span that an idle ring admits wherever its end is: skip and message,
 * each with its metadata, beside the responses, the reserve, and a quarter that the peer need not
 * advertise.
 */
static uint64_t ring_conn_span_max(const struct ring_tx *tx)
{
	uint64_t kept =
		2 * tx->flow.grant_max + RING_CONTROL_RESERVE + RING_UNADVERTISED_MAX(tx->len);
	uint64_t span = (tx->flow.cap - kept) / 2 - WIRE_META_LEN;

	span = span < tx->len / 4 ? span : tx->len / 4;
	return span & ~(uint64_t)(WIRE_ALIGN - 1);
}

void ring_conn_init(struct ring_conn *conn, struct dev_link *link, uint64_t tx_grant_max,
		    uint64_t rx_grant_max)
{
	struct ring_tx *tx = &conn->tx;
	struct ring_rx *rx = &conn->rx;

	conn->link = link;
	link->user = conn;
	memset(tx, 0, sizeof(*tx));
	tx->base = link->tx_base;
	tx->len = link->tx_len;
	tx->flow.cap = tx->len - link->inband_len;
	tx->flow.grant_max = tx_grant_max;
	tx->flow.granted = tx_grant_max;
	tx->credit = rx_grant_max;
	memset(rx, 0, sizeof(*rx));
	rx->base = link->rx_base;
	rx->len = link->rx_len;
	ring_retained_init(&rx->retained);
	util_idmap_init(&conn->calls);
	util_list_init(&conn->gets);
	conn->eng.chan.stats = &conn->eng.engine->unread;
	conn->eng.chan.eager_max = ring_conn_span_max(tx) - WIRE_HDR_LEN - sizeof(uint32_t);
	conn->eng.chan.resp_lim = wire_resp_max(rx_grant_max);
	conn->eng.chan.resp_sure = wire_resp_max(rx_grant_max / 2);
	conn->eng.chan.held_max =
		(uint32_t)(tx_grant_max / wire_reservation(sizeof(struct wire_status)) /
			   CORE_CHAN_HELD_PART);
	conn->eng.chan.caps = link->caps & DEV_CAP_GET ? CORE_CHAN_GET : 0;
	ring_ack_init(conn);
	/* With registered memory, a read of deregistered memory ends the whole connection. */
	if (link->caps & DEV_CAP_DIRECT)
		conn->eng.chan.caps |= CORE_CHAN_REVOKE;
}

void ring_conn_fini(struct ring_conn *conn)
{
	ring_retained_fini(&conn->rx.retained);
	util_idmap_fini(&conn->calls);
}

void ring_conn_mark_dirty(struct ring_conn *conn)
{
	if (!conn->eng.err && util_list_is_empty(&conn->dirty_link))
		util_list_push_back(&ring_conn_transport(conn)->dirty, &conn->dirty_link);
}

void ring_conn_fail_cold(struct ring_conn *conn, int err, const char *why)
{
	if (conn->eng.err)
		return;
	ring_conn_disable_fast_paths(conn);
	if (why)
		UTIL_WARN(EP_DATA, "connection failed, other peers are not affected: %s\n", why);
	util_list_remove(&conn->ack.link);
	util_list_remove(&conn->dirty_link);
	eng_conn_fail(&conn->eng, err);
}

bool ring_conn_may_read_cold(struct ring_conn *conn)
{
	if (conn->read == RING_READ_PAUSE && util_clock_ns() >= conn->read_next_ns)
		conn->read = RING_READ_IDLE;
	return conn->read == RING_READ_IDLE;
}

void ring_conn_read_done_cold(struct ring_conn *conn, uint64_t pos)
{
	uint32_t vain;

	conn->read = RING_READ_IDLE;
	if ((int64_t)(conn->read_mark - conn->tx.placed) > 0)
		conn->tx.placed = conn->read_mark;
	if (!ring_tx_released(&conn->tx, pos)) {
		ring_conn_fail_cold(conn, -FI_EIO, "consumer word beyond what was sent");
		return;
	}
	if (conn->eng.chan.caps & CORE_CHAN_ASYNC)
		ring_ack_advance(conn);
	if (conn->tx.flow.remote_consumer != conn->read_base) {
		if (ring_flow_grant_due(&conn->tx.flow))
			ring_conn_mark_dirty(conn);
		conn->read_unchanged = 0;
		return;
	}
	vain = conn->read_unchanged;
	conn->read_unchanged += vain < RING_READ_PAUSE_MAX;
	conn->read_next_ns = util_clock_ns() + ((uint64_t)RING_READ_PAUSE_NS << vain);
	conn->read = RING_READ_PAUSE;
}
