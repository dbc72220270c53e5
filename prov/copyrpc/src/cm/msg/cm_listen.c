/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Listener: accepting streams, reporting requests, accept and reject. See cm_listen.h. */
#include "cm/msg/cm_listen.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm/base/cm_fd.h"
#include "cm/base/cm_mac.h"
#include "cm/ep/cm_ep.h"
#include "cm/msg/cm_connreq.h"
#include "util/clock.h"
#include "util/log.h"

#define CM_LISTEN_BURST 64

static void cm_listen_pause(struct cm_listener *listener)
{
	if (listener->is_paused)
		return;
	listener->is_paused = true;
	cm_src_pause(listener->node, &listener->src);
}

static void cm_listen_resume(struct cm_listener *listener)
{
	if (!listener->is_paused || listener->timer.is_armed ||
	    listener->waiting_cnt >= listener->backlog)
		return;
	listener->is_paused = false;
	cm_src_resume(listener->node, &listener->src);
}

static void cm_listen_on_timer(struct cm_timer *timer)
{
	cm_listen_resume(UTIL_CONTAINER_OF(timer, struct cm_listener, timer));
}

/* Ends a pause after a request has left, unless the pause is for lack of descriptors. */
static void cm_listen_end_pause(struct cm_listener *listener)
{
	if (!listener->pause_ms)
		cm_node_disarm(listener->node, &listener->timer);
	cm_listen_resume(listener);
}

void cm_listen_remove(struct cm_connreq *connreq)
{
	struct cm_listener *listener = connreq->listener;

	util_list_remove(&connreq->link);
	connreq->listener = NULL;
	if (connreq->is_held)
		listener->waiting_cnt--;
	else
		listener->pending_cnt--;
	cm_listen_end_pause(listener);
}

/*
 * Returns whether one more stream may be pending; ends the oldest if that is old enough. Otherwise
 * pauses accepting until then: many correct endpoints may connect at once.
 */
static bool cm_listen_make_room(struct cm_listener *listener)
{
	struct cm_connreq *oldest;
	uint64_t until;

	if (listener->pending_cnt < CM_LISTEN_PENDING_MAX)
		return true;
	oldest = UTIL_CONTAINER_OF(listener->pending.next, struct cm_connreq, link);
	until = oldest->start_ns + CM_LISTEN_EVICT_MS * UTIL_NS_PER_MS;
	if (util_clock_ns() >= until) {
		cm_connreq_end(oldest);
		return true;
	}
	cm_listen_pause(listener);
	cm_node_arm(listener->node, &listener->timer, until);
	return false;
}

static void cm_listen_add_pending(struct cm_listener *listener, int fd)
{
	struct wire_connreq_pkt greet = { .type = WIRE_CONNREQ_GREET };
	struct cm_connreq *connreq;

	connreq = cm_connreq_new(listener->node, fd, false);
	if (!connreq)
		return;
	connreq->listener = listener;
	util_list_push_back(&listener->pending, &connreq->link);
	listener->pending_cnt++;
	connreq->stream.nonce = cm_mac_random();
	cm_connreq_arm(connreq, CM_LISTEN_WAIT_MS, -FI_ETIMEDOUT);
	if (cm_stream_send(listener->node, &connreq->stream, &greet))
		cm_connreq_end(connreq);
}

static void cm_listen_on_accept(struct cm_src *src, uint32_t events)
{
	struct cm_listener *listener = UTIL_CONTAINER_OF(src, struct cm_listener, src);

	for (unsigned i = 0; i < CM_LISTEN_BURST; i++) {
		int fd;

		if (listener->is_paused || !cm_listen_make_room(listener))
			return;
		fd = cm_fd_accept(src->fd);
		if (fd == -FI_EAGAIN)
			return;
		if (fd < 0) {
			listener->is_paused = true;
			cm_src_back_off(listener->node, src, &listener->timer, &listener->pause_ms,
					fd);
			return;
		}
		listener->pause_ms = 0;
		cm_listen_add_pending(listener, fd);
	}
}

static int cm_listen_report(struct cm_listener *listener, struct cm_connreq *connreq)
{
	struct cm_connreq_info info = { .data = connreq->data, .data_len = connreq->data_len };
	union cm_addr local, remote;
	int ret = cm_stream_names(&connreq->stream, &local, &remote);

	if (ret)
		return ret;
	cm_addr_export(&local, &info.local);
	cm_addr_export(&connreq->addr, &info.peer);
	return listener->on_request(listener->ctx, connreq, &info);
}

static void cm_listen_on_connreq(struct cm_connreq *connreq, const struct wire_connreq_pkt *pkt)
{
	struct cm_listener *listener = connreq->listener;
	int ret;

	cm_addr_from_wire(&pkt->addr, &connreq->addr);
	connreq->inc = pkt->inc;
	connreq->data_len = pkt->data_len;
	memcpy(connreq->data, pkt->data, pkt->data_len);
	ret = cm_listen_report(listener, connreq);
	if (ret) {
		cm_connreq_send_refuse(connreq, ret, NULL, 0);
		cm_connreq_end(connreq);
		return;
	}
	cm_connreq_set_state(connreq, CM_CONNREQ_WAITING);
	connreq->is_held = true;
	util_list_remove(&connreq->link);
	util_list_push_back(&listener->waiting, &connreq->link);
	listener->pending_cnt--;
	if (++listener->waiting_cnt >= listener->backlog)
		cm_listen_pause(listener);
	else
		cm_listen_end_pause(listener);
	cm_connreq_arm_app(connreq);
}

