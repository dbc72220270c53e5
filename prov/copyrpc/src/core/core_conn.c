/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connected endpoints. See core_conn.h. */
#include "core/core_conn.h"

#include <assert.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_module.h"
#include "core/core_peer.h"

/* from -> to */
static const bool core_conn_next[CORE_CONN_STATE_CNT][CORE_CONN_STATE_CNT] = {
	[CORE_CONN_IDLE] = { [CORE_CONN_CONNECTING] = true },
	[CORE_CONN_CONNECTING] = { [CORE_CONN_UP] = true, [CORE_CONN_CLOSED] = true },
	[CORE_CONN_UP] = { [CORE_CONN_CLOSED] = true },
};

bool core_conn_may(enum core_conn_state from, enum core_conn_state to)
{
	return core_conn_next[from][to];
}

static void core_conn_set_state(struct core_conn *conn, enum core_conn_state state)
{
	assert(core_conn_may(conn->state, state));
	conn->state = state;
}

int core_conn_open(struct core_conn *conn, struct core_ep *ep)
{
	conn->ep = ep;
	conn->state = CORE_CONN_IDLE;
	conn->peer = core_peer_make(ep);
	return conn->peer ? 0 : -FI_ENOMEM;
}

void core_conn_close(struct core_conn *conn)
{
	struct core_ep *ep = conn->ep;

	core_peer_free(conn->peer);
	free(ep->peers);
	ep->peers = NULL;
	ep->peer_cnt = 0;
}

static void core_conn_copy_addr(struct sockaddr_storage *to, const struct sockaddr *addr)
{
	memcpy(to, addr,
	       addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
}

int core_conn_connect(struct core_conn *conn, const struct sockaddr *addr, const void *data,
		      size_t len)
{
	struct core_ep *ep = conn->ep;
	int ret;

	if (conn->state != CORE_CONN_IDLE)
		return -FI_EISCONN;
	ret = ep->dom->engine_ops->ep_connect(ep->eep, addr, data, len);
	if (ret)
		return ret;
	core_conn_copy_addr(&conn->addr, addr);
	core_conn_set_state(conn, CORE_CONN_CONNECTING);
	return 0;
}

int core_conn_accept(struct core_conn *conn, struct cm_connreq *connreq, const void *data,
		     size_t len)
{
	struct core_ep *ep = conn->ep;
	int ret;

	if (conn->state != CORE_CONN_IDLE)
		return -FI_EISCONN;
	ret = ep->dom->engine_ops->ep_accept(ep->eep, connreq, data, len);
	if (!ret)
		core_conn_set_state(conn, CORE_CONN_CONNECTING);
	return ret;
}

int core_conn_shutdown(struct core_conn *conn)
{
	if (conn->state == CORE_CONN_CLOSED)
		return 0;
	if (conn->state != CORE_CONN_UP)
		return -FI_ENOTCONN;
	core_peer_fail(conn->peer, -FI_ECANCELED, CORE_PEER_IDLE);
	core_conn_on_down(conn);
	return 0;
}

bool core_conn_is_busy(const struct core_conn *conn)
{
	return conn->peer->chan && core_peer_is_busy(conn->peer);
}

int core_conn_send_err(const struct core_conn *conn)
{
	return conn->state == CORE_CONN_CLOSED ? -FI_ESHUTDOWN : -FI_ENOTCONN;
}

void core_conn_posted(struct core_conn *conn)
{
	if (conn->state == CORE_CONN_CLOSED)
		CORE_MODULES_CALL(ep_flush, conn->ep);
}

void core_conn_on_accepted(struct core_ep *ep, const struct sockaddr *addr, const void *data,
			   size_t len)
{
	struct core_conn *conn = ep->conn;

	(void)addr; /* on_up passes the address */
	conn->data_len = len < CORE_CONN_DATA_MAX ? len : CORE_CONN_DATA_MAX;
	if (conn->data_len)
		memcpy(conn->data, data, conn->data_len);
}

void core_conn_on_refused(struct core_ep *ep, int err, const void *data, size_t len)
{
	struct core_conn *conn = ep->conn;

	if (conn->state != CORE_CONN_CONNECTING)
		return;
	core_conn_set_state(conn, CORE_CONN_CLOSED);
	CORE_MODULES_CALL(ep_flush, ep);
	conn->ops->failed(conn->ctx, err, data, len);
}

void core_conn_on_event(struct core_ep *ep)
{
	ep->conn->ops->event(ep->conn->ctx);
}

void core_conn_on_up(struct core_conn *conn, struct core_chan *chan, const struct sockaddr *addr,
		     uint64_t incarnation)
{
	if (conn->state != CORE_CONN_CONNECTING) { /* given up meanwhile */
		chan->ops->close(chan);
		return;
	}
	core_conn_copy_addr(&conn->peer->addr, addr);
	if (!conn->addr.ss_family)
		core_conn_copy_addr(&conn->addr, addr);
	conn->peer->incarnation = incarnation;
	core_peer_up(conn->peer, chan);
	core_conn_set_state(conn, CORE_CONN_UP);
	conn->ops->connected(conn->ctx, conn->data, conn->data_len);
}

void core_conn_on_down(struct core_conn *conn)
{
	core_conn_set_state(conn, CORE_CONN_CLOSED);
	CORE_MODULES_CALL(ep_flush, conn->ep);
	conn->ops->ended(conn->ctx);
}
