/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Caller side: calls from post to completion. See core_rpc.h.
 *
 * A call is sent at once or refused with -FI_EAGAIN: its bytes need not be kept, and the user
 * handles lack of credit. The exception is a connection in progress, or one that is about to be
 * replaced (core_failback.h), because a user may sleep until the first response. Such calls are
 * copied and queued, in order with sends, up to CORE_RPC_QUEUE_BYTES.
 *
 * A call is a core_op until its response, error or cancellation was reported. A cancelled one stays
 * a core_op without a user: the channel still owes the response and the credit.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/rpc/core_rpc_post.h"
#include "util/copy.h"
#include "util/probe.h"
#include "wire/wire_op.h"

static struct core_rpc_call *core_rpc_call_of(struct core_op *op)
{
	return UTIL_CONTAINER_OF(op, struct core_rpc_call, op);
}

/** Frees the copy of a queued call, and unlinks it from the queue. */
static __attribute__((noinline)) void core_rpc_call_drop_copy(struct core_ep *ep,
							      struct core_rpc_call *call)
{
	ep->rpc.queue_bytes -= call->len;
	free(call->copy);
	if (call->op.queued)
		core_op_unqueue(&call->op);
}

/** Unlinks and frees a call that has no copy. */
static inline void core_rpc_call_unlist(struct core_rpc_call *call)
{
	struct util_list *link = &call->op.peer_link;

	link->prev->next = link->next;
	link->next->prev = link->prev;
	util_pool_release(&call->op.peer->ep->rpc.calls, call);
}

