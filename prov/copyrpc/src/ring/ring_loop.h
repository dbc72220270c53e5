/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What happens in one progress call?
 *
 *   1. take in what arrived, at most RING_LOOP_BUDGET events, each a whole batch
 *   2. news of connections and failures, if there are any (one load says so)
 *   3. let go what waits: only connections on the dirty list
 *
 * The loop is an inline function over constant device ops: an instantiation (ring_over_shm.c, ...) compiles
 * one copy per device, and there is one place to read it. An empty call is one poll and two loads.
 */
#ifndef RING_LOOP_H
#define RING_LOOP_H

#include "ring/ring_engine.h"
#include "ring/ring_rx.h"
#include "ring/ring_tx.h"

#define RING_LOOP_BUDGET 64u

static_assert(sizeof(struct dev_get) <= sizeof(((struct core_get *)0)->engine), "it lives there");

/** A core_get through the device, whose own view of it lives in core_get.engine until it ends. */
RING_INLINE int ring_loop_get(const struct dev_link_ops *dev, struct ring_conn *conn,
			      struct core_get *get)
{
	struct dev_get *dget = (struct dev_get *)get->engine;
	int ret;

	if (conn->err)
		return conn->err;
	*dget = (struct dev_get){
		.remote_addr = get->remote_addr,
		.remote_key = get->remote_key,
		.iov = get->iov,
		.iov_cnt = get->iov_cnt,
		.len = get->len,
		.user = get,
	};
	ret = dev->get(conn->link, dget);
	get->status = dget->status;
	return ret;
}

/** The events that are not a batch. */
static inline void ring_loop_event_cold(struct ring_conn *conn, const struct dev_event *ev)
{
	struct core_get *get;

	switch (ev->kind) {
	case DEV_EV_READ: ring_conn_read_done_cold(conn, ev->value); break;
	case DEV_EV_GET:
		get = ev->get->user;
		get->status = ev->get->status;
		conn->up->on_get_done(&conn->chan, get);
		break;
	case DEV_EV_DOWN: ring_conn_fail_cold(conn, ev->status, "the link went down"); break;
	case DEV_EV_IMM: break;
	}
}

RING_INLINE void ring_loop_flush_dirty(const struct dev_link_ops *link_ops,
				       struct core_engine *engine)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &engine->dirty) {
		if (ring_tx_progress(link_ops, UTIL_CONTAINER_OF(it, struct ring_conn, dirty_link)))
			util_list_remove(it);
	}
}

RING_INLINE void ring_loop_progress(const struct dev_ops *dev, const struct dev_link_ops *link_ops,
				    struct core_engine *engine)
{
	unsigned budget = RING_LOOP_BUDGET;
	struct dev_event ev;

	while (dev->poll(engine->dev, &ev)) {
		struct ring_conn *conn = ev.link->user;

		if (UTIL_LIKELY(ev.kind == DEV_EV_IMM))
			ring_rx_batch(conn, ev.imm);
		else
			ring_loop_event_cold(conn, &ev);
		if (!--budget)
			break;
	}
	if (UTIL_UNLIKELY(ring_engine_has_events(engine)))
		ring_engine_events_cold(engine);
	if (UTIL_UNLIKELY(engine->dirty.next != &engine->dirty))
		ring_loop_flush_dirty(link_ops, engine);
}

#endif
