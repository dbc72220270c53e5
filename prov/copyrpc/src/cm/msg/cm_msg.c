/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Active side of a connection request: see cm_msg.h. */
#include "cm/msg/cm_msg.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "cm/conn/cm_connect.h"
#include "cm/ep/cm_ep.h"
#include "cm/msg/cm_connreq.h"
#include "util/clock.h"
#include "util/log.h"

static uint64_t cm_msg_timeout_ms(const struct cm_connreq *connreq)
{
	return connreq->node->peer_timeout_ns / UTIL_NS_PER_MS;
}

/* Sends REQUEST after the listener's GREET. */
static void cm_msg_on_greet(struct cm_connreq *connreq)
{
	int ret = cm_connreq_send_self(connreq, WIRE_CONNREQ_REQUEST, connreq->cep, connreq->data,
				       connreq->data_len);

	if (ret) {
		cm_connreq_fail(connreq, ret, NULL, 0, "the connection request could not be sent");
		return;
	}
	cm_connreq_set_state(connreq, CM_CONNREQ_REQUESTED);
	cm_connreq_arm_app(connreq);
}

/*
 * Connects to the accepting endpoint. cm_connect sets the deadline; the stream only reports its
 * end.
 */
static void cm_msg_on_accept(struct cm_connreq *connreq, const struct wire_connreq_pkt *pkt)
{
	struct cm_ep *cep = connreq->cep;
	struct sockaddr_storage addr;
	int ret;

	cm_addr_from_wire(&pkt->addr, &connreq->addr);
	connreq->inc = pkt->inc;
	cm_connreq_set_state(connreq, CM_CONNREQ_ACCEPTED);
	cm_node_disarm(connreq->node, &connreq->timer);
	cm_ep_admit(cep, &connreq->addr, pkt->inc);
	cm_addr_export(&connreq->addr, &addr);
	cep->ops->accepted(cep->ctx, (struct sockaddr *)&addr, pkt->data, pkt->data_len);
	ret = cm_connect_locked(cep, &connreq->addr, 1, true);
	if (ret)
		cm_connreq_fail(connreq, ret, NULL, 0,
				"the listener's endpoint has no usable address");
}

static void cm_msg_on_pkt(struct cm_connreq *connreq, const struct wire_connreq_pkt *pkt)
{
	if (pkt->type == WIRE_CONNREQ_GREET && connreq->state == CM_CONNREQ_CONNECTING)
		cm_msg_on_greet(connreq);
	else if (pkt->type == WIRE_CONNREQ_ACCEPT && connreq->state == CM_CONNREQ_REQUESTED)
		cm_msg_on_accept(connreq, pkt);
	else if (pkt->type == WIRE_CONNREQ_REFUSE && connreq->state != CM_CONNREQ_CONNECTING)
		cm_connreq_fail(connreq, -(int)pkt->err, pkt->data, pkt->data_len,
				"rejected by the listener");
	else
		cm_connreq_fail(connreq, -FI_EIO, NULL, 0, "the listener violated the protocol");
}

static const char *cm_msg_reason(int err)
{
	switch (err) {
	case -FI_ECONNREFUSED: return "no process listens at that address";
	case -FI_ECONNRESET: return "the listener ended the stream unexpectedly";
	case -FI_EKEYREJECTED:
		return "the listener has another FI_COPYRPC_JOB_KEY; set the same in every process";
	case -FI_ENOPROTOOPT: return "install the same copyrpc on both sides";
	case -FI_EINVAL: return "the process that listens there is not copyrpc";
	default: return "the network failed";
	}
}

void cm_msg_on_ready(struct cm_connreq *connreq)
{
	struct wire_connreq_pkt pkt;
	int ret = cm_stream_recv(connreq->node, &connreq->stream, &pkt);

	if (!ret)
		cm_msg_on_pkt(connreq, &pkt);
	else if (ret != -FI_EAGAIN)
		cm_connreq_fail(connreq, ret == -FI_EINVAL ? -FI_EIO : ret, NULL, 0,
				cm_msg_reason(ret));
}

static int cm_msg_connect_locked(struct cm_ep *cep, const union cm_addr *to, const void *data,
				 size_t len)
{
	int fd = cm_stream_connect(to);
	struct cm_connreq *connreq = cm_connreq_new(cep->node, fd, true);

	if (!connreq)
		return -FI_ENOMEM;
	cm_connreq_attach(connreq, cep);
	connreq->data_len = len < CM_MSG_DATA_MAX ? (uint32_t)len : CM_MSG_DATA_MAX;
	if (connreq->data_len)
		memcpy(connreq->data, data, connreq->data_len);
	/* Immediate errors are reported by the control thread, like later ones. */
	if (fd < 0)
		cm_connreq_arm(connreq, 0, fd);
	else
		cm_connreq_arm(connreq, cm_msg_timeout_ms(connreq), -FI_ETIMEDOUT);
	return 0;
}

int cm_msg_connect(struct cm_ep *cep, const struct sockaddr *addr, const void *data, size_t len)
{
	union cm_addr to;
	int ret = cm_addr_import(addr, &to);

	if (ret || to.sa.sa_family != cep->addr.sa.sa_family || !cm_addr_is_peer(&to))
		return -FI_EINVAL;
	cm_node_lock(cep->node);
	ret = cep->connreq ? -FI_EALREADY : cm_msg_connect_locked(cep, &to, data, len);
	cm_node_unlock(cep->node);
	return ret;
}
