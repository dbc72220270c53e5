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
