/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress of one transport. Called by the engine's progress through eng_transport_ops, and
 * directly for the first transport of an engine.
 *
 *   1. Process events: at most RING_LOOP_BUDGET, each a whole batch.
 *   2. Process connection events and failures, if there are any: one load tells.
 *   3. Flush the connections on the dirty list.
 *
 * Inline functions over constant device ops; ring_over.h compiles one copy per device. An idle call
 * costs one poll and two loads.
 */
#ifndef RING_LOOP_H
#define RING_LOOP_H

#include "ring/ring_bulk.h"
#include "engine/eng_engine.h"
#include "ring/ring_ack.h"
#include "ring/ring_rx.h"
#include "ring/ring_tx_leave.h"

#define RING_LOOP_BUDGET 64u

/** Handles the events that are not a batch. */
static inline void ring_loop_event_cold(struct ring_conn *conn, const struct dev_event *ev)
{
	switch (ev->kind) {
	case DEV_EV_READ: ring_conn_read_done_cold(conn, ev->value); break;
	case DEV_EV_ACK: ring_ack_received(conn); break;
	case DEV_EV_GET: ring_bulk_get_done(conn, ev->get); break;
	case DEV_EV_DOWN: ring_conn_fail_cold(conn, ev->status, NULL); break;
	case DEV_EV_IMM: break;
	}
}

RING_INLINE void ring_loop_flush_dirty(const struct dev_link_ops *link_ops,
				       struct ring_transport *transport)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->dirty) {
		if (ring_tx_progress(link_ops, UTIL_CONTAINER_OF(it, struct ring_conn, dirty_link)))
			util_list_remove(it);
	}
}

/** Processes arrived events. Returns true if there may be more. */
RING_INLINE bool ring_loop_poll(const struct dev_ops *dev, const struct dev_link_ops *link_ops,
				struct ring_transport *transport)
{
	unsigned budget = RING_LOOP_BUDGET;
	struct dev_event ev;

	if (link_ops->write_imm_ack)
		transport->polls++;
	while (dev->poll(transport->dev, &ev)) {
		struct ring_conn *conn = ev.link->user;

		if (UTIL_UNLIKELY(ev.kind != DEV_EV_IMM)) {
			ring_loop_event_cold(conn, &ev);
		} else {
			ring_rx_batch(link_ops, conn, ev.imm);
			if (link_ops->write_imm_ack)
				ring_ack_on_progress(conn, ev.imm);
		}
		if (!--budget)
			return true;
	}
	return false;
}

/** Runs the progress of an engine with this as first transport. */
RING_INLINE void ring_loop_progress(const struct dev_ops *dev, const struct dev_link_ops *link_ops,
				    struct core_engine *engine)
{
	struct ring_transport *transport = ring_transport_of(eng_transport_at(engine, 0));

	ring_loop_poll(dev, link_ops, transport);
	if (UTIL_UNLIKELY(eng_has_attention(engine)))
		eng_progress_cold(engine);
	if (UTIL_UNLIKELY(transport->dirty.next != &transport->dirty))
		ring_loop_flush_dirty(link_ops, transport);
	if (link_ops->write_imm_ack)
		ring_ack_progress(transport);
}

#endif
