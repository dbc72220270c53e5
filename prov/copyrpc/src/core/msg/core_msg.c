/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messaging's part of an endpoint. See core_msg.h. */
#include "core/msg/core_msg.h"

#include <rdma/fi_errno.h>

#include "core/core_ep.h"
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

void core_msg_ep_show(struct core_ep *ep)
{
	const struct core_ep *rx = core_ep_rx(ep);
	struct copyrpc_stats_endpoint *stats = ep->stats;

	if (!core_msg_shows(ep, rx)) {
		stats->posted_now = 0;
		stats->unexpected_queue = 0;
		return;
	}
	stats->posted_now = rx->rx_reqs.used_cnt;
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
	util_idmap_fini(&ep->tx_ids);
	util_idmap_fini(&ep->rx_ids);
}
