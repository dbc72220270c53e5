/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoint: open and close. See core_ep.h. */
#include "core/core_ep.h"

#include <stdlib.h>
#include <string.h>

#include "core/core_conn.h"
#include "core/core_dom.h"
#include "core/core_module.h"
#include "core/core_peer.h"
#include "util/stats.h"

static void core_ep_close_modules(struct core_ep *ep, size_t cnt)
{
	while (cnt--)
		if (core_modules[cnt].ep_close)
			core_modules[cnt].ep_close(ep);
}

static int core_ep_open_modules(struct core_ep *ep)
{
	int ret;

	for (size_t i = 0; i < CORE_MODULE_CNT; i++) {
		ret = core_modules[i].ep_open ? core_modules[i].ep_open(ep) : 0;
		if (ret) {
			core_ep_close_modules(ep, i);
			return ret;
		}
	}
	return 0;
}

int core_ep_open(struct core_ep *ep, struct core_dom *dom, const struct sockaddr *addr)
{
	int ret;

	ep->dom = dom;
	ep->stats = &ep->unread;
	core_comp_update(&ep->tx);
	core_comp_update(&ep->rx);
	util_list_init(&ep->unnamed);
	util_list_init(&ep->known);
	util_list_init(&ep->stopped);
	ret = core_ep_open_modules(ep);
	if (ret)
		return ret;
	ret = ep->conn ? core_conn_open(ep->conn, ep) : 0;
	if (ret)
		goto err_close_modules;
	ret = dom->engine_ops->ep_open(dom->progress, ep, addr, &ep->eep);
	if (ret)
		goto err_close_conn;
	util_list_push_back(&dom->eps, &ep->dom_link);
	return 0;

err_close_conn:
	if (ep->conn)
		core_conn_close(ep->conn);
err_close_modules:
	core_ep_close_modules(ep, CORE_MODULE_CNT);
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

void core_ep_close_stopped(struct core_chan *chan)
{
	util_list_remove(&chan->stopped_link);
	chan->ops->close(chan);
}

static void core_ep_close_chans(struct core_ep *ep)
{
	struct util_list *first;

	while ((first = util_list_first(&ep->known)))
		core_peer_free(UTIL_CONTAINER_OF(first, struct core_peer, ep_link));
	while ((first = util_list_first(&ep->unnamed)))
		core_peer_free(UTIL_CONTAINER_OF(first, struct core_peer, ep_link));
	while ((first = util_list_first(&ep->stopped)))
		core_ep_close_stopped(UTIL_CONTAINER_OF(first, struct core_chan, stopped_link));
}

void core_ep_show(struct core_ep *ep)
{
	CORE_MODULES_CALL(ep_show, ep);
	if (ep->tx.cq)
		core_cq_show(ep->tx.cq);
	if (ep->rx.cq && ep->rx.cq != ep->tx.cq)
		core_cq_show(ep->rx.cq);
}

void core_ep_close(struct core_ep *ep)
{
	CORE_MODULES_CALL(ep_stop, ep);
	core_ep_show(ep);
	/* No completion is written from here on, but for receives of a shared context. */
	ep->tx = (struct core_comp){ 0 };
	ep->rx = ep->srx ? ep->srx->rx : (struct core_comp){ 0 };
	memset(ep->rma_cntr, 0, sizeof(ep->rma_cntr));
	core_ep_close_chans(ep);
	ep->dom->engine_ops->ep_close(ep->eep);
	core_ep_close_modules(ep, CORE_MODULE_CNT);
	free(ep->peers);
	util_list_remove(&ep->dom_link);
}

void core_ep_addr(const struct core_ep *ep, struct sockaddr_storage *addr)
{
	ep->dom->engine_ops->ep_addr(ep->eep, addr);
}
