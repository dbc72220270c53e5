/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The caller's side of a call: see cm_dial.h. */
#include "cm/dial/cm_dial.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "cm/cm_agent.h"
#include "cm/dial/cm_call.h"
#include "util/clock.h"
#include "util/log.h"

static uint64_t cm_dial_patience_ms(const struct cm_call *call)
{
	return call->node->peer_timeout_ns / UTIL_NS_PER_MS;
}

/* The listener is there and can be talked to. */
static void cm_dial_on_greet(struct cm_call *call)
{
	int ret = cm_call_say_self(call, WIRE_DIAL_CALL, call->agent, call->data, call->data_len);

	if (ret) {
		cm_call_fail(call, ret, NULL, 0, "the call could not be sent");
		return;
	}
	cm_call_set_state(call, CM_CALL_ASKED);
	cm_call_give(call, cm_dial_patience_ms(call), -FI_ETIMEDOUT);
}

/* From here on the request to connect has the deadline, and the stream is only watched for its end. */
static void cm_dial_on_accept(struct cm_call *call, const struct wire_dial_pkt *pkt)
{
	struct cm_agent *agent = call->agent;
	struct sockaddr_storage addr;
	int ret;

	cm_addr_from_wire(&pkt->addr, &call->addr);
	call->inc = pkt->inc;
	cm_call_set_state(call, CM_CALL_MEET);
	cm_node_disarm(call->node, &call->timer);
	cm_agent_admit(agent, &call->addr, pkt->inc);
	cm_addr_export(&call->addr, &addr);
	agent->ops->accepted(agent->ctx, (struct sockaddr *)&addr, pkt->data, pkt->data_len);
	ret = cm_agent_connect(agent, &call->addr);
	if (ret)
		cm_call_fail(call, ret, NULL, 0, "the listener's endpoint has no usable address");
}

static void cm_dial_on_pkt(struct cm_call *call, const struct wire_dial_pkt *pkt)
{
	if (pkt->type == WIRE_DIAL_GREET && call->state == CM_CALL_DIAL)
		cm_dial_on_greet(call);
	else if (pkt->type == WIRE_DIAL_ACCEPT && call->state == CM_CALL_ASKED)
		cm_dial_on_accept(call, pkt);
	else if (pkt->type == WIRE_DIAL_REFUSE && call->state != CM_CALL_DIAL)
		cm_call_fail(call, -(int)pkt->err, pkt->data, pkt->data_len, "refused there");
	else
		cm_call_fail(call, -FI_EIO, NULL, 0, "the listener broke the rules");
}

static const char *cm_dial_why(int err)
{
	switch (err) {
	case -FI_ECONNREFUSED: return "nobody listens there";
	case -FI_ECONNRESET: return "the listener ended the call without a word";
	case -FI_EKEYREJECTED:
		return "another job listens there: is FI_COPYRPC_JOB_KEY the same there?";
	case -FI_ENOPROTOOPT: return "install the same copyrpc on both sides";
	case -FI_EINVAL: return "who listens there is not copyrpc";
	default: return "the network failed";
	}
}

void cm_dial_on_ready(struct cm_call *call)
{
	struct wire_dial_pkt pkt;
	int ret = cm_stream_recv(call->node, &call->stream, &pkt);

	if (!ret)
		cm_dial_on_pkt(call, &pkt);
	else if (ret != -FI_EAGAIN)
		cm_call_fail(call, ret == -FI_EINVAL ? -FI_EIO : ret, NULL, 0, cm_dial_why(ret));
}

static int cm_dial_locked(struct cm_agent *agent, const union cm_addr *to, const void *data,
			  size_t len)
{
	int fd = cm_stream_connect(to);
	struct cm_call *call = cm_call_new(agent->node, fd, true);

	if (!call)
		return -FI_ENOMEM;
	call->agent = agent;
	agent->call = call;
	call->data_len = len < CM_DIAL_DATA_MAX ? (uint32_t)len : CM_DIAL_DATA_MAX;
	if (call->data_len)
		memcpy(call->data, data, call->data_len);
	/* What is known at once is told as what is known later, by the control thread. */
	if (fd < 0)
		cm_call_give(call, 0, fd);
	else
		cm_call_give(call, cm_dial_patience_ms(call), -FI_ETIMEDOUT);
	return 0;
}

int cm_dial(struct cm_agent *agent, const struct sockaddr *addr, const void *data, size_t len)
{
	union cm_addr to;
	int ret = cm_addr_import(addr, &to);

	if (ret || to.sa.sa_family != agent->addr.sa.sa_family || !cm_addr_is_peer(&to))
		return -FI_EINVAL;
	cm_node_lock(agent->node);
	ret = agent->call ? -FI_EALREADY : cm_dial_locked(agent, &to, data, len);
	cm_node_unlock(agent->node);
	return ret;
}