/** Unlinks and frees a call. */
static void core_rpc_call_end(struct core_rpc_call *call)
{
	if (UTIL_UNLIKELY(call->copy != NULL))
		core_rpc_call_drop_copy(call->op.peer->ep, call);
	core_rpc_call_unlist(call);
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

/** Retains the response that is being delivered. Returns 0 and *id, or -FI_ENOMEM. */
static int core_rpc_retain(struct core_ep *ep, struct core_chan *chan, const uint8_t *data,
			   uint32_t *id)
{
	struct core_rpc_handle *handle;
	int ret;

	if (!util_pool_first(&ep->rpc.handles) && util_pool_grow(&ep->rpc.handles))
		return -FI_ENOMEM;
	handle = util_pool_first(&ep->rpc.handles);
	core_rpc_handle_alloc(&ep->rpc, handle, chan);
	handle->data = data;
	ret = util_idmap_alloc(&ep->rpc.retained, handle, id);
	handle->has_bytes = false;
	if (!ret) {
		ret = chan->ops->retain(chan, &handle->retain);
		handle->has_bytes = !ret;
		if (!ret)
			return 0;
		util_idmap_release(&ep->rpc.retained, *id);
	}
	core_rpc_handle_free(&ep->rpc, handle);
	return -FI_ENOMEM;
}

static void core_rpc_retain_resp(struct core_rpc_call *call, const uint8_t *data, uint32_t len)
{
	struct core_peer *peer = call->op.peer;
	struct core_ep *ep = peer->ep;
	uint32_t id;
	int ret = core_rpc_retain(ep, peer->chan, data, &id);

	if (ret)
		core_rpc_write_err(call, ret, 0);
	else
		core_cq_write(ep->tx.cq, call->context, call->comp_flags, len,
			      (void *)(uintptr_t)data, id, 0, peer->fi_addr);
}

static void core_rpc_copy_resp(struct core_rpc_call *call, const uint8_t *data, uint32_t len)
{
	struct core_peer *peer = call->op.peer;

	util_copy(call->resp, data, len);
	core_cq_write(peer->ep->tx.cq, call->context, call->comp_flags, len, NULL, 0, 0,
		      peer->fi_addr);
}

/* Cold path of on_reply: no response, a long or retained one, a cancelled call, or a full queue. */
static __attribute__((noinline)) void core_rpc_on_reply_cold(struct core_rpc_call *call, int status,
							     const uint8_t *data, uint32_t len)
{
	if (status)
		core_rpc_write_err(call, status, 0);
	else if (len > call->resp_max)
		core_rpc_write_err(call, -FI_ETRUNC, len - call->resp_max);
	else if (!call->cancelled && (call->comp_flags & CORE_RPC_RETAIN))
		core_rpc_retain_resp(call, data, len);
	else if (!call->cancelled)
		core_rpc_copy_resp(call, data, len);
	core_rpc_call_end(call);
}

static void core_rpc_on_reply(struct core_op *op, int status, const uint8_t *data, uint32_t len)
{
	struct core_rpc_call *call = core_rpc_call_of(op);
	struct core_peer *peer = op->peer;
	struct core_cq *cq = peer->ep->tx.cq;

	if (UTIL_UNLIKELY(status || len > call->resp_max || len > UTIL_COPY_SHORT || !call->plain ||
			  !core_cq_has_room(cq))) {
		core_rpc_on_reply_cold(call, status, data, len);
		return;
	}
	core_cqe_fill(core_cq_take(cq), call->context, call->comp_flags, len, NULL, 0, 0,
		      peer->fi_addr);
	util_copy_short(call->resp, data, len);
	core_rpc_call_unlist(call);
}

/** Sends a queued call. */
static int core_rpc_start(struct core_op *op)
{
	struct core_rpc_call *call = core_rpc_call_of(op);
	struct core_chan *chan = op->peer->chan;
	int ret;

	if (call->len > chan->eager_max || call->resp_max > op->peer->rpc_resp_lim) {
		core_rpc_call_fail(op, -FI_EMSGSIZE);
		return 0;
	}
	ret = chan->ops->call_buf(chan, wire_rpc_word(call->resp_max), call->copy, call->len,
				  call->resp_max, op, 0);
	if (ret)
		return ret;
	op->peer->ep->rpc.queue_bytes -= call->len;
	free(call->copy);
	call->copy = NULL;
	return 0;
}

const struct core_op_ops core_rpc_op_ops = {
	.start = core_rpc_start,
	.on_reply = core_rpc_on_reply,
	.fail = core_rpc_call_fail,
};

/** Counts a call that is refused. Returns -FI_EAGAIN. */
static ssize_t core_rpc_refuse(struct core_ep *ep, enum core_shortage shortage)
{
	ep->rpc.refused[shortage]++;
	return -FI_EAGAIN;
}

/** Returns true if a call of `len` bytes may wait for a connection. */
static bool core_rpc_may_queue(const struct core_ep *ep, size_t len)
{
	return len <= CORE_RPC_QUEUE_BYTES - ep->rpc.queue_bytes &&
	       ep->tx_queued < CORE_OP_QUEUE_MAX;
}

/** Returns how many calls of `len` bytes may wait for a connection, one after the other. */
static ssize_t core_rpc_queue_room(const struct core_ep *ep, size_t len)
{
	size_t bytes = (CORE_RPC_QUEUE_BYTES - ep->rpc.queue_bytes) / (len ? len : 1);
	size_t cnt = CORE_OP_QUEUE_MAX - ep->tx_queued;

	return (ssize_t)(bytes < cnt ? bytes : cnt);
}

/** Returns true if a call is within the limits of the connection. */
static bool core_rpc_fits(const struct core_peer *peer, size_t len, size_t resp_max)
{
	return len <= peer->chan->eager_max && resp_max <= peer->rpc_resp_lim;
}

/** Returns true if calls to the peer wait for a connection: the first one, or the next one. */
static bool core_rpc_must_queue(const struct core_peer *peer)
{
	return peer->state != CORE_PEER_UP || peer->holds;
}

/** Queues a call until the peer is connected. fi_close does not wait for it. */
static ssize_t core_rpc_queue(struct core_peer *peer, const struct core_rpc_request *request)
{
	struct core_ep *ep = peer->ep;
	struct core_rpc_call *call;
	uint8_t *copy;
	int ret;

	if (!core_rpc_may_queue(ep, request->len))
		return core_rpc_refuse(ep, CORE_SHORT_CONNECTION);
	copy = malloc(request->len + 1);
	call = copy ? util_pool_alloc(&ep->rpc.calls) : NULL;
	if (!call) {
		free(copy);
		return core_rpc_refuse(ep, CORE_SHORT_MEMORY);
	}
	util_iov_gather(copy, request->iov, request->iov_cnt, 0, request->len);
	core_rpc_call_init(call, request->resp, request->resp_max, request->context,
			   request->comp_flags);
	call->op.fence = false;
	call->op.reads = false;
	call->plain = false; /* the copy must be freed */
	call->copy = copy;
	call->len = (uint32_t)request->len;
	ep->rpc.queue_bytes += request->len;
	ret = core_op_submit(&call->op, &core_rpc_op_ops, peer);
	if (!ret) {
		ep->tx_open--;
		return 0;
	}
	ep->rpc.queue_bytes -= request->len;
	free(copy);
	util_pool_release(&ep->rpc.calls, call);
	return ret;
}

ssize_t core_rpc_call_undo_cold(struct core_rpc_call *call, int err)
{
	struct core_peer *peer = call->op.peer;

	core_rpc_call_end(call);
	return err == -FI_EAGAIN ? core_rpc_refuse(peer->ep, peer->chan->shortage) : err;
}

static ssize_t core_rpc_post(struct core_peer *peer, const struct core_rpc_request *request)
{
	struct core_chan *chan = peer->chan;
	struct core_frame frame = {
		.op = wire_rpc_word((uint32_t)request->resp_max),
		.iov = request->iov,
		.iov_cnt = request->iov_cnt,
		.len = request->len,
	};
	struct core_rpc_call *call;
	unsigned flags;
	int ret;

	if (!util_list_is_empty(&peer->tx_queue))
		return core_rpc_refuse(peer->ep, CORE_SHORT_QUEUE);
	call = util_pool_alloc(&peer->ep->rpc.calls);
	if (!call)
		return core_rpc_refuse(peer->ep, CORE_SHORT_MEMORY);
	core_rpc_call_fill(call, peer, request->resp, request->resp_max, request->context,
			   request->comp_flags);
	flags = request->flags & CORE_RPC_MORE ? CORE_SEND_MORE : 0;
	if (request->iov_cnt == 1)
		ret = chan->ops->call_buf(chan, frame.op, request->iov[0].iov_base, request->len,
					  call->resp_max, &call->op, flags);
	else
		ret = chan->ops->call(chan, &frame, call->resp_max, &call->op, flags);
	return ret ? core_rpc_call_undo_cold(call, ret) : 0;
}

static ssize_t core_rpc_call_announced(struct core_ep *ep, fi_addr_t dest,
				       const struct core_rpc_request *request)
{
	struct core_peer *peer = core_peer_get(ep, dest);

	if (!peer)
		return core_peer_missing(ep, dest);
	if (request->resp_max > CORE_RPC_RESP_MAX || request->len > CORE_RPC_QUEUE_BYTES)
		return -FI_EMSGSIZE;
	if (peer->state == CORE_PEER_UP && !core_rpc_fits(peer, request->len, request->resp_max))
		return -FI_EMSGSIZE;
	return core_rpc_must_queue(peer) ? core_rpc_queue(peer, request)
					 : core_rpc_post(peer, request);
}

ssize_t core_rpc_call(struct core_ep *ep, fi_addr_t dest, const struct core_rpc_request *request)
{
	UTIL_PROBE_OP(send, ep, dest, request->context, request->len);
	return core_rpc_call_announced(ep, dest, request);
}

ssize_t core_rpc_call_buf_cold(struct core_ep *ep, const void *buf, size_t len, void *resp,
			       size_t resp_max, fi_addr_t dest, void *context, uint64_t comp_flags,
			       unsigned flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct core_rpc_request request = {
		.iov = &iov,
		.iov_cnt = 1,
		.len = len,
		.resp = resp,
		.resp_max = resp_max,
		.context = context,
		.comp_flags = comp_flags,
		.flags = flags,
	};

	return core_rpc_call_announced(ep, dest, &request);
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
	if (call->op.queued) {
		core_rpc_call_end(call);
		return 0;
	}
	call->cancelled = true;
	call->plain = false;
	return 0;
}

int core_rpc_release_resp(struct core_ep *ep, uint64_t data)
{
	struct core_rpc_handle *handle =
		data <= UINT32_MAX ? util_idmap_lookup(&ep->rpc.retained, (uint32_t)data) : NULL;

	if (!handle)
		return -FI_EINVAL;
	util_idmap_release(&ep->rpc.retained, (uint32_t)data);
	core_rpc_handle_free(&ep->rpc, handle);
	return 0;
}

/** Returns the channel to a peer: 0, -FI_EAGAIN if a handshake is in progress, or -FI_E*. */
static int core_rpc_chan(struct core_ep *ep, fi_addr_t dest, struct core_chan **chan)
{
	struct core_peer *peer = core_peer_get(ep, dest);
	int ret;

	if (!peer)
		return core_peer_missing(ep, dest);
	*chan = peer->chan;
	if (peer->state == CORE_PEER_UP)
		return 0;
	ret = core_peer_connect(peer);
	return ret ? ret : -FI_EAGAIN;
}

int core_rpc_limits(struct core_ep *ep, fi_addr_t dest, size_t *request, size_t *resp_max)
{
	struct core_chan *chan;
	int ret = core_rpc_chan(ep, dest, &chan);

	if (ret)
		return ret;
	*request = chan->eager_max < CORE_RPC_QUEUE_BYTES ? chan->eager_max : CORE_RPC_QUEUE_BYTES;
	*resp_max = chan->peer->rpc_resp_lim;
	return 0;
}

ssize_t core_rpc_room(struct core_ep *ep, fi_addr_t dest, size_t len, size_t resp_max)
{
	struct core_chan *chan;
	int ret = core_rpc_chan(ep, dest, &chan);

	if (ret)
		return ret;
	if (!core_rpc_fits(chan->peer, len, resp_max))
		return -FI_EMSGSIZE;
	if (chan->peer->holds)
		return core_rpc_queue_room(ep, len);
	if (!util_list_is_empty(&chan->peer->tx_queue))
		return 0;
	return (ssize_t)chan->ops->call_room(chan, len, (uint32_t)resp_max);
}

int core_rpc_shortage(struct core_ep *ep, fi_addr_t dest, size_t len, size_t resp_max)
{
	struct core_peer *peer = core_peer_get(ep, dest);
	const struct core_chan *chan;

	if (!peer)
		return core_peer_missing(ep, dest);
	if (resp_max > CORE_RPC_RESP_MAX || len > CORE_RPC_QUEUE_BYTES)
		return -FI_EMSGSIZE;
	if (peer->state == CORE_PEER_UP && !core_rpc_fits(peer, len, resp_max))
		return -FI_EMSGSIZE;
	if (core_rpc_must_queue(peer))
		return core_rpc_may_queue(ep, len) ? CORE_SHORT_NONE : CORE_SHORT_CONNECTION;
	chan = peer->chan;
	if (!util_list_is_empty(&peer->tx_queue))
		return CORE_SHORT_QUEUE;
	return (int)chan->ops->call_shortage(chan, len, (uint32_t)resp_max);
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
		core_rpc_flush_all(&ep->unnamed);
		return 0;
	}
	peer = core_peer_get(ep, dest);
	if (!peer)
		return core_peer_missing(ep, dest);
	if (peer->chan)
		peer->chan->ops->flush(peer->chan);
	return 0;
}
