/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote procedure calls: open and close, and channels with retained memory. See core_rpc.h.
 *
 * A request taken by the user and a retained response are bytes of a ring, counted in
 * core_chan.retained. A channel that ends with a count is stopped, not closed: nothing is received
 * or sent any more, chan->peer is NULL, the memory stays. Freeing the last handle closes it.
 *
 * Tested by test/unit/core/rpc/test_core_rpc.c.
 */
#include "core/rpc/core_rpc.h"

#include "core/core_ep.h"

#define CORE_RPC_POOL_CHUNK 64

void core_rpc_init(struct core_rpc *rpc)
{
	util_pool_init(&rpc->calls, sizeof(struct core_rpc_call), CORE_RPC_POOL_CHUNK, 0);
	util_pool_init(&rpc->handles, sizeof(struct core_rpc_handle), CORE_RPC_POOL_CHUNK, 0);
	util_list_init(&rpc->intake);
	util_list_init(&rpc->stopped);
	util_idmap_init(&rpc->retained);
	rpc->next_seq = 1;
}

void core_rpc_fini(struct core_ep *ep)
{
	struct core_rpc *rpc = &ep->rpc;
	struct core_chan *chan;
	struct util_list *first;

	while ((first = util_list_pop(&rpc->stopped))) {
		chan = UTIL_CONTAINER_OF(first, struct core_chan, stopped_link);
		chan->ops->close(chan);
	}
	util_idmap_fini(&rpc->retained);
	util_pool_fini(&rpc->handles);
	util_pool_fini(&rpc->calls);
}

void core_rpc_close_stopped_cold(struct core_chan *chan)
{
	util_list_remove(&chan->stopped_link);
	chan->ops->close(chan);
}

static void core_rpc_forget_intake(struct core_ep *ep, struct core_chan *chan)
{
	struct util_list *it, *tmp;
	struct core_rpc_handle *handle;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &ep->rpc.intake) {
		handle = UTIL_CONTAINER_OF(it, struct core_rpc_handle, link);
		if (handle->chan != chan)
			continue;
		core_rpc_unlist(ep, handle);
		core_rpc_handle_free(&ep->rpc, handle);
	}
}

void core_rpc_close_chan(struct core_ep *ep, struct core_chan *chan)
{
	core_rpc_forget_intake(ep, chan);
	chan->peer = NULL;
	if (!chan->retained) {
		chan->ops->close(chan);
		return;
	}
	chan->ops->stop(chan);
	util_list_push_back(&ep->rpc.stopped, &chan->stopped_link);
}
