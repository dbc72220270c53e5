/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoint: open and close. See core_ep.h. */
#include "core/core_ep.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/rma/core_atomic.h"
#include "core/coll/core_coll.h"
#include "core/core_conn.h"
#include "core/core_dom.h"
#include "core/core_peer.h"
#include "core/msg/core_req.h"
#include "core/msg/core_srx.h"
#include "core/rma/core_rma.h"

#define CORE_EP_POOL_CHUNK 64

static void core_ep_pools_init(struct core_ep *ep)
{
	util_pool_init(&ep->tx_reqs, sizeof(struct core_tx_req), CORE_EP_POOL_CHUNK, 0);
	util_pool_init(&ep->rx_reqs, sizeof(struct core_rx_req), CORE_EP_POOL_CHUNK, 0);
	util_pool_init(&ep->unexps, sizeof(struct core_unexp), CORE_EP_POOL_CHUNK, 0);
	util_pool_init(&ep->atomic_reqs, sizeof(struct core_atomic_req), CORE_EP_POOL_CHUNK, 0);
	util_pool_init(&ep->rma_reqs, sizeof(struct core_rma_req), CORE_EP_POOL_CHUNK, 0);
	util_idmap_init(&ep->tx_ids);
	util_idmap_init(&ep->exposure_ids);
	util_idmap_init(&ep->rx_ids);
	core_rpc_init(&ep->rpc);
}

static void core_ep_pools_fini(struct core_ep *ep)
{
	util_pool_fini(&ep->tx_reqs);
	util_pool_fini(&ep->rx_reqs);
	util_pool_fini(&ep->unexps);
	util_pool_fini(&ep->atomic_reqs);
	util_pool_fini(&ep->rma_reqs);
	util_idmap_fini(&ep->tx_ids);
	util_idmap_fini(&ep->exposure_ids);
	util_idmap_fini(&ep->rx_ids);
}

int core_ep_rx_init(struct core_ep *ep)
{
	util_list_init(&ep->claimed);
	core_ep_pools_init(ep);
	ep->tagged = core_match_open();
	ep->msg = core_match_open();
	if (ep->tagged && ep->msg)
		return 0;
	core_ep_rx_fini(ep);
	return -FI_ENOMEM;
}

void core_ep_rx_fini(struct core_ep *ep)
{
	if (ep->tagged)
		core_match_close(ep->tagged);
	if (ep->msg)
		core_match_close(ep->msg);
	core_ep_pools_fini(ep);
}

int core_ep_open(struct core_ep *ep, struct core_dom *dom, const struct sockaddr *addr)
{
	int ret;

	ep->dom = dom;
	core_comp_update(&ep->tx);
	core_comp_update(&ep->rx);
	util_list_init(&ep->unnamed);
	util_list_init(&ep->known);
	ret = core_ep_rx_init(ep);
	if (ret)
		return ret;
	ret = ep->conn ? core_conn_open(ep->conn, ep) : 0;
	if (ret)
		goto err_fini_rx;
	ret = dom->engine_ops->ep_open(dom->engine, ep, addr, &ep->eep);
	if (ret)
		goto err_close_conn;
	util_list_push_back(&dom->eps, &ep->dom_link);
	return 0;

err_close_conn:
	if (ep->conn)
		core_conn_close(ep->conn);
err_fini_rx:
	core_ep_rx_fini(ep);
	return ret;
}

static bool core_ep_chans_busy(const struct util_list *peers)
{
	const struct util_list *it;
	const struct core_peer *peer;
	bool busy = false;

	/* Tests all channels: some send a request to find out, and these requests overlap. */
	for (it = peers->next; it != peers; it = it->next) {
		peer = UTIL_CONTAINER_OF(it, const struct core_peer, ep_link);
		if (peer->chan && peer->chan->ops->is_busy(peer->chan))
			busy = true;
	}
	return busy;
}

bool core_ep_is_busy(const struct core_ep *ep)
{
	bool known = core_ep_chans_busy(&ep->known);
	bool unnamed = core_ep_chans_busy(&ep->unnamed);

	return ep->tx_open || known || unnamed;
}

void core_ep_close(struct core_ep *ep)
{
	struct util_list *first;

	core_rpc_unlisten(ep);
	/* No completion is written from here on. */
	ep->tx = (struct core_comp){ 0 };
	ep->rx = (struct core_comp){ 0 };
	memset(ep->rma_cntr, 0, sizeof(ep->rma_cntr));
	core_srx_leave(ep);
	core_rx_drop_all(ep);
	while ((first = util_list_first(&ep->known)))
		core_peer_free(UTIL_CONTAINER_OF(first, struct core_peer, ep_link));
	while ((first = util_list_first(&ep->unnamed)))
		core_peer_free(UTIL_CONTAINER_OF(first, struct core_peer, ep_link));
	core_rpc_fini(ep);
	core_coll_fini(ep);
	ep->dom->engine_ops->ep_close(ep->eep);
	core_ep_rx_fini(ep);
	free(ep->peers);
	util_list_remove(&ep->dom_link);
}

void core_ep_addr(const struct core_ep *ep, struct sockaddr_storage *addr)
{
	ep->dom->engine_ops->ep_addr(ep->eep, addr);
}
