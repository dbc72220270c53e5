/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What becomes of a call?
 *
 * It goes at once or not at all (-FI_EAGAIN), so that its bytes need not be kept and its user
 * decides what to do without credit. The exception is a connection in the making: who sleeps
 * until the first answer would sleep for ever, so calls are copied and queued, in order with
 * sends, CORE_RPC_QUEUE_BYTES of them.
 *
 * A call is a core_op until its answer, error or cancellation has been told. A cancelled one stays a core_op
 * without a user: the channel still owes the answer and the credit.
 *
 * Shown by test/unit/core/rpc/test_core_rpc_call.c.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/rpc/core_rpc.h"
#include "util/copy.h"
#include "wire/wire_op.h"

static struct core_rpc_call *core_rpc_call_of(struct core_op *op)
{
	return UTIL_CONTAINER_OF(op, struct core_rpc_call, op);
}

static void core_rpc_call_free(struct core_ep *ep, struct core_rpc_call *call)
{
	if (UTIL_UNLIKELY(call->copy != NULL)) {
		ep->rpc.queue_bytes -= call->len;
		free(call->copy);
	}
	util_pool_release(&ep->rpc.calls, call);
}

/** It is in no list any more, and gone. */
static inline void core_rpc_call_end(struct core_rpc_call *call)
{
	struct core_ep *ep = call->op.peer->ep;

	core_op_end(&call->op);
	ep->rpc.call_cnt--;
	core_rpc_call_free(ep, call);
}

static void core_rpc_write_err(struct core_rpc_call *call, int err, size_t olen)
{
	struct core_ep *ep = call->op.peer->ep;
	struct fi_cq_err_entry entry = {
		.op_context = call->context,
		.flags = call->comp_flags,
		.olen = olen,
		.err = -err,
		.prov_errno = -err,
	};

	if (!call->cancelled && ep->tx.cq)
		core_cq_write_err(ep->tx.cq, &entry, call->op.peer->fi_addr);
}

static void core_rpc_call_fail(struct core_op *op, int err)
{
	struct core_rpc_call *call = core_rpc_call_of(op);

	core_rpc_write_err(call, err, 0);
	core_rpc_call_end(call);
}

/** Keeps the answer that is being told where it is: 0 and *id, or -FI_ENOMEM. */
static int core_rpc_lend(struct core_ep *ep, struct core_chan *chan, const uint8_t *data,
			 uint32_t *id)
{
	struct core_rpc_held *held = core_rpc_held_new(&ep->rpc, chan);
	int ret;

	if (!held)
		return -FI_ENOMEM;
	held->data = data;
	ret = util_idmap_alloc(&ep->rpc.lent, held, id);
	held->has_bytes = false;
	if (!ret) {
		ret = chan->ops->keep(chan, &held->hold);
		held->has_bytes = !ret;
		if (!ret)
			return 0;
		util_idmap_release(&ep->rpc.lent, *id);
	}
	core_rpc_held_free(&ep->rpc, held);
	return -FI_ENOMEM;
}

static void core_rpc_answer_lent(struct core_rpc_call *call, const uint8_t *data, uint32_t len)
{
	struct core_peer *peer = call->op.peer;
	struct core_ep *ep = peer->ep;
	uint32_t id;
	int ret = core_rpc_lend(ep, peer->chan, data, &id);

	if (ret)
		core_rpc_write_err(call, ret, 0);
	else
		core_cq_write(ep->tx.cq, call->context, call->comp_flags, len,
			      (void *)(uintptr_t)data, id, 0, peer->fi_addr);
}

static void core_rpc_on_reply(struct core_op *op, int status, const uint8_t *data, uint32_t len)
{
	struct core_rpc_call *call = core_rpc_call_of(op);
	struct core_ep *ep = op->peer->ep;

	if (UTIL_UNLIKELY(status || len > call->allowance)) {
		core_rpc_write_err(call, status ? status : -FI_ETRUNC,
				   status ? 0 : len - call->allowance);
	} else if (UTIL_UNLIKELY(call->cancelled)) {
		/* a late answer goes nowhere */
	} else if (UTIL_UNLIKELY(call->lend)) {
		core_rpc_answer_lent(call, data, len);
	} else {
		util_copy(call->resp, data, len);
		core_cq_write(ep->tx.cq, call->context, call->comp_flags, len, NULL, 0, 0,
			      op->peer->fi_addr);
	}
	core_rpc_call_end(call);
}

