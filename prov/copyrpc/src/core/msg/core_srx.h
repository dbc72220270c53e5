/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How do endpoints share receives?
 *
 * A shared receive context is a core_ep without an engine: it has matchers, requests and claimed
 * messages, and no peers. An endpoint that uses it points to it (core_ep.srx); its own matchers
 * stay empty, so that the common path finds nothing there and asks the shared ones in its colder
 * half, and an endpoint without one pays nothing. Messages keep the endpoint they came to, which
 * is where they complete: its queue, its counter.
 *
 * A source, for receives directed at one, is the fi_addr here: the endpoints have one AV, but
 * numbers of their own for its entries. What came from an address before it was inserted matches
 * receives from any source only. A receive directed at a peer that dies stays posted.
 *
 * What concerns no endpoint (a cancelled receive, a peek) is told to the context's own queue, or
 * if it has none, to that of the endpoint that used it first.
 *
 * Shown by test/unit/core/msg/test_core_srx.c.
 */
#ifndef CORE_SRX_H
#define CORE_SRX_H

#include "core/core_ep.h"
#include "core/core_peer.h"

/** The caller zeroed `srx` and may have set rx, directed and source. 0 or -FI_E*. */
int core_srx_open(struct core_ep *srx, struct core_dom *dom);
/** No endpoint uses it. */
void core_srx_close(struct core_ep *srx);

/** `ep` is open and takes its receives from `srx` from now on / is about to be closed. */
void core_srx_join(struct core_ep *srx, struct core_ep *ep);
void core_srx_leave(struct core_ep *ep);

static inline bool core_ep_is_srx(const struct core_ep *ep)
{
	return !ep->eep;
}

/** Whose receives serve this endpoint. */
static inline struct core_ep *core_ep_rx(struct core_ep *ep)
{
	return ep->srx ? ep->srx : ep;
}

/** What matching calls the peer. */
static inline uint64_t core_srx_source(const struct core_peer *peer)
{
	/* No receive is directed at a stranger: any number that is no address will do. */
	return peer->fi_addr == FI_ADDR_NOTAVAIL ? CORE_MATCH_ANY - 1 : peer->fi_addr;
}

#endif
