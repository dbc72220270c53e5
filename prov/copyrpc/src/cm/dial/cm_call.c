/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A call's states, packets and end: see cm_call.h. */
#include "cm/dial/cm_call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/cm_agent.h"
#include "util/clock.h"
#include "util/log.h"

static_assert(CM_DIAL_DATA_MAX == WIRE_DIAL_DATA_MAX, "what is offered fits");

#define CM_CALL_BIT(state) (1u << (state))

static const uint8_t cm_call_next[CM_CALL_STATE_CNT] = {
	[CM_CALL_DIAL] = CM_CALL_BIT(CM_CALL_ASKED) | CM_CALL_BIT(CM_CALL_OVER),
	[CM_CALL_ASKED] = CM_CALL_BIT(CM_CALL_MEET) | CM_CALL_BIT(CM_CALL_OVER),
	[CM_CALL_GUEST] = CM_CALL_BIT(CM_CALL_WAITS) | CM_CALL_BIT(CM_CALL_OVER),
	[CM_CALL_WAITS] = CM_CALL_BIT(CM_CALL_MEET) | CM_CALL_BIT(CM_CALL_OVER),
	[CM_CALL_MEET] = CM_CALL_BIT(CM_CALL_OVER),
	[CM_CALL_OVER] = 0,
};

static const char *const cm_call_names[CM_CALL_STATE_CNT] = {
	[CM_CALL_DIAL] = "dial",   [CM_CALL_ASKED] = "asked", [CM_CALL_GUEST] = "guest",
	[CM_CALL_WAITS] = "waits", [CM_CALL_MEET] = "meet",   [CM_CALL_OVER] = "over",
};

bool cm_call_may(enum cm_call_state from, enum cm_call_state to)
{
	return cm_call_next[from] & CM_CALL_BIT(to);
}

const char *cm_call_state_name(enum cm_call_state state)
{
	return cm_call_names[state];
}

void cm_call_set_state(struct cm_call *call, enum cm_call_state state)
{
	assert(cm_call_may(call->state, state));
	UTIL_DBG(EP_CTRL, "call %p: %s -> %s\n", (void *)call, cm_call_state_name(call->state),
		 cm_call_state_name(state));
	call->state = state;
}

static void cm_call_on_timer(struct cm_timer *timer)
{
	struct cm_call *call = UTIL_CONTAINER_OF(timer, struct cm_call, timer);

	cm_call_fail(call, call->err, NULL, 0, "the time was over");
}

static void cm_call_on_ready(struct cm_src *src, uint32_t events)
{
	struct cm_call *call = UTIL_CONTAINER_OF(src, struct cm_call, stream.src);

	(void)events;
	if (call->is_caller)
		cm_dial_on_ready(call);
	else
		cm_listen_on_ready(call);
}

struct cm_call *cm_call_new(struct cm_node *node, int fd, bool is_caller)
{
	struct cm_call *call = calloc(1, sizeof(*call));

	if (!call)
		goto err_close;
	call->node = node;
	call->is_caller = is_caller;
	call->start_ns = util_clock_ns();
	call->state = is_caller ? CM_CALL_DIAL : CM_CALL_GUEST;
	cm_src_init(&call->stream.src, cm_call_on_ready);
	cm_timer_init(&call->timer, cm_call_on_timer);
	util_list_init(&call->link);
	if (fd >= 0 && cm_src_open(node, &call->stream.src, fd))
		goto err_free;
	return call;

err_free:
	free(call);
err_close:
	if (fd >= 0)
		close(fd);
	return NULL;
}

void cm_call_give(struct cm_call *call, uint64_t ms, int err)
{
	call->err = err;
	cm_node_arm(call->node, &call->timer, util_clock_ns() + ms * UTIL_NS_PER_MS);
}

static void cm_call_set_data(struct wire_dial_pkt *pkt, const void *data, size_t len)
{
	pkt->data_len = len < CM_DIAL_DATA_MAX ? (uint32_t)len : CM_DIAL_DATA_MAX;
	if (pkt->data_len)
		memcpy(pkt->data, data, pkt->data_len);
}

int cm_call_say_self(struct cm_call *call, enum wire_dial_type type, const struct cm_agent *agent,
		     const void *data, size_t len)
{
	struct wire_dial_pkt pkt = { .type = type, .inc = agent->inc };

	cm_addr_to_wire(&agent->addr, &pkt.addr);
	cm_call_set_data(&pkt, data, len);
	return cm_stream_send(call->node, &call->stream, &pkt);
}

void cm_call_say_refuse(struct cm_call *call, int err, const void *data, size_t len)
{
	struct wire_dial_pkt pkt = { .type = WIRE_DIAL_REFUSE, .err = (uint32_t)-err };

	cm_call_set_data(&pkt, data, len);
	/* Who does not hear it sees the end of the stream. */
	if (call->stream.nonce)
		cm_stream_send(call->node, &call->stream, &pkt);
}

void cm_call_end(struct cm_call *call)
{
	if (call->state != CM_CALL_OVER)
		cm_call_set_state(call, CM_CALL_OVER);
	cm_node_disarm(call->node, &call->timer);
	cm_src_close(call->node, &call->stream.src);
	if (call->listener)
		cm_listen_leave(call);
	if (call->agent)
		call->agent->call = NULL;
	call->agent = NULL;
	if (!call->is_held)
		cm_node_bury(call->node, &call->grave, call);
}

void cm_call_fail(struct cm_call *call, int err, const void *data, size_t len, const char *why)
{
	struct cm_agent *agent = call->agent;
	char text[CM_ADDR_TEXT_MAX];

	if (agent) {
		UTIL_INFO(EP_CTRL, "call of %s: %s (%s)\n", cm_addr_print(&agent->addr, text), why,
			  fi_strerror(-err));
		cm_agent_admit(agent, NULL, 0);
		if (call->state == CM_CALL_MEET)
			cm_agent_forget(agent, &call->addr);
		agent->ops->refused(agent->ctx, err, data, len);
	}
	cm_call_end(call);
}

void cm_call_met(struct cm_agent *agent)
{
	if (agent->call && agent->call->state == CM_CALL_MEET)
		cm_call_end(agent->call);
}

void cm_call_missed(struct cm_agent *agent, int err)
{
	if (!agent->call || agent->call->state != CM_CALL_MEET)
		return;
	cm_call_say_refuse(agent->call, err, NULL, 0);
	cm_call_end(agent->call);
}
