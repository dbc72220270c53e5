/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive contexts: see core_srx.h. */
#include "core/msg/core_srx.h"

#include "core/core_dom.h"
#include "core/msg/core_msg.h"
#include "core/msg/core_unexp.h"

int core_srx_open(struct core_ep *srx, struct core_dom *dom)
{
	srx->dom = dom;
	util_list_init(&srx->unnamed);
	util_list_init(&srx->known);
	return core_msg_ep_open(srx);
}

void core_srx_close(struct core_ep *srx)
{
	srx->rx = (struct core_comp){ 0 };
	core_rx_drop_all(srx);
	core_msg_ep_close(srx);
}

void core_srx_join(struct core_ep *srx, struct core_ep *ep)
{
	ep->srx = srx;
	if (!srx->shown_by)
		srx->shown_by = ep;
	if (srx->rx.cq)
		return;
	srx->rx = ep->rx;
	srx->rx_owner = ep;
}

static void core_srx_drop(struct core_ep *ep, struct util_list *msgs)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, msgs) {
		struct core_unexp *in =
			UTIL_CONTAINER_OF(UTIL_CONTAINER_OF(it, struct core_match_msg, order),
					  struct core_unexp, match);

		if (in->ep == ep)
			core_unexp_free(in);
	}
}

static void core_srx_drop_claimed(struct core_ep *ep)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &ep->srx->claimed) {
		struct core_unexp *in = UTIL_CONTAINER_OF(it, struct core_unexp, claim_link);

		if (in->ep == ep)
			core_unexp_free(in);
	}
}

/* Takes the receive queue of another endpoint, since that of rx_owner goes away. */
static void core_srx_find_rx_owner(struct core_ep *srx, const struct core_ep *leaving)
{
	struct util_list *it;

	srx->rx = (struct core_comp){ 0 };
	srx->rx_owner = NULL;
	for (it = srx->dom->eps.next; it != &srx->dom->eps && !srx->rx.cq; it = it->next) {
		struct core_ep *ep = UTIL_CONTAINER_OF(it, struct core_ep, dom_link);

		if (ep != leaving && ep->srx == srx && ep->rx.cq)
			core_srx_join(srx, ep);
	}
}

/* Makes another endpoint show the lengths of the queues, since shown_by goes away. */
static void core_srx_find_shown_by(struct core_ep *srx, const struct core_ep *leaving)
{
	struct util_list *it;

	srx->shown_by = NULL;
	for (it = srx->dom->eps.next; it != &srx->dom->eps && !srx->shown_by; it = it->next) {
		struct core_ep *ep = UTIL_CONTAINER_OF(it, struct core_ep, dom_link);

		if (ep != leaving && ep->srx == srx)
			srx->shown_by = ep;
	}
}

void core_srx_leave(struct core_ep *ep)
{
	struct core_ep *srx = ep->srx;

	if (!srx)
		return;
	core_srx_drop(ep, core_match_unexpected(srx->tagged));
	core_srx_drop(ep, core_match_unexpected(srx->msg));
	core_srx_drop_claimed(ep);
	if (srx->rx_owner == ep)
		core_srx_find_rx_owner(srx, ep);
	if (srx->shown_by == ep)
		core_srx_find_shown_by(srx, ep);
}
