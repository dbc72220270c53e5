/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hot path of calls: core_rpc_call and core_rpc_reply for one buffer, and the intake of requests.
 * Inlined into the calls of the extension in ofi/xfer.
 *
 * Taken for a connected peer without queued operations and for a request with its bytes. Everything
 * else falls back to core_rpc_call.c and core_rpc_serve.c, with the same result.
 *
 * fabtests/scripts/cost counts the instructions.
 */
#ifndef CORE_RPC_CORE_RPC_POST_H
#define CORE_RPC_CORE_RPC_POST_H

#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/rpc/core_rpc.h"
#include "util/bits.h"
#include "util/probe.h"

/** Sets the arguments of a call. */
UTIL_INLINE void core_rpc_call_init(struct core_rpc_call *call, void *resp, size_t resp_max,
				    void *context, uint64_t comp_flags)
{
	call->context = context;
	call->resp = resp;
	call->comp_flags = comp_flags;
	call->resp_max = (uint32_t)resp_max;
	call->cancelled = false;
	call->plain = !(comp_flags & CORE_RPC_RETAIN);
	call->copy = NULL;
}

/** Prepares a call that is sent at once: linked in peer->tx; wait_link is not used. */
UTIL_INLINE void core_rpc_call_fill(struct core_rpc_call *call, struct core_peer *peer, void *resp,
				    size_t resp_max, void *context, uint64_t comp_flags)
{
	core_rpc_call_init(call, resp, resp_max, context, comp_flags);
	call->op.ops = &core_rpc_op_ops;
	call->op.peer = peer;
	call->op.queued = false;
	call->op.watched = false;
	call->op.fence = false;
	call->op.reads = false;
	util_list_push_back(&peer->tx, &call->op.peer_link);
}

/** Hot path of core_rpc_call for one buffer. */
UTIL_INLINE ssize_t core_rpc_call_buf(struct core_ep *ep, const void *buf, size_t len, void *resp,
				      size_t resp_max, fi_addr_t dest, void *context,
				      uint64_t comp_flags, unsigned flags)
{
	struct core_peer *peer = core_peer_lookup(ep, dest);
	struct core_rpc_call *call = util_pool_first(&ep->rpc.calls);
	int ret;

	UTIL_PROBE_OP(send, ep, dest, context, len);
	if (UTIL_UNLIKELY(!peer || !call || len >= peer->eager_end ||
			  resp_max > peer->rpc_resp_lim))
		return core_rpc_call_buf_cold(ep, buf, len, resp, resp_max, dest, context,
					      comp_flags, flags);
	util_pool_take(&ep->rpc.calls, call);
	core_rpc_call_fill(call, peer, resp, resp_max, context, comp_flags);
	ret = peer->chan->ops->call_buf(peer->chan, wire_rpc_word((uint32_t)resp_max), buf, len,
					(uint32_t)resp_max, &call->op,
					flags & CORE_RPC_MORE ? CORE_SEND_MORE : 0);
	return UTIL_LIKELY(!ret) ? 0 : core_rpc_call_undo_cold(call, ret);
}

/** Passes the `cnt` oldest requests, those before `next` in the intake, to the user. */
UTIL_INLINE void core_rpc_pop_intake(struct core_ep *ep, struct util_list *next, size_t cnt)
{
	struct util_list *head = &ep->rpc.intake;

	head->next = next;
	next->prev = head;
	if (ep->rpc.listens && ep->rx.cq)
		ep->rx.cq->intake_cnt -= (uint32_t)cnt;
}

/** Hot path of core_rpc_reply for one buffer. */
UTIL_INLINE ssize_t core_rpc_reply_buf(struct core_ep *ep, struct core_rpc_handle *handle,
				       uint64_t seq, const void *buf, size_t len, unsigned flags)
{
	struct core_chan *chan = handle->chan;
	int ret;

	if (UTIL_UNLIKELY(handle->seq != seq || !seq || len > handle->resp_max ||
			  !handle->has_bytes || !chan->peer))
		return core_rpc_reply_buf_cold(ep, handle, seq, buf, len, flags);
	ret = chan->ops->reply_release(chan, handle->ref, handle->retain, buf, len,
				       flags & CORE_RPC_MORE ? CORE_SEND_MORE : 0);
	if (UTIL_UNLIKELY(ret))
		return ret;
	handle->seq = 0;
	util_pool_release(&ep->rpc.handles, handle);
	chan->retained--;
	return 0;
}

#endif
