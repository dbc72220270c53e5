/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection states, stream and end: see cm_conn.h. */
#include "cm/conn/cm_conn.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "cm/conn/cm_accept.h"
#include "cm/conn/cm_attempt.h"
#include "cm/conn/cm_dgram.h"
#include "cm/conn/cm_pending.h"
#include "cm/conn/cm_pkt.h"
#include "cm/conn/cm_req.h"
#include "cm/conn/cm_unused.h"
#include "cm/ep/cm_ended.h"
#include "cm/ep/cm_ep.h"
#include "cm/ep/cm_peer.h"
#include "util/clock.h"
#include "util/log.h"

static const uint8_t cm_conn_next[CM_CONN_STATE_CNT] = {
	[CM_CONN_NEW] = CM_STATE_BIT(CM_CONN_HELLO_SENT) | CM_STATE_BIT(CM_CONN_WELCOME_SENT) |
			CM_STATE_BIT(CM_CONN_DOWN),
	[CM_CONN_HELLO_SENT] = CM_STATE_BIT(CM_CONN_UP) | CM_STATE_BIT(CM_CONN_DOWN),
	[CM_CONN_WELCOME_SENT] = CM_STATE_BIT(CM_CONN_UP) | CM_STATE_BIT(CM_CONN_DOWN),
	[CM_CONN_UP] = CM_STATE_BIT(CM_CONN_DOWN),
	[CM_CONN_DOWN] = 0,
};

static const char *const cm_conn_names[CM_CONN_STATE_CNT] = {
	[CM_CONN_NEW] = "new",
	[CM_CONN_HELLO_SENT] = "hello_sent",
	[CM_CONN_WELCOME_SENT] = "welcome_sent",
	[CM_CONN_UP] = "up",
	[CM_CONN_DOWN] = "down",
};

const struct cm_states cm_conn_states = { CM_CONN_STATE_CNT, cm_conn_names, cm_conn_next };

static void cm_conn_set_state(struct cm_conn *conn, enum cm_conn_state state)
{
	assert(cm_state_may(&cm_conn_states, conn->state, state));
	UTIL_DBG(EP_CTRL, "conn %p: %s -> %s\n", (void *)conn, cm_conn_names[conn->state],
		 cm_conn_names[state]);
	if (conn->is_dgram && state == CM_CONN_WELCOME_SENT)
		cm_pending_add(conn, util_clock_ns());
	if (conn->is_dgram && conn->state == CM_CONN_WELCOME_SENT)
		cm_pending_remove(conn);
	if (conn->is_dgram && state == CM_CONN_DOWN &&
	    (conn->state == CM_CONN_NEW || conn->state == CM_CONN_WELCOME_SENT))
		cm_pending_expire(conn);
	if (conn->accepted_ns && state == CM_CONN_DOWN)
		cm_ended_add(conn->cep, &conn->via.to, conn->peer_inc, conn->nonce,
			     conn->accepted_ns, util_clock_ns());
	if (conn->is_dgram && state == CM_CONN_UP) {
		conn->cep->watched_cnt++;
		cm_unused_add(conn);
	}
	if (conn->is_dgram && conn->state == CM_CONN_UP) {
		conn->cep->watched_cnt--;
		cm_unused_end(conn);
	}
	conn->state = state;
}

static void cm_conn_on_ready(struct cm_src *src, uint32_t events)
{
	cm_conn_poll(UTIL_CONTAINER_OF(src, struct cm_conn, src));
}

const char *cm_conn_late_text(const struct cm_conn *conn)
{
	return conn->path & CM_PATHS_RINGS
		       ? "the peer replied, but did not finish the handshake in time: it is "
			 "stopped, or the memory for the rings took too long at one of the ends; "
			 "lower FI_COPYRPC_RING_SIZE or FI_COPYRPC_MEM, or raise "
			 "FI_COPYRPC_PEER_TIMEOUT, in both"
		       : "the peer replied, but did not finish the handshake in time";
}

static void cm_conn_on_deadline(struct cm_timer *timer)
{
	struct cm_conn *conn = UTIL_CONTAINER_OF(timer, struct cm_conn, timer);

	cm_conn_end(conn, -FI_ETIMEDOUT, cm_conn_late_text(conn));
}

