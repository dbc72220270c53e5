/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive contexts (fi_srx_context). Opened and closed by ofi/; used by core_rx.c.
 *
 * A shared receive context is a core_ep without an engine: it has matchers, requests and claimed
 * messages, and no peers. An endpoint that uses one points to it (core_ep.srx). The endpoint's own
 * matchers stay empty, so the hot path fails there and the cold path searches the shared ones. An
 * endpoint without a context pays nothing. A message completes on the CQ and counter of the
 * endpoint where it arrived.
 *
 * The source of a receive is the fi_addr: the endpoints share one AV, but each has its own peer
 * ids. Messages from an address that was not inserted match receives from any source only.
 * A receive directed at a peer that dies stays posted.
 *
 * Completions without an endpoint (a cancelled receive, a peek, one for a message that came to an
 * endpoint that is closed before its end) go to the context's own CQ, or to that of the first
 * endpoint that joined (rx_owner).
 */
#ifndef CORE_MSG_CORE_SRX_H
#define CORE_MSG_CORE_SRX_H

#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/msg/core_match.h"

/**
 * Opens a context. The caller has zeroed `srx` and may have set rx, directed and source. Returns 0
 * or -FI_E*.
 */
int core_srx_open(struct core_ep *srx, struct core_dom *dom);
/** Closes a context that no endpoint uses. */
void core_srx_close(struct core_ep *srx);

/** Attach an open endpoint to `srx`, and detach one that is about to be closed. */
void core_srx_join(struct core_ep *srx, struct core_ep *ep);
void core_srx_leave(struct core_ep *ep);

static inline bool core_ep_is_srx(const struct core_ep *ep)
{
	return !ep->eep;
}

/** Returns the core_ep that has the receives of an endpoint: itself or its shared context. */
static inline struct core_ep *core_ep_rx(struct core_ep *ep)
{
	return ep->srx ? ep->srx : ep;
}

/** Returns the source of the peer's messages for matching in a shared context. */
static inline uint64_t core_srx_source(const struct core_peer *peer)
{
	/* A peer that is not in the AV has a number that no receive can be directed at. */
	return peer->fi_addr == FI_ADDR_NOTAVAIL ? CORE_MATCH_ANY - 1 : peer->fi_addr;
}

#endif
