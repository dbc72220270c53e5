/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RPC part of an endpoint: open, close, and the end of a channel. See core_rpc.h.
 *
 * A request taken by the user and a retained response are bytes of a ring, counted in
 * core_chan.retained. The channel outlives its peer until they are freed (core_peer.c).
 */
#include "core/rpc/core_rpc.h"

#include "core/core_ep.h"

int core_rpc_ep_open(struct core_ep *ep)
{
	struct core_rpc *rpc = &ep->rpc;

	util_pool_init(&rpc->calls, sizeof(struct core_rpc_call), CORE_EP_POOL_CHUNK, 0);
	util_pool_init(&rpc->handles, sizeof(struct core_rpc_handle), CORE_EP_POOL_CHUNK, 0);
	util_list_init(&rpc->intake);
	util_idmap_init(&rpc->retained);
	rpc->next_seq = 1;
	return 0;
}

void core_rpc_ep_close(struct core_ep *ep)
{
	util_idmap_fini(&ep->rpc.retained);
	util_pool_fini(&ep->rpc.handles);
	util_pool_fini(&ep->rpc.calls);
}

void core_rpc_chan_down(struct core_ep *ep, struct core_chan *chan)
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
