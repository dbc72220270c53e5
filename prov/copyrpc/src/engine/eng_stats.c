/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements eng_stats.h. */
#include "engine/eng_stats.h"

#include <rdma/fi_errno.h>

#include "core/core_ep.h"
#include "engine/eng_conn.h"
#include "engine/eng_engine.h"
#include "util/event.h"
#include "util/job_name.h"
#include "util/probe.h"
#include "util/stats.h"

void eng_stats_open(struct core_engine *engine)
{
	engine->rest = util_stats_get(COPYRPC_STATS_RESTS);
	if (engine->rest)
		util_stats_begin(engine->rest);
}

void eng_stats_close(struct core_engine *engine)
{
	util_stats_end(engine->rest);
}

struct copyrpc_stats_transport *eng_stats_transport(const struct eng_transport_ops *ops, int err)
{
	struct copyrpc_stats_transport *row = util_stats_get(COPYRPC_STATS_TRANSPORTS);

	if (!row)
		return NULL;
	util_stats_set_text(row->name, sizeof(row->name), ops->name);
	row->path = ops->path;
	row->error = -err;
	util_stats_begin(row);
	if (!err)
		return row;
	util_stats_end(row);
	util_event(COPYRPC_STATS_DEVICE_UNUSED, NULL, ops->path, (uint64_t)-err);
	return row;
}

void eng_stats_outage(const struct eng_transport *transport, int before, uint64_t lasted_ns)
{
	uint32_t path = transport->ops->path;

	if (transport->stats)
		transport->stats->error = -transport->outage;
	if (!before)
		util_event(COPYRPC_STATS_DEVICE_OUT, NULL, path, (uint64_t)-transport->outage);
	if (!transport->outage)
		util_event(COPYRPC_STATS_DEVICE_BACK, NULL, path, lasted_ns);
}

void eng_stats_memory(struct eng_conn *conn, int64_t len)
{
	if (conn->transport->stats)
		__atomic_fetch_add(&conn->transport->stats->memory, (uint64_t)len,
				   __ATOMIC_RELAXED);
}

/* ---- endpoints and connections ---- */

void eng_stats_ep_open(struct core_engine_ep *eep)
{
	struct copyrpc_stats_endpoint *row = util_stats_get(COPYRPC_STATS_ENDPOINTS);
	struct sockaddr_storage addr;

	if (!row)
		return;
	eng_ep_addr(eep, &addr);
	util_stats_set_addr(&row->addr, (struct sockaddr *)&addr);
	for (uint32_t i = 0; i < eep->engine->transport_cnt; i++)
		row->paths |= eng_transport_at(eep->engine, i)->ops->path;
	util_stats_begin(row);
	cm_ep_count_in(eep->cep, &row->handshakes);
	eep->ep->stats = row;
}

void eng_stats_ep_close(struct core_engine_ep *eep)
{
	util_stats_end(eep->ep->stats);
	eep->ep->stats = &eep->ep->unread;
}

struct copyrpc_stats_packets *eng_stats_packets(struct core_engine_ep *eep)
{
	return &eep->ep->stats->packets;
}

/** Returns the paths of this end that are better than that of the connection. */
static uint64_t eng_stats_better(const struct eng_conn *conn)
{
	uint64_t better = 0;

	for (uint32_t i = 0; i < conn->engine->transport_cnt; i++)
		better |= eng_transport_at(conn->engine, i)->ops->path;
	return better & (conn->transport->ops->path - 1);
}

/** Records a new connection. `before`: path of the peer's last one, 0 if there is none. */
static void eng_stats_record_up(struct eng_conn *conn, const struct sockaddr *addr, uint32_t before)
{
	uint32_t path = conn->transport->ops->path;

	if (before && before != path)
		util_event(COPYRPC_STATS_MOVED, addr, path, before);
	else
		util_event(COPYRPC_STATS_CONNECTED, addr, path, eng_stats_better(conn));
}

static const char *eng_stats_name(const struct eng_conn *conn)
{
	const struct eng_transport_ops *ops = conn->transport->ops;

	return ops->conn_name ? ops->conn_name(conn) : ops->name;
}

static void eng_stats_set_identity(const struct eng_conn *conn, struct copyrpc_stats_peer *row)
{
	struct util_job_name who = util_job_peer(conn->chan.identity, conn->chan.pid);

	row->pid = who.pid;
	row->rank = who.rank;
	util_stats_set_text(row->host, sizeof(row->host), who.host);
}

void eng_stats_conn_moved(struct eng_conn *conn)
{
	struct copyrpc_stats_peer *row = conn->chan.stats;

	if (row == conn->engine->rest || row == &conn->engine->unread)
		return;
	util_stats_set_text(row->device, sizeof(row->device), eng_stats_name(conn));
}

