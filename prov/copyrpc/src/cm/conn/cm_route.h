/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Routes to a peer: which of its addresses a request tries, from which socket, in which order.
 *
 * A name has up to three addresses (util/name.h), best first. Those in a network that this endpoint
 * has an address in come first, each from that address; then those that some route leads to. An
 * address without a route is left out. One that is this host's own comes last, if another one is
 * not: most likely the peer is on another host, and both hosts have a bridge with this address. If
 * all are this host's own, the first is enough.
 *
 * A name of one address may be that of a process that knows nothing of further addresses, or has
 * been given none of ours. It is tried from the first socket, and only then from a nearer one.
 *
 * Called by cm_req.c. Asks the kernel for routes; sends nothing.
 */
#ifndef CM_CONN_CM_ROUTE_H
#define CM_CONN_CM_ROUTE_H

#include "cm/base/cm_addr.h"
#include "util/name.h"

#define CM_ROUTES_MAX UTIL_NAME_ADDRS

struct cm_ep;

/**
 * Writes the routes to an endpoint with these addresses, best first. Returns their number, at least
 * 1: without any route there is the one to the first address.
 */
unsigned cm_route_list(const struct cm_ep *cep, const union cm_addr *addrs, unsigned cnt,
		       struct cm_route *routes);

#endif
