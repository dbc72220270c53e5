/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Start, failure and end of a connection: see eng_conn.h. */
#include "engine/eng_conn.h"

#include <rdma/fi_errno.h>

#include "cm/base/cm.h"
#include "engine/eng_engine.h"
#include "engine/eng_event.h"
#include "engine/eng_outage.h"
#include "engine/eng_room.h"
#include "engine/eng_stats.h"
#include "util/log.h"

void eng_conn_fail(struct eng_conn *conn, int err)
{
	if (conn->err)
		return;
	conn->err = err;
	util_list_push_back(&conn->engine->failed, &conn->fail_link);
}

static int eng_conn_attach(struct eng_conn *conn)
{
	const struct eng_transport_ops *ops = conn->transport->ops;
	int ret;

	/* A device that has failed tells so once: not to connections that come later. */
	if (ops->health && ops->health(conn->transport) == -FI_EIO)
		return -FI_EIO;
	ret = ops->attach(conn);
	if (ret)
		return ret;
	conn->attached = true;
	eng_transport_get(conn->transport);
	return 0;
}

void eng_conn_up(struct eng_conn *conn)
{
	struct core_engine *engine = conn->engine;
	struct core_ep *ep = conn->ep;
	struct sockaddr_storage addr;
	int ret;

	if (conn->up_reported || conn->err)
		return;
	cm_conn_addr(conn->cm, &addr);
	eng_stats_conn_up(conn);
	ret = eng_conn_attach(conn);
	if (ret) {
		UTIL_WARN(EP_CTRL, "the device takes no more connections: %s\n", fi_strerror(-ret));
		eng_stats_failed(conn->eep, (struct sockaddr *)&addr, ret);
		eng_conn_free(conn);
		engine->must_look = true; /* no link may be left to tell of the device's failure */
		engine->up->on_connect_failed(ep, (struct sockaddr *)&addr, ret);
		return;
	}
	conn->up_reported = true;
	eng_outage_on_up(conn);
	if (cm_conn_is_authentic(conn->cm))
		conn->chan.caps |= CORE_CHAN_AUTHENTIC;
	engine->up->on_up(ep, &conn->chan, (struct sockaddr *)&addr, cm_conn_incarnation(conn->cm));
}

/** Notifies core of a failed connection, unless the transport calls eng_conn_withdrawn later. */
static void eng_conn_end(struct eng_conn *conn)
{
	const struct eng_transport_ops *ops = conn->transport->ops;

	if (ops->withdraw && !ops->withdraw(conn))
		return;
	ops->end(conn);
	eng_stats_conn_down(conn);
	conn->up->on_down(&conn->chan, conn->err);
}

void eng_conn_down(struct eng_conn *conn, int err)
{
	if (!conn->up_reported) {
		eng_conn_free(conn);
		return;
	}
	if (!conn->err)
		conn->transport->ops->drain(conn);
	util_list_remove(&conn->fail_link);
	conn->err = conn->err ? conn->err : err;
	eng_conn_end(conn);
}

void eng_conn_withdrawn(struct eng_conn *conn)
{
	util_list_remove(&conn->fail_link);
	util_list_push_back(&conn->engine->failed, &conn->fail_link);
}

void eng_conn_failed(struct eng_conn *conn)
{
	if (conn->cm)
		cm_conn_break(conn->cm, !conn->transport->ops->has_received ||
						conn->transport->ops->has_received(conn));
	conn->engine->must_look = true;
	eng_conn_end(conn);
}

/** Stops the connection and keeps its memory. Idempotent. */
static void eng_conn_stop(struct eng_conn *conn)
{
	if (conn->stopped)
		return;
	conn->stopped = true;
	eng_stats_conn_closing(conn);
	conn->chan.identity = NULL;
	cm_conn_put(conn->cm);
	eng_event_forget(conn->eep, conn);
	util_list_remove(&conn->fail_link);
	conn->transport->ops->stop(conn);
	conn->err = conn->err ? conn->err : -FI_ESHUTDOWN; /* Stops marking and receiving */
}

void eng_conn_free(struct eng_conn *conn)
{
	struct core_engine *engine = conn->engine;
	struct eng_transport *transport = conn->transport;

	eng_conn_stop(conn);
	pthread_mutex_lock(&engine->lock);
	util_list_remove(&conn->conn_link);
	pthread_mutex_unlock(&engine->lock);
	__atomic_fetch_sub(&engine->mem, conn->mem, __ATOMIC_RELAXED);
	eng_stats_memory(conn, -(int64_t)conn->mem);
	eng_stats_conn_end(conn);
	if (conn->attached)
		eng_transport_put(transport);
	engine->detour_cnt -= conn->out_paths != 0;
	eng_room_forget(conn);
	transport->ops->free(conn);
	eng_outage_put(transport);
}

void eng_chan_drain(struct core_chan *chan)
{
	struct eng_conn *conn = eng_conn_of(chan);

	if (!conn->err && conn->attached)
		conn->transport->ops->drain(conn);
}

bool eng_chan_withdraw(struct core_chan *chan)
{
	struct eng_conn *conn = eng_conn_of(chan);
	const struct eng_transport_ops *ops = conn->transport->ops;

	if (!ops->withdraw || ops->withdraw(conn))
		return true;
	eng_conn_fail(conn, -FI_ECONNABORTED);
	return false;
}

void eng_chan_fail(struct core_chan *chan, int err)
{
	eng_conn_fail(eng_conn_of(chan), err);
}

void eng_chan_stop(struct core_chan *chan)
{
	struct eng_conn *conn = eng_conn_of(chan);

	if (!conn->err)
		chan->ops->flush(chan);
	eng_conn_stop(conn);
}

void eng_chan_close(struct core_chan *chan)
{
	eng_chan_stop(chan);
	eng_conn_free(eng_conn_of(chan));
}