/* Handles the end of a stream. An accepted request gets a grace time: READY may be on its way. */
static void cm_listen_on_end(struct cm_connreq *connreq, int err)
{
	if (connreq->state == CM_CONNREQ_ACCEPTED && err == -FI_ECONNRESET) {
		cm_src_pause(connreq->node, &connreq->stream.src);
		cm_connreq_arm(connreq, CM_CONNREQ_GRACE_MS, -FI_ECONNABORTED);
	} else {
		cm_connreq_fail(connreq, err == -FI_EINVAL ? -FI_EIO : err, NULL, 0,
				"the connecting endpoint ended");
	}
}

void cm_listen_on_ready(struct cm_connreq *connreq)
{
	struct wire_connreq_pkt pkt;
	int ret = cm_stream_recv(connreq->node, &connreq->stream, &pkt);

	if (ret == -FI_EAGAIN)
		return;
	if (ret)
		cm_listen_on_end(connreq, ret);
	else if (pkt.type == WIRE_CONNREQ_REQUEST && connreq->state == CM_CONNREQ_PENDING &&
		 !pkt.features)
		cm_listen_on_connreq(connreq, &pkt);
	else if (pkt.type == WIRE_CONNREQ_REFUSE)
		cm_connreq_fail(connreq, -(int)pkt.err, NULL, 0,
				"the connecting endpoint could not connect");
	else
		cm_connreq_fail(connreq, -FI_EIO, NULL, 0,
				"the connecting endpoint violated the protocol");
}

static int cm_connreq_accept_locked(struct cm_connreq *connreq, struct cm_ep *cep, const void *data,
				    size_t len)
{
	if (connreq->state != CM_CONNREQ_WAITING || cep->connreq)
		return -FI_ECONNABORTED;
	cm_ep_admit(cep, &connreq->addr, connreq->inc);
	if (cm_connreq_send_self(connreq, WIRE_CONNREQ_ACCEPT, cep, data, len)) {
		cm_ep_admit(cep, NULL, 0);
		return -FI_ECONNABORTED;
	}
	if (connreq->listener)
		cm_listen_remove(connreq);
	connreq->is_held = false;
	cm_connreq_attach(connreq, cep);
	cm_connreq_set_state(connreq, CM_CONNREQ_ACCEPTED);
	cm_connreq_arm(connreq, connreq->node->peer_timeout_ns / UTIL_NS_PER_MS, -FI_ETIMEDOUT);
	return 0;
}

int cm_connreq_accept(struct cm_connreq *connreq, struct cm_ep *cep, const void *data, size_t len)
{
	struct cm_node *node = connreq->node;
	int ret;

	cm_node_lock(node);
	ret = cm_connreq_accept_locked(connreq, cep, data, len);
	cm_node_unlock(node);
	return ret;
}

void cm_connreq_reject(struct cm_connreq *connreq, int err, const void *data, size_t len)
{
	struct cm_node *node = connreq->node;

	cm_node_lock(node);
	if (connreq->state == CM_CONNREQ_WAITING)
		cm_connreq_send_refuse(connreq, err, data, len);
	if (connreq->listener)
		cm_listen_remove(connreq);
	connreq->is_held = false;
	cm_connreq_end(connreq);
	cm_node_unlock(node);
}

static int cm_listener_start(struct cm_listener *listener)
{
	int fd = cm_stream_listen(&listener->addr, CM_LISTEN_QUEUE);
	int ret;

	if (fd < 0)
		return fd;
	cm_node_lock(listener->node);
	ret = cm_src_open(listener->node, &listener->src, fd);
	cm_node_unlock(listener->node);
	if (ret)
		close(fd);
	return ret;
}

int cm_listener_open(struct cm_node *node, const struct sockaddr *addr, int backlog,
		     cm_listener_request_fn on_request, void *ctx, struct cm_listener **out)
{
	struct cm_listener *listener = calloc(1, sizeof(*listener));
	char text[CM_ADDR_TEXT_MAX];
	int ret;

	if (!listener)
		return -FI_ENOMEM;
	listener->node = node;
	listener->backlog = backlog > 0 ? (uint32_t)backlog : 1;
	listener->on_request = on_request;
	listener->ctx = ctx;
	cm_src_init(&listener->src, cm_listen_on_accept);
	cm_timer_init(&listener->timer, cm_listen_on_timer);
	util_list_init(&listener->pending);
	util_list_init(&listener->waiting);
	ret = cm_addr_import(addr, &listener->addr);
	if (!ret)
		ret = cm_listener_start(listener);
	if (ret) {
		UTIL_WARN(EP_CTRL, "cannot listen at %s: %s; choose another address or port\n",
			  cm_addr_print(&listener->addr, text), fi_strerror(-ret));
		free(listener);
		return ret;
	}
	*out = listener;
	return 0;
}

void cm_listener_addr(const struct cm_listener *listener, struct sockaddr_storage *addr)
{
	union cm_addr own = listener->addr;

	cm_addr_resolve(&own);
	cm_addr_export(&own, addr);
}

void cm_listener_close(struct cm_listener *listener)
{
	struct cm_node *node = listener->node;
	struct util_list *first;

	cm_node_lock(node);
	listener->is_paused = true; /* requests that leave must not resume accepting */
	cm_node_disarm(node, &listener->timer);
	cm_src_close(node, &listener->src);
	while ((first = util_list_first(&listener->pending)))
		cm_connreq_end(UTIL_CONTAINER_OF(first, struct cm_connreq, link));
	while ((first = util_list_pop(&listener->waiting)))
		UTIL_CONTAINER_OF(first, struct cm_connreq, link)->listener = NULL;
	cm_node_wait_pass(node);
	cm_node_unlock(node);
	free(listener);
}
