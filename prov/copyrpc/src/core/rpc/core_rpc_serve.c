/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Callee side: requests from arrival to reply. See core_rpc.h.
 *
 * A request stays in the ring from arrival to reply, and a handle refers to it. First it is in the
 * intake, a FIFO over all callers of the endpoint; core_rpc_pop_intake passes it to the user, to be
 * replied to in any order. If requests are not taken, only their callers run out of ring space and
 * credit. A response has space reserved at admission (core_chan.h), so it cannot fail for lack of
 * it.
 */
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/rpc/core_rpc.h"
#include "util/bits.h"
#include "wire/wire_op.h"

/** Grows the pool of handles and retries. */
static __attribute__((noinline)) enum core_rx_verdict core_rpc_on_call_cold(
	struct core_chan *chan, struct core_call_ref ref, const uint8_t *data, uint32_t len,
	core_retain_t retain)
{
	if (util_pool_grow(&chan->peer->ep->rpc.handles))
		return CORE_RX_BAD;
	return core_rpc_on_call(chan, ref, data, len, retain);
}

/** Notifies a thread that sleeps on the queue. */
static __attribute__((noinline)) enum core_rx_verdict core_rpc_notify_cold(struct core_cq *cq)
{
	cq->notify(cq);
	return CORE_RX_RETAIN;
}

enum core_rx_verdict core_rpc_on_call(struct core_chan *chan, struct core_call_ref ref,
				      const uint8_t *data, uint32_t len, core_retain_t retain)
{
	struct core_ep *ep = chan->peer->ep;
	struct core_rpc_handle *handle = util_pool_first(&ep->rpc.handles);
	uint32_t word, resp_max;

	memcpy(&word, data, sizeof(word));
	resp_max = wire_rpc_resp_max(word);
	if (UTIL_UNLIKELY((word & WIRE_RPC_UNKNOWN) || resp_max > ref.resp_max))
		return CORE_RX_BAD;
	if (UTIL_UNLIKELY(!handle))
		return core_rpc_on_call_cold(chan, ref, data, len, retain);
	core_rpc_handle_alloc(&ep->rpc, handle, chan);
	handle->data = data + sizeof(word);
	handle->retain = retain;
	handle->ref = ref;
	handle->len = len - (uint32_t)sizeof(word);
	handle->resp_max = resp_max;
	util_list_push_back(&ep->rpc.intake, &handle->link);
	if (!ep->rpc.listens || !ep->rx.cq)
		return CORE_RX_RETAIN;
	ep->rx.cq->intake_cnt++;
	return UTIL_LIKELY(!ep->rx.cq->notify) ? CORE_RX_RETAIN : core_rpc_notify_cold(ep->rx.cq);
}

void core_rpc_unlist(struct core_ep *ep, struct core_rpc_handle *handle)
{
	util_list_remove(&handle->link);
	if (ep->rpc.listens && ep->rx.cq)
		ep->rx.cq->intake_cnt--;
}

static uint32_t core_rpc_intake_cnt(const struct core_ep *ep)
{
	const struct util_list *it;
	uint32_t cnt = 0;

	for (it = ep->rpc.intake.next; it != &ep->rpc.intake; it = it->next)
		cnt++;
	return cnt;
}

void core_rpc_listen(struct core_ep *ep)
{
	if (ep->rpc.listens)
		return;
	ep->rpc.listens = true;
	/* Before core_ep_open there is no intake. */
	if (ep->rx.cq && ep->eep && !util_list_is_empty(&ep->rpc.intake))
		core_cq_add_intake(ep->rx.cq, core_rpc_intake_cnt(ep));
}

void core_rpc_unlisten(struct core_ep *ep)
{
	if (ep->rpc.listens && ep->rx.cq)
		ep->rx.cq->intake_cnt -= core_rpc_intake_cnt(ep);
	ep->rpc.listens = false;
}

ssize_t core_rpc_reply(struct core_ep *ep, struct core_rpc_handle *handle, uint64_t seq,
		       const struct iovec *iov, size_t iov_cnt, size_t len, unsigned flags)
{
	struct core_chan *chan = handle->chan;
	ssize_t ret = -FI_ECONNRESET;

	if (UTIL_UNLIKELY(!seq || handle->seq != seq))
		return -FI_EINVAL;
	if (UTIL_UNLIKELY(len > handle->resp_max))
		return -FI_EMSGSIZE;
	if (UTIL_LIKELY(chan->peer != NULL))
		ret = chan->ops->reply(chan, handle->ref, iov, iov_cnt, len,
				       flags & CORE_RPC_MORE ? CORE_SEND_MORE : 0);
	core_rpc_handle_free(&ep->rpc, handle);
	return ret;
}

ssize_t core_rpc_reply_buf_cold(struct core_ep *ep, struct core_rpc_handle *handle, uint64_t seq,
				const void *buf, size_t len, unsigned flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return core_rpc_reply(ep, handle, seq, &iov, 1, len, flags);
}

int core_rpc_release(struct core_ep *ep, struct core_rpc_handle *handle, uint64_t seq)
{
	if (!seq || handle->seq != seq)
		return -FI_EINVAL;
	core_rpc_handle_release(handle);
	return 0;
}