/** A queued call whose turn it is. */
static int core_rpc_start(struct core_op *op)
{
	struct core_rpc_call *call = core_rpc_call_of(op);
	struct core_chan *chan = op->peer->chan;
	int ret;

	if (call->len > chan->eager_max || call->allowance > chan->allowance_sure) {
		core_rpc_call_fail(op, -FI_EMSGSIZE);
		return 0;
	}
	ret = chan->ops->call_buf(chan, wire_rpc_word(call->allowance), call->copy, call->len,
				  call->allowance, op, 0);
	if (ret)
		return ret;
	op->peer->ep->rpc.queue_bytes -= call->len;
	free(call->copy);
	call->copy = NULL;
	return 0;
}

static const struct core_op_ops core_rpc_op_ops = {
	.start = core_rpc_start,
	.on_reply = core_rpc_on_reply,
	.fail = core_rpc_call_fail,
};

static inline struct core_rpc_call *core_rpc_call_new(struct core_ep *ep,
						      const struct core_rpc_ask *ask)
{
	struct core_rpc_call *call = util_pool_alloc(&ep->rpc.calls);

	if (UTIL_UNLIKELY(!call))
		return NULL;
	call->op.fence = false;
	call->context = ask->context;
	call->resp = ask->resp;
	call->comp_flags = ask->comp_flags;
	call->allowance = (uint32_t)ask->allowance;
	call->copy = NULL;
	call->lend = ask->flags & CORE_RPC_LEND;
	call->cancelled = false;
	return call;
}

static ssize_t core_rpc_queue(struct core_peer *peer, struct core_rpc_call *call,
			      const struct core_rpc_ask *ask)
{
	struct core_ep *ep = peer->ep;
	int ret;

	if (ask->len > CORE_RPC_QUEUE_BYTES - ep->rpc.queue_bytes)
		return -FI_EAGAIN;
	call->copy = malloc(ask->len + 1);
	if (!call->copy)
		return -FI_EAGAIN;
	util_iov_gather(call->copy, ask->iov, ask->iov_cnt, 0, ask->len);
	call->len = (uint32_t)ask->len;
	ep->rpc.queue_bytes += ask->len;
	ep->rpc.call_cnt++;
	ret = core_op_submit(&call->op, &core_rpc_op_ops, peer);
	if (ret)
		ep->rpc.call_cnt--;
	return ret;
}

/* Several buffers, or none. */
static __attribute__((noinline)) int core_rpc_post_cold(struct core_chan *chan,
							struct core_rpc_call *call,
							const struct core_rpc_ask *ask)
{
	struct core_frame frame = {
		.op = wire_rpc_word(call->allowance),
		.iov = ask->iov,
		.iov_cnt = ask->iov_cnt,
		.len = ask->len,
	};

	return chan->ops->call(chan, &frame, call->allowance, &call->op);
}

static inline int core_rpc_post(struct core_chan *chan, struct core_rpc_call *call,
				const struct core_rpc_ask *ask)
{
	unsigned flags = ask->flags & CORE_RPC_MORE ? CORE_SEND_MORE : 0;

	if (UTIL_UNLIKELY(ask->iov_cnt != 1))
		return core_rpc_post_cold(chan, call, ask);
	return chan->ops->call_buf(chan, wire_rpc_word(call->allowance), ask->iov[0].iov_base,
				   ask->len, call->allowance, &call->op, flags);
}

static inline ssize_t core_rpc_post_now(struct core_peer *peer, struct core_rpc_call *call,
					const struct core_rpc_ask *ask)
{
	struct core_chan *chan = peer->chan;
	int ret;

	if (UTIL_UNLIKELY(ask->len > chan->eager_max || ask->allowance > chan->allowance_sure))
		return -FI_EMSGSIZE;
	if (UTIL_UNLIKELY(!util_list_is_empty(&peer->tx_queue)))
		return -FI_EAGAIN; /* others wait for the room, and they were first */
	core_op_adopt(&call->op, &core_rpc_op_ops, peer);
	peer->ep->rpc.call_cnt++;
	ret = core_rpc_post(chan, call, ask);
	if (UTIL_UNLIKELY(ret)) {
		core_op_end(&call->op);
		peer->ep->rpc.call_cnt--;
	}
	return ret;
}

ssize_t core_rpc_call(struct core_ep *ep, fi_addr_t dest, const struct core_rpc_ask *ask)
{
	struct core_peer *peer = core_peer_get(ep, dest);
	struct core_rpc_call *call;
	ssize_t ret;

	if (UTIL_UNLIKELY(!peer))
		return -FI_EINVAL;
	if (UTIL_UNLIKELY(ask->allowance > CORE_RPC_ALLOWANCE_MAX ||
			  ask->len > CORE_RPC_QUEUE_BYTES))
		return -FI_EMSGSIZE;
	call = core_rpc_call_new(ep, ask);
	if (UTIL_UNLIKELY(!call))
		return -FI_EAGAIN;
	if (UTIL_LIKELY(peer->state == CORE_PEER_UP))
		ret = core_rpc_post_now(peer, call, ask);
	else
		ret = core_rpc_queue(peer, call, ask);
	if (UTIL_UNLIKELY(ret))
		core_rpc_call_free(ep, call);
	return ret;
}

