/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Listeners, their guests and what the application answers: see cm_listen.h. */
#include "cm/dial/cm_listen.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "cm/cm_agent.h"
#include "cm/dial/cm_call.h"
#include "cm/base/cm_mac.h"
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

/* Nothing can be accepted now: the callers stay in the kernel's queue for a while. */
static void cm_listen_back_off(struct cm_listener *listener, int err)
{
	uint32_t ms = listener->pause_ms ? 2 * listener->pause_ms : CM_LISTEN_PAUSE_MS;

	if (!listener->pause_ms)
		UTIL_WARN_SELDOM(EP_CTRL, "a caller cannot be let in (%s): raise `ulimit -n`\n",
				 fi_strerror(-err));
	listener->pause_ms = ms < CM_LISTEN_PAUSE_MAX ? ms : CM_LISTEN_PAUSE_MAX;
	cm_listen_pause(listener);
	cm_node_arm(listener->node, &listener->timer,
		    util_clock_ns() + listener->pause_ms * UTIL_NS_PER_MS);
}

static void cm_listen_on_timer(struct cm_timer *timer)
{
	cm_listen_resume(UTIL_CONTAINER_OF(timer, struct cm_listener, timer));
}

/* Somebody has gone: the pause is over, unless it is one for want of descriptors. */
static void cm_listen_has_room(struct cm_listener *listener)
{
	if (!listener->pause_ms)
		cm_node_disarm(listener->node, &listener->timer);
	cm_listen_resume(listener);
}

void cm_listen_leave(struct cm_call *call)
{
	struct cm_listener *listener = call->listener;

	util_list_remove(&call->link);
	call->listener = NULL;
	/* A call that waits is held, or it was refused on the spot. */
	if (call->is_held)
		listener->waiting_cnt--;
	else
		listener->guest_cnt--;
	cm_listen_has_room(listener);
}

/*
 * Is there room for one more? If not, the oldest has to go once it has had a moment to speak:
 * hundreds of honest callers may come at once. Until then the others wait in the kernel's queue.
 */
static bool cm_listen_make_room(struct cm_listener *listener)
{
	struct cm_call *oldest;
	uint64_t until;

	if (listener->guest_cnt < CM_LISTEN_GUESTS)
		return true;
	oldest = UTIL_CONTAINER_OF(listener->guests.next, struct cm_call, link);
	until = oldest->start_ns + CM_LISTEN_HURRY_MS * UTIL_NS_PER_MS;
	if (util_clock_ns() >= until) {
		cm_call_end(oldest);
		return true;
	}
	cm_listen_pause(listener);
	cm_node_arm(listener->node, &listener->timer, until);
	return false;
}

static void cm_listen_add_guest(struct cm_listener *listener, int fd)
{
	struct wire_dial_pkt greet = { .type = WIRE_DIAL_GREET };
	struct cm_call *call;

	call = cm_call_new(listener->node, fd, false);
	if (!call)
		return;
	call->listener = listener;
	util_list_push_back(&listener->guests, &call->link);
	listener->guest_cnt++;
	call->stream.nonce = cm_mac_random();
	cm_call_give(call, CM_LISTEN_WAIT_MS, -FI_ETIMEDOUT);
	if (cm_stream_send(listener->node, &call->stream, &greet))
		cm_call_end(call);
}

static void cm_listen_on_accept(struct cm_src *src, uint32_t events)
{
	struct cm_listener *listener = UTIL_CONTAINER_OF(src, struct cm_listener, src);

	(void)events;
	for (unsigned i = 0; i < CM_LISTEN_BURST; i++) {
		int fd;

		if (listener->is_paused || !cm_listen_make_room(listener))
			return;
		fd = cm_stream_accept(src->fd);
		if (fd == -FI_EAGAIN)
			return;
		if (fd < 0) {
			cm_listen_back_off(listener, fd);
			return;
		}
		listener->pause_ms = 0;
		cm_listen_add_guest(listener, fd);
	}
}

static int cm_listen_report(struct cm_listener *listener, struct cm_call *call)
{
	struct cm_call_info info = { .data = call->data, .data_len = call->data_len };
	union cm_addr local, remote;
	int ret = cm_stream_names(&call->stream, &local, &remote);

	if (ret)
		return ret;
	cm_addr_export(&local, &info.local);
	cm_addr_export(&call->addr, &info.peer);
	return listener->asked(listener->ctx, call, &info);
}