static struct cm_conn *cm_conn_alloc(struct cm_peer *peer, bool is_dgram,
				     const struct cm_route *via, uint64_t nonce, uint64_t peer_inc)
{
	struct cm_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	cm_src_init(&conn->src, cm_conn_on_ready);
	util_list_init(&conn->pending_link);
	cm_timer_init(&conn->timer, is_dgram ? cm_dgram_on_timer : cm_conn_on_deadline);
	conn->is_dgram = is_dgram;
	conn->cep = peer->cep;
	conn->node = peer->cep->node;
	conn->peer = peer;
	conn->nonce = nonce;
	conn->peer_inc = peer_inc;
	conn->addr = peer->first;
	conn->via = *via;
	return conn;
}

int cm_conn_open(struct cm_peer *peer, int fd, const struct cm_route *via, uint64_t nonce,
		 uint64_t peer_inc, struct cm_conn **out, struct cm_params *params)
{
	struct cm_ep *cep = peer->cep;
	struct cm_conn *conn;
	int ret = 0;

	if (peer->conn)
		return -FI_EAGAIN;
	conn = cm_conn_alloc(peer, fd < 0, via, nonce, peer_inc);
	if (!conn)
		return -FI_ENOMEM;
	conn->path = params->path;
	conn->pid = fd < 0 ? 0 : cm_fd_peer_pid(fd);
	if (!cm_ep_admits(cep, &conn->via.to, peer_inc))
		ret = -FI_EACCES;
	if (!ret && fd >= 0)
		ret = cm_src_open(cep->node, &conn->src, fd);
	if (ret)
		goto err_defer_free;
	ret = cep->ops->prepare(cep->ctx, conn, params, &conn->user);
	if (ret)
		goto err_release;
	util_list_push_back(&cep->conns, &conn->cep_link);
	peer->conn = conn;
	*out = conn;
	return 0;

err_release:
	cm_params_close_fds(params);
	cm_src_release(cep->node, &conn->src);
err_defer_free:
	cm_node_defer_free(cep->node, &conn->zombie, conn);
	return ret;
}

static int cm_conn_send_dgram(struct cm_conn *conn, struct wire_cm_pkt *pkt,
			      enum cm_conn_state state, uint64_t deadline_ns)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = cm_pkt_seal(conn->cep, &conn->via, pkt, buf);
	int ret = cm_dgram_send(conn, buf, len, deadline_ns);

	if (!ret)
		cm_conn_set_state(conn, state);
	return ret;
}

int cm_conn_send_params(struct cm_conn *conn, struct wire_cm_pkt *pkt,
			const struct cm_params *params, enum cm_conn_state state,
			uint64_t deadline_ns)
{
	struct wire_cm_params *wire =
		pkt->type == WIRE_CM_HELLO ? &pkt->hello.params : &pkt->welcome.params;
	int ret = cm_params_to_wire(params, wire);

	if (conn->features & WIRE_CM_FEATURE_IDENTITY)
		cm_identity_to_wire(&conn->cep->self, wire);
	if (!ret && conn->is_dgram && params->dev.fd_cnt)
		ret = -FI_EINVAL; /* a datagram carries no descriptors */
	if (ret)
		return ret;
	pkt->nonce = conn->nonce;
	pkt->dst_inc = conn->peer_inc;
	if (conn->is_dgram)
		return cm_conn_send_dgram(conn, pkt, state, deadline_ns);
	ret = cm_pkt_send(conn->cep, conn->src.fd, &conn->via, pkt, params);
	if (ret)
		return ret;
	cm_conn_set_state(conn, state);
	cm_node_arm(conn->node, &conn->timer, deadline_ns);
	return 0;
}

int cm_conn_establish(struct cm_conn *conn, const struct wire_cm_params *wire,
		      const struct cm_fd_msg *msg)
{
	struct cm_params params;
	int ret = wire->path == conn->path ? cm_params_check_fds(wire, msg) : -FI_EINVAL;

	if (ret)
		return ret;
	cm_params_from_wire(wire, msg, &params);
	params.dev.pid = conn->pid;
	conn->has_identity = cm_identity_from_wire(wire, &conn->identity);
	return conn->cep->ops->establish(conn->cep->ctx, conn, conn->user, &params);
}

int cm_conn_send(struct cm_conn *conn, enum wire_cm_type type)
{
	struct wire_cm_pkt pkt = { .type = type, .nonce = conn->nonce, .dst_inc = conn->peer_inc };

	return cm_pkt_send(conn->cep, conn->src.fd, &conn->via, &pkt, NULL);
}

