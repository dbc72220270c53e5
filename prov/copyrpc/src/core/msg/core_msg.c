/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messaging's part of an endpoint. See core_msg.h. */
#include "core/msg/core_msg.h"

#include <rdma/fi_errno.h>

#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/msg/core_done.h"
#include "core/msg/core_match.h"
#include "core/msg/core_req.h"
#include "core/msg/core_rx.h"
#include "core/msg/core_srx.h"

int core_msg_ep_open(struct core_ep *ep)
{
	util_list_init(&ep->claimed);
	util_pool_init(&ep->tx_reqs, sizeof(struct core_tx_req), CORE_EP_POOL_CHUNK, 0);
	util_pool_init(&ep->rx_reqs, sizeof(struct core_rx_req), CORE_EP_POOL_CHUNK, 0);
	util_pool_init(&ep->unexps, sizeof(struct core_unexp), CORE_EP_POOL_CHUNK, 0);
	util_pool_init(&ep->dones, sizeof(struct core_done), CORE_EP_POOL_CHUNK, 0);
	util_idmap_init(&ep->tx_ids);
	util_idmap_init(&ep->rx_ids);
	ep->tagged = core_match_open();
	ep->msg = core_match_open();
	if (ep->tagged && ep->msg)
		return 0;
	core_msg_ep_close(ep);
	return -FI_ENOMEM;
}

void core_msg_ep_stop(struct core_ep *ep)
{
	core_srx_leave(ep);
	core_rx_drop_all(ep);
}

/** Returns true if the endpoint shows the receives in `rx`: its own, or of a shared context. */
static bool core_msg_shows(const struct core_ep *ep, const struct core_ep *rx)
{
	return rx == ep || rx->shown_by == ep;
}

/** Oldest receives that are compared: one that waits for long is among them. */
#define CORE_MSG_OLDEST 64u

/** Returns the number of the oldest receive from `source`, counted from 1; 0: none. */
static uint64_t core_msg_oldest(struct core_match *m, uint64_t source)
{
	const struct util_list *head = core_match_posted(m), *it = head->next;
	const struct core_match_recv *recv;

	for (unsigned i = 0; it != head && i < CORE_MSG_OLDEST; i++, it = it->next) {
		recv = UTIL_CONTAINER_OF(it, struct core_match_recv, order);
		if (recv->src == source)
			return recv->seq + 1;
	}
	return 0;
}

/** Implements core_module.peer_awaited. Receives of a shared context belong to no endpoint. */
void core_msg_peer_awaited(const struct core_peer *peer, uint64_t *number)
{
	const struct core_ep *ep = peer->ep;
	uint64_t tagged, plain;

	if (!ep->directed || ep->srx)
		return;
	tagged = core_msg_oldest(ep->tagged, peer->id);
	plain = tagged ? 0 : core_msg_oldest(ep->msg, peer->id);
	if (tagged || plain)
		*number = tagged ? tagged << 1 | 1 : plain << 1;
}

void core_msg_ep_show(struct core_ep *ep)
{
	const struct core_ep *rx = core_ep_rx(ep);
	struct copyrpc_stats_endpoint *stats = ep->stats;

	if (!core_msg_shows(ep, rx)) {
		stats->posted_now = 0;
		stats->unexpected_queue = 0;
		return;
	}
	stats->posted_now = core_match_posted_cnt(rx->tagged) + core_match_posted_cnt(rx->msg);
	stats->posted_most = rx->rx_reqs.used_most;
	stats->unexpected_queue = rx->tagged->unexpected_cnt + rx->msg->unexpected_cnt;
}

void core_msg_ep_close(struct core_ep *ep)
{
	if (ep->tagged)
		core_match_close(ep->tagged);
	if (ep->msg)
		core_match_close(ep->msg);
	util_pool_fini(&ep->tx_reqs);
	util_pool_fini(&ep->rx_reqs);
	util_pool_fini(&ep->unexps);
	util_pool_fini(&ep->dones);
	util_idmap_fini(&ep->tx_ids);
	util_idmap_fini(&ep->rx_ids);
}