static struct core_rpc_call *core_rpc_find_in(const struct util_list *peers, const void *context)
{
	const struct util_list *it, *op_it;
	struct core_peer *peer;
	struct core_rpc_call *call;
	struct core_op *op;

	for (it = peers->next; it != peers; it = it->next) {
		peer = UTIL_CONTAINER_OF(it, struct core_peer, ep_link);
		for (op_it = peer->tx.next; op_it != &peer->tx; op_it = op_it->next) {
			op = UTIL_CONTAINER_OF(op_it, struct core_op, peer_link);
			if (op->ops != &core_rpc_op_ops)
				continue;
			call = core_rpc_call_of(op);
			if (call->context == context && !call->cancelled)
				return call;
		}
	}
	return NULL;
}

int core_rpc_cancel(struct core_ep *ep, void *context)
{
	struct core_rpc_call *call = core_rpc_find_in(&ep->known, context);

	if (!call)
		return -FI_ENOENT;
	core_rpc_write_err(call, -FI_ECANCELED, 0);
	if (call->op.queued)
		core_rpc_call_end(call);
	else
		call->cancelled = true;
	return 0;
}

int core_rpc_release_answer(struct core_ep *ep, uint64_t data)
{
	struct core_rpc_held *held =
		data <= UINT32_MAX ? util_idmap_lookup(&ep->rpc.lent, (uint32_t)data) : NULL;

	if (!held)
		return -FI_EINVAL;
	util_idmap_release(&ep->rpc.lent, (uint32_t)data);
	core_rpc_held_free(&ep->rpc, held);
	return 0;
}

/** The channel to a peer: 0, -FI_EAGAIN (it is being made), or -FI_E*. */
static int core_rpc_chan(struct core_ep *ep, fi_addr_t dest, struct core_chan **chan)
{
	struct core_peer *peer = core_peer_get(ep, dest);
	int ret;

	if (!peer)
		return -FI_EINVAL;
	*chan = peer->chan;
	if (peer->state == CORE_PEER_UP)
		return 0;
	ret = core_peer_connect(peer);
	return ret ? ret : -FI_EAGAIN;
}

int core_rpc_limits(struct core_ep *ep, fi_addr_t dest, size_t *request, size_t *allowance)
{
	struct core_chan *chan;
	int ret = core_rpc_chan(ep, dest, &chan);

	if (ret)
		return ret;
	*request = chan->eager_max < CORE_RPC_QUEUE_BYTES ? chan->eager_max : CORE_RPC_QUEUE_BYTES;
	*allowance = chan->allowance_sure < CORE_RPC_ALLOWANCE_MAX ? chan->allowance_sure
								   : CORE_RPC_ALLOWANCE_MAX;
	return 0;
}

ssize_t core_rpc_room(struct core_ep *ep, fi_addr_t dest, size_t len, size_t allowance)
{
	struct core_chan *chan;
	int ret = core_rpc_chan(ep, dest, &chan);

	if (ret)
		return ret;
	if (len > chan->eager_max || allowance > chan->allowance_sure)
		return -FI_EMSGSIZE;
	if (!util_list_is_empty(&chan->peer->tx_queue))
		return 0;
	return (ssize_t)chan->ops->call_room(chan, len, (uint32_t)allowance);
}

static void core_rpc_flush_all(const struct util_list *peers)
{
	const struct util_list *it;
	struct core_peer *peer;

	for (it = peers->next; it != peers; it = it->next) {
		peer = UTIL_CONTAINER_OF(it, struct core_peer, ep_link);
		if (peer->chan)
			peer->chan->ops->flush(peer->chan);
	}
}

int core_rpc_flush(struct core_ep *ep, fi_addr_t dest)
{
	struct core_peer *peer;

	if (dest == FI_ADDR_UNSPEC) {
		core_rpc_flush_all(&ep->known);
		core_rpc_flush_all(&ep->strangers);
		return 0;
	}
	peer = core_peer_get(ep, dest);
	if (!peer)
		return -FI_EINVAL;
	if (peer->chan)
		peer->chan->ops->flush(peer->chan);
	return 0;
}