void cm_conn_refuse(struct cm_conn *conn, int err, const char *text)
{
	struct wire_cm_pkt pkt;

	cm_pkt_nak(&pkt, conn->nonce, conn->peer_inc, err, text);
	conn->cep->stats->tx_naks++;
	cm_pkt_send(conn->cep, conn->src.fd, &conn->via, &pkt, NULL);
}

void cm_conn_up(struct cm_conn *conn)
{
	struct cm_ep *cep = conn->cep;
	char text[CM_ADDR_TEXT_MAX];
	bool requested;

	cm_conn_set_state(conn, CM_CONN_UP);
	cm_node_disarm(cep->node, &conn->timer);
	if (conn->is_dgram)
		cm_dgram_watch(conn);
	UTIL_INFO(EP_CTRL, "connected to %s, incarnation %016llx\n",
		  cm_addr_print(&conn->addr, text), (unsigned long long)conn->peer_inc);
	requested = cm_req_complete(conn->peer);
	if (cep->on_result)
		cep->on_result(cep, 0);
	cep->ops->up(cep->ctx, conn, conn->user, requested);
}

/* Closes the stream and timers, without notifying the peer or the engine. */
static void cm_conn_shut(struct cm_conn *conn)
{
	cm_conn_set_state(conn, CM_CONN_DOWN);
	cm_node_disarm(conn->cep->node, &conn->timer);
	cm_src_close(conn->cep->node, &conn->src);
	cm_dgram_stop_resend(conn);
	conn->peer->conn = NULL;
	conn->peer = NULL;
}

void cm_conn_down(struct cm_conn *conn, int err)
{
	struct cm_ep *cep = conn->cep;
	char text[CM_ADDR_TEXT_MAX];

	if (conn->state == CM_CONN_UP)
		UTIL_INFO(EP_CTRL, "disconnected from %s: %s\n", cm_addr_print(&conn->addr, text),
			  fi_strerror(-err));
	cm_conn_shut(conn);
	cep->ops->down(cep->ctx, conn, conn->user, err);
}

void cm_conn_end(struct cm_conn *conn, int err, const char *why)
{
	struct cm_peer *peer = conn->peer;

	cm_conn_down(conn, err);
	if (peer->req)
		cm_req_retry(peer, err, why);
	cm_peer_settle(peer);
}

void cm_conn_on_nak(struct cm_conn *conn, const struct wire_cm_pkt *pkt)
{
	struct cm_peer *peer = conn->peer;
	uint32_t path = conn->path;

	cm_conn_down(conn, -(int)pkt->nak.err);
	cm_req_refused(peer, path, pkt);
	cm_peer_settle(peer);
}

/* Handles a packet on the stream of an established conn. */
static void cm_conn_on_pkt_up(struct cm_conn *conn, const struct wire_cm_pkt *pkt)
{
	if (pkt->type == WIRE_CM_BYE)
		cm_conn_end(conn, -FI_ESHUTDOWN, "the peer closed the connection");
	else if (pkt->type == WIRE_CM_BROKEN)
		cm_conn_end(conn, -FI_EIO, "the connection failed at the peer");
	else
		cm_conn_end(conn, -FI_EIO, "the peer violated the handshake protocol");
}

static void cm_conn_on_msg(struct cm_conn *conn, const struct cm_fd_msg *msg)
{
	struct cm_ep *cep = conn->cep;
	struct wire_cm_pkt pkt;

	if (cm_pkt_open(cep, &conn->via, msg->buf, msg->len, &pkt))
		return;
	if (pkt.nonce != conn->nonce || pkt.src_inc != conn->peer_inc || pkt.dst_inc != cep->inc) {
		cep->stats->rx_stale++;
		return;
	}
	switch (conn->state) {
	case CM_CONN_HELLO_SENT: cm_attempt_on_pkt(conn, &pkt, msg); break;
	case CM_CONN_WELCOME_SENT: cm_accept_on_pkt(conn, &pkt); break;
	case CM_CONN_UP: cm_conn_on_pkt_up(conn, &pkt); break;
	default: break;
	}
}

void cm_conn_poll(struct cm_conn *conn)
{
	struct cm_fd_msg msg;
	int ret;

	while (conn->src.fd >= 0) {
		ret = cm_fd_recv(conn->src.fd, &msg);
		if (ret == -FI_EAGAIN)
			return;
		if (!ret) {
			cm_conn_end(conn, -FI_ECONNRESET,
				    "the peer ended the connection unexpectedly");
			return;
		}
		cm_conn_on_msg(conn, &msg);
		cm_fd_drop(&msg);
	}
}

