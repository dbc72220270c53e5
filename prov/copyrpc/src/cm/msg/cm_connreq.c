/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* States, packets and end of a connection request: see cm_connreq.h. */
#include "cm/msg/cm_connreq.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm/conn/cm_connect.h"
#include "cm/ep/cm_ep.h"
#include "util/clock.h"
#include "util/log.h"

static_assert(CM_MSG_DATA_MAX == WIRE_CONNREQ_DATA_MAX, "data fits a packet");

static const uint8_t cm_connreq_next[CM_CONNREQ_STATE_CNT] = {
	[CM_CONNREQ_CONNECTING] =
		CM_STATE_BIT(CM_CONNREQ_REQUESTED) | CM_STATE_BIT(CM_CONNREQ_ENDED),
	[CM_CONNREQ_REQUESTED] = CM_STATE_BIT(CM_CONNREQ_ACCEPTED) | CM_STATE_BIT(CM_CONNREQ_ENDED),
	[CM_CONNREQ_PENDING] = CM_STATE_BIT(CM_CONNREQ_WAITING) | CM_STATE_BIT(CM_CONNREQ_ENDED),
	[CM_CONNREQ_WAITING] = CM_STATE_BIT(CM_CONNREQ_ACCEPTED) | CM_STATE_BIT(CM_CONNREQ_ENDED),
	[CM_CONNREQ_ACCEPTED] = CM_STATE_BIT(CM_CONNREQ_ENDED),
	[CM_CONNREQ_ENDED] = 0,
};

static const char *const cm_connreq_names[CM_CONNREQ_STATE_CNT] = {
	[CM_CONNREQ_CONNECTING] = "connecting", [CM_CONNREQ_REQUESTED] = "requested",
	[CM_CONNREQ_PENDING] = "pending",       [CM_CONNREQ_WAITING] = "waiting",
	[CM_CONNREQ_ACCEPTED] = "accepted",     [CM_CONNREQ_ENDED] = "ended",
};

const struct cm_states cm_connreq_states = { CM_CONNREQ_STATE_CNT, cm_connreq_names,
					     cm_connreq_next };

void cm_connreq_set_state(struct cm_connreq *connreq, enum cm_connreq_state state)
{
	assert(cm_state_may(&cm_connreq_states, connreq->state, state));
	UTIL_DBG(EP_CTRL, "connection request %p: %s -> %s\n", (void *)connreq,
		 cm_connreq_names[connreq->state], cm_connreq_names[state]);
	connreq->state = state;
}

static void cm_connreq_on_timer(struct cm_timer *timer)
{
	struct cm_connreq *connreq = UTIL_CONTAINER_OF(timer, struct cm_connreq, timer);

	cm_connreq_fail(connreq, connreq->err, NULL, 0, "timed out");
}

static void cm_connreq_on_ready(struct cm_src *src, uint32_t events)
{
	struct cm_connreq *connreq = UTIL_CONTAINER_OF(src, struct cm_connreq, stream.src);

	if (connreq->is_active)
		cm_msg_on_ready(connreq);
	else
		cm_listen_on_ready(connreq);
}

struct cm_connreq *cm_connreq_new(struct cm_node *node, int fd, bool is_active)
{
	struct cm_connreq *connreq = calloc(1, sizeof(*connreq));

	if (!connreq)
		goto err_close;
	connreq->node = node;
	connreq->is_active = is_active;
	connreq->start_ns = util_clock_ns();
	connreq->state = is_active ? CM_CONNREQ_CONNECTING : CM_CONNREQ_PENDING;
	cm_src_init(&connreq->stream.src, cm_connreq_on_ready);
	cm_timer_init(&connreq->timer, cm_connreq_on_timer);
	util_list_init(&connreq->link);
	if (fd >= 0 && cm_src_open(node, &connreq->stream.src, fd))
		goto err_free;
	return connreq;

err_free:
	free(connreq);
err_close:
	if (fd >= 0)
		close(fd);
	return NULL;
}