void eng_stats_conn_up(struct eng_conn *conn)
{
	uint32_t endpoint = util_stats_index(COPYRPC_STATS_ENDPOINTS, conn->ep->stats);
	struct copyrpc_stats_addr at;
	struct copyrpc_stats_peer *row;
	struct sockaddr_storage addr;

	cm_conn_addr(conn->cm, &addr);
	util_stats_set_addr(&at, (struct sockaddr *)&addr);
	conn->ep->stats->connects++;
	conn->chan.pid = cm_conn_pid(conn->cm);
	conn->chan.identity = cm_conn_identity(conn->cm);
	row = util_stats_get_peer(endpoint, &at);
	eng_stats_record_up(conn, (struct sockaddr *)&addr, row ? row->path : 0);
	if (!row) {
		conn->chan.stats = conn->engine->rest ? conn->engine->rest : &conn->engine->unread;
		return;
	}
	row->path = conn->transport->ops->path;
	eng_stats_set_identity(conn, row);
	util_stats_set_text(row->device, sizeof(row->device), eng_stats_name(conn));
	util_stats_begin(row);
	conn->chan.stats = row;
}

void eng_stats_conn_end(struct eng_conn *conn)
{
	if (conn->chan.stats && conn->chan.stats != conn->engine->rest) {
		core_chan_show(&conn->chan);
		util_stats_end(conn->chan.stats);
	}
	conn->chan.stats = &conn->engine->unread;
}

/** Gets the address of the peer; one without handshake, in tests, has none. */
static void eng_stats_peer_addr(const struct eng_conn *conn, struct sockaddr_storage *addr)
{
	addr->ss_family = AF_UNSPEC;
	if (conn->cm)
		cm_conn_addr(conn->cm, addr);
}

/** Counts the end of a connection or of an attempt at its endpoint. */
static void eng_stats_count_end(struct core_engine_ep *eep, int err)
{
	struct copyrpc_stats_endpoint *row = eep->ep->stats;

	switch (-err) {
	case FI_ESHUTDOWN: row->closed++; break;
	case FI_ECONNRESET:
	case FI_ECONNABORTED: row->died++; break;
	case FI_ETIMEDOUT: row->silent++; break;
	case FI_ECONNREFUSED:
	case FI_EACCES: row->refused++; break;
	case FI_EHOSTUNREACH:
	case FI_ENETUNREACH:
	case FI_EOPNOTSUPP: row->unreachable++; break;
	default: row->broken++; break;
	}
}

void eng_stats_failed(struct core_engine_ep *eep, const struct sockaddr *addr, int err)
{
	eng_stats_count_end(eep, err);
	util_event(COPYRPC_STATS_NOT_CONNECTED, addr, 0, (uint64_t)-err);
}

void eng_stats_conn_down(struct eng_conn *conn)
{
	struct sockaddr_storage addr;

	eng_stats_peer_addr(conn, &addr);
	if (conn->err == -FI_ESHUTDOWN)
		util_event(COPYRPC_STATS_CLOSED, (struct sockaddr *)&addr,
			   conn->transport->ops->path, 0);
	else
		util_event(COPYRPC_STATS_LOST, (struct sockaddr *)&addr, conn->transport->ops->path,
			   (uint64_t)-conn->err);
	if (conn->chan.stats && conn->chan.stats != conn->engine->rest)
		conn->chan.stats->error = -conn->err;
	eng_stats_count_end(conn->eep, conn->err);
}

void eng_stats_conn_closing(struct eng_conn *conn)
{
	struct sockaddr_storage addr;

	if (!conn->up_reported || conn->err)
		return;
	eng_stats_peer_addr(conn, &addr);
	util_event(COPYRPC_STATS_CLOSED_HERE, (struct sockaddr *)&addr, conn->transport->ops->path,
		   0);
}

void eng_stats_get(struct core_chan *chan, const struct core_get *get)
{
	if (get->status) {
		chan->stats->get_errors++;
		return;
	}
	chan->stats->gets++;
	chan->stats->get_bytes += get->len;
}

void eng_stats_access(struct core_chan *chan, const struct core_get *get)
{
	if (get->status) {
		chan->stats->access_errors++;
		return;
	}
	chan->stats->accesses++;
	chan->stats->access_bytes += get->len;
}

void eng_stats_shortage(struct core_chan *chan)
{
	enum util_probe_cause cause = UTIL_PROBE_MEMORY;

	switch (chan->shortage) {
	case CORE_SHORT_CREDIT:
		chan->stats->no_credit++;
		cause = UTIL_PROBE_CREDIT;
		break;
	case CORE_SHORT_SPACE:
		chan->stats->no_space++;
		cause = UTIL_PROBE_SPACE;
		break;
	case CORE_SHORT_QUEUE:
		chan->stats->no_queue++;
		cause = UTIL_PROBE_QUEUE;
		break;
	default: chan->stats->no_memory++; break;
	}
	UTIL_PROBE2(wait, chan->stats, cause);
}