/** Sends BYE or BROKEN. A conn without a stream needs BYE to end a handshake, too. */
static void cm_conn_bye(struct cm_conn *conn)
{
	if (conn->state == CM_CONN_UP || (conn->is_dgram && conn->state != CM_CONN_DOWN))
		cm_conn_send(conn, conn->is_broken ? WIRE_CM_BROKEN : WIRE_CM_BYE);
}

void cm_conn_orphan(struct cm_conn *conn)
{
	cm_conn_bye(conn);
	if (conn->state != CM_CONN_DOWN)
		cm_conn_shut(conn);
	conn->cep = NULL;
}

void cm_conn_addr(const struct cm_conn *conn, struct sockaddr_storage *addr)
{
	union cm_addr list[2] = { conn->addr, conn->via.to };

	cm_addr_export_name(list, cm_addr_is_equal(&list[0], &list[1]) ? 1 : 2, addr);
}

uint32_t cm_conn_route(const struct cm_conn *conn, struct sockaddr_storage *peer)
{
	cm_addr_export(&conn->via.to, peer);
	return conn->via.sock;
}

bool cm_conn_is_authentic(const struct cm_conn *conn)
{
	return conn->cep->node->key.is_set;
}

uint64_t cm_conn_incarnation(const struct cm_conn *conn)
{
	return conn->peer_inc;
}

pid_t cm_conn_pid(const struct cm_conn *conn)
{
	return conn->pid;
}

const struct util_job_name *cm_conn_identity(const struct cm_conn *conn)
{
	return conn->has_identity ? &conn->identity : NULL;
}

static uint32_t cm_conn_better_locked(const struct cm_conn *conn, uint32_t paths)
{
	const struct cm_ep *cep = conn->cep;
	uint32_t sound;

	if (!cep || conn->state != CM_CONN_UP || !(conn->features & WIRE_CM_FEATURE_FAILBACK))
		return 0;
	sound = cm_ep_sound_paths(cep, cep->paths.all);
	return paths & cm_peer_usable_paths(conn->peer, conn->peer_inc, sound);
}

uint32_t cm_conn_better(const struct cm_conn *conn, uint32_t paths)
{
	struct cm_node *node = __atomic_load_n(&conn->node, __ATOMIC_ACQUIRE);

	if (!node)
		return 0;
	cm_node_lock(node);
	paths = cm_conn_better_locked(conn, paths);
	cm_node_unlock(node);
	return paths;
}

bool cm_conn_resizes(const struct cm_conn *conn)
{
	struct cm_node *node = __atomic_load_n(&conn->node, __ATOMIC_ACQUIRE);
	bool ret;

	if (!node)
		return false;
	cm_node_lock(node);
	ret = conn->cep && conn->state == CM_CONN_UP && (conn->features & WIRE_CM_FEATURE_ROOM);
	cm_node_unlock(node);
	return ret;
}

static void cm_conn_put_locked(struct cm_conn *conn)
{
	struct cm_peer *peer = conn->peer;

	cm_conn_bye(conn);
	if (conn->state != CM_CONN_DOWN)
		cm_conn_shut(conn);
	if (peer && peer->req)
		cm_req_retry(peer, -FI_ECANCELED, "the connection was closed at this end");
	if (peer)
		cm_peer_settle(peer);
}

void cm_conn_break(struct cm_conn *conn, bool came)
{
	struct cm_node *node = __atomic_load_n(&conn->node, __ATOMIC_ACQUIRE);

	if (!node)
		return;
	cm_node_lock(node);
	conn->is_broken = conn->state == CM_CONN_UP;
	if (conn->is_broken && conn->path & (WIRE_CM_PATH_NIC | WIRE_CM_PATH_UD))
		cm_peer_note_failure(conn->peer, conn->peer_inc, conn->path, came);
	cm_node_unlock(node);
}

void cm_conn_put(struct cm_conn *conn)
{
	struct cm_node *node = __atomic_load_n(&conn->node, __ATOMIC_ACQUIRE);

	if (!node) {
		free(conn);
		return;
	}
	cm_node_lock(node);
	if (conn->cep) {
		cm_conn_put_locked(conn);
		cm_pending_put(conn);
	}
	util_list_remove(&conn->cep_link);
	cm_node_defer_free(node, &conn->zombie, conn);
	cm_node_unlock(node);
}