static void cm_listen_on_call(struct cm_call *call, const struct wire_dial_pkt *pkt)
{
	struct cm_listener *listener = call->listener;
	int ret;

	cm_addr_from_wire(&pkt->addr, &call->addr);
	call->inc = pkt->inc;
	call->data_len = pkt->data_len;
	memcpy(call->data, pkt->data, pkt->data_len);
	ret = cm_listen_report(listener, call);
	if (ret) {
		cm_call_say_refuse(call, ret, NULL, 0);
		cm_call_end(call);
		return;
	}
	cm_call_set_state(call, CM_CALL_WAITS);
	call->is_held = true;
	util_list_remove(&call->link);
	util_list_push_back(&listener->waiting, &call->link);
	listener->guest_cnt--;
	if (++listener->waiting_cnt >= listener->backlog)
		cm_listen_pause(listener);
	else
		cm_listen_has_room(listener);
	cm_call_give(call, call->node->peer_timeout_ns / UTIL_NS_PER_MS, -FI_ETIMEDOUT);
}

/* What a call that is connected, or is to be, may still hear: why not, or nothing. */
static void cm_listen_on_end(struct cm_call *call, int err)
{
	if (call->state == CM_CALL_MEET && err == -FI_ECONNRESET) {
		cm_src_pause(call->node, &call->stream.src);
		cm_call_give(call, CM_CALL_GRACE_MS, -FI_ECONNABORTED);
	} else {
		cm_call_fail(call, err == -FI_EINVAL ? -FI_EIO : err, NULL, 0,
			     "the caller went away");
	}
}

void cm_listen_on_ready(struct cm_call *call)
{
	struct wire_dial_pkt pkt;
	int ret = cm_stream_recv(call->node, &call->stream, &pkt);

	if (ret == -FI_EAGAIN)
		return;
	if (ret)
		cm_listen_on_end(call, ret);
	else if (pkt.type == WIRE_DIAL_CALL && call->state == CM_CALL_GUEST && !pkt.features)
		cm_listen_on_call(call, &pkt);
	else if (pkt.type == WIRE_DIAL_REFUSE)
		cm_call_fail(call, -(int)pkt.err, NULL, 0, "the caller could not connect");
	else
		cm_call_fail(call, -FI_EIO, NULL, 0, "the caller broke the rules");
}

static int cm_call_accept_locked(struct cm_call *call, struct cm_agent *agent, const void *data,
				 size_t len)
{
	if (call->state != CM_CALL_WAITS || agent->call)
		return -FI_ECONNABORTED;
	cm_agent_admit(agent, &call->addr, call->inc);
	if (cm_call_say_self(call, WIRE_DIAL_ACCEPT, agent, data, len)) {
		cm_agent_admit(agent, NULL, 0);
		return -FI_ECONNABORTED;
	}
	if (call->listener)
		cm_listen_leave(call);
	call->is_held = false;
	call->agent = agent;
	agent->call = call;
	cm_call_set_state(call, CM_CALL_MEET);
	cm_call_give(call, call->node->peer_timeout_ns / UTIL_NS_PER_MS, -FI_ETIMEDOUT);
	return 0;
}

int cm_call_accept(struct cm_call *call, struct cm_agent *agent, const void *data, size_t len)
{
	struct cm_node *node = call->node;
	int ret;

	cm_node_lock(node);
	ret = cm_call_accept_locked(call, agent, data, len);
	cm_node_unlock(node);
	return ret;
}

void cm_call_reject(struct cm_call *call, int err, const void *data, size_t len)
{
	struct cm_node *node = call->node;

	cm_node_lock(node);
	if (call->state == CM_CALL_WAITS)
		cm_call_say_refuse(call, err, data, len);
	if (call->listener)
		cm_listen_leave(call);
	call->is_held = false;
	cm_call_end(call);
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
	return ret;
}

int cm_listener_open(struct cm_node *node, const struct sockaddr *addr, int backlog,
		     cm_listener_asked_fn asked, void *ctx, struct cm_listener **out)
{
	struct cm_listener *listener = calloc(1, sizeof(*listener));
	char text[CM_ADDR_TEXT_MAX];
	int ret;

	if (!listener)
		return -FI_ENOMEM;
	listener->node = node;
	listener->backlog = backlog > 0 ? (uint32_t)backlog : 1;
	listener->asked = asked;
	listener->ctx = ctx;
	cm_src_init(&listener->src, cm_listen_on_accept);
	cm_timer_init(&listener->timer, cm_listen_on_timer);
	util_list_init(&listener->guests);
	util_list_init(&listener->waiting);
	ret = cm_addr_import(addr, &listener->addr);
	if (!ret)
		ret = cm_listener_start(listener);
	if (ret) {
		UTIL_WARN(EP_CTRL, "no listener at %s: %s; choose another address or port\n",
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
	listener->is_paused = true; /* those who leave open no door */
	cm_node_disarm(node, &listener->timer);
	cm_src_close(node, &listener->src);
	while ((first = util_list_first(&listener->guests)))
		cm_call_end(UTIL_CONTAINER_OF(first, struct cm_call, link));
	while ((first = util_list_pop(&listener->waiting)))
		UTIL_CONTAINER_OF(first, struct cm_call, link)->listener = NULL;
	cm_node_wait_pass(node);
	cm_node_unlock(node);
	free(listener);
}