void cm_connreq_arm(struct cm_connreq *connreq, uint64_t ms, int err)
{
	connreq->err = err;
	cm_node_arm(connreq->node, &connreq->timer, util_clock_ns() + ms * UTIL_NS_PER_MS);
}

void cm_connreq_arm_app(struct cm_connreq *connreq)
{
	uint64_t ms = connreq->node->peer_timeout_ns / UTIL_NS_PER_MS;

	cm_connreq_arm(connreq, CM_CONNREQ_APP_FACTOR * ms, -FI_ETIMEDOUT);
}

static void cm_connreq_set_data(struct wire_connreq_pkt *pkt, const void *data, size_t len)
{
	pkt->data_len = len < CM_MSG_DATA_MAX ? (uint32_t)len : CM_MSG_DATA_MAX;
	if (pkt->data_len)
		memcpy(pkt->data, data, pkt->data_len);
}

int cm_connreq_send_self(struct cm_connreq *connreq, enum wire_connreq_type type,
			 const struct cm_ep *cep, const void *data, size_t len)
{
	struct wire_connreq_pkt pkt = { .type = type, .inc = cep->inc };

	cm_addr_to_wire(&cep->addr, &pkt.addr);
	cm_connreq_set_data(&pkt, data, len);
	return cm_stream_send(connreq->node, &connreq->stream, &pkt);
}

void cm_connreq_send_refuse(struct cm_connreq *connreq, int err, const void *data, size_t len)
{
	struct wire_connreq_pkt pkt = { .type = WIRE_CONNREQ_REFUSE, .err = (uint32_t)-err };

	cm_connreq_set_data(&pkt, data, len);
	/* Before GREET the end of the stream tells the peer. */
	if (connreq->stream.nonce)
		cm_stream_send(connreq->node, &connreq->stream, &pkt);
}

void cm_connreq_end(struct cm_connreq *connreq)
{
	if (connreq->state != CM_CONNREQ_ENDED)
		cm_connreq_set_state(connreq, CM_CONNREQ_ENDED);
	cm_node_disarm(connreq->node, &connreq->timer);
	cm_src_close(connreq->node, &connreq->stream.src);
	if (connreq->listener && !connreq->is_held)
		cm_listen_remove(connreq);
	if (connreq->cep)
		connreq->cep->connreq = NULL;
	connreq->cep = NULL;
	if (!connreq->is_held)
		cm_node_defer_free(connreq->node, &connreq->zombie, connreq);
}

void cm_connreq_fail(struct cm_connreq *connreq, int err, const void *data, size_t len,
		     const char *why)
{
	struct cm_ep *cep = connreq->cep;
	char text[CM_ADDR_TEXT_MAX];

	if (cep) {
		UTIL_INFO(EP_CTRL, "connection request of %s: %s (%s)\n",
			  cm_addr_print(&cep->addr, text), why, fi_strerror(-err));
		cm_ep_admit(cep, NULL, 0);
		if (connreq->state == CM_CONNREQ_ACCEPTED)
			cm_connect_cancel_locked(cep, &connreq->addr, 1);
		cep->ops->refused(cep->ctx, err, data, len);
	}
	cm_connreq_end(connreq);
}

/* cm_ep.on_result: an accepted request ends with its connection's result. */
static void cm_connreq_on_result(struct cm_ep *cep, int err)
{
	struct cm_connreq *connreq = cep->connreq;

	if (!connreq || connreq->state != CM_CONNREQ_ACCEPTED)
		return;
	if (err)
		cm_connreq_send_refuse(connreq, err, NULL, 0);
	cm_connreq_end(connreq);
}

void cm_connreq_attach(struct cm_connreq *connreq, struct cm_ep *cep)
{
	connreq->cep = cep;
	cep->connreq = connreq;
	cep->on_result = cm_connreq_on_result;
}
