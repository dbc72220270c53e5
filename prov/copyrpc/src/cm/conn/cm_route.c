/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Routes to the addresses of a peer, best first: see cm_route.h. */
#include "cm/conn/cm_route.h"

#include <unistd.h>

#include "cm/ep/cm_ep.h"

#define CM_ROUTE_NONE UINT32_MAX

/* Returns the socket in the network of `to`, or CM_ROUTE_NONE. */
static uint32_t cm_route_near(const struct cm_ep *cep, const union cm_addr *to)
{
	for (uint32_t i = 0; i < cep->sock_cnt; i++)
		if (cm_addr_is_near(cm_ep_sock_addr(cep, i), to, cep->socks[i].prefix_len))
			return i;
	return CM_ROUTE_NONE;
}

/*
 * Returns whether a route leads to `to`, and its source address. Connecting a UDP socket sends
 * nothing.
 */
static bool cm_route_source(const union cm_addr *to, union cm_addr *source)
{
	int fd = socket(to->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*source);
	union cm_addr raw;
	bool found;

	if (fd < 0)
		return false;
	found = !connect(fd, &to->sa, cm_addr_len(to)) && !getsockname(fd, &raw.sa, &len) &&
		!cm_addr_import(&raw.sa, source);
	close(fd);
	return found;
}

/* Returns the socket at the address that packets to `to` leave from: the first if none is. */
static uint32_t cm_route_far(const struct cm_ep *cep, const union cm_addr *to)
{
	union cm_addr source;

	if (!cm_route_source(to, &source))
		return CM_ROUTE_NONE;
	for (uint32_t i = 0; i < cep->sock_cnt; i++) {
		cm_addr_set_port(&source, cm_addr_port(cm_ep_sock_addr(cep, i)));
		if (cm_addr_is_equal(&source, cm_ep_sock_addr(cep, i)))
			return i;
	}
	return 0;
}

static unsigned cm_route_of_one(const struct cm_ep *cep, const union cm_addr *to,
				struct cm_route *routes)
{
	uint32_t sock;

	routes[0] = (struct cm_route){ .to = *to };
	if (cep->sock_cnt < 2 || cep->is_private || cm_ep_is_local(cep, to))
		return 1;
	sock = cm_route_near(cep, to);
	if (sock == CM_ROUTE_NONE)
		sock = cm_route_far(cep, to);
	if (!sock || sock == CM_ROUTE_NONE)
		return 1;
	routes[1] = (struct cm_route){ .to = *to, .sock = sock };
	return 2;
}

/* Returns a bit for each address that is one of this host. */
static unsigned cm_route_local(const struct cm_ep *cep, const union cm_addr *addrs, unsigned cnt)
{
	unsigned local = 0;

	for (unsigned i = 0; i < cnt; i++)
		local |= (unsigned)cm_ep_is_local(cep, &addrs[i]) << i;
	return local;
}

/*
 * Adds the routes of one kind to those found: 0: in a network of a socket, 1: behind a route,
 * 2: of this host.
 */
static unsigned cm_route_add(const struct cm_ep *cep, const union cm_addr *to, bool is_local,
			     unsigned kind, struct cm_route *routes, unsigned found)
{
	uint32_t sock = is_local ? 0 : cm_route_near(cep, to);
	unsigned own = is_local ? 2 : sock == CM_ROUTE_NONE;

	if (own != kind)
		return found;
	if (own == 1)
		sock = cm_route_far(cep, to);
	if (sock != CM_ROUTE_NONE)
		routes[found++] = (struct cm_route){ .to = *to, .sock = sock };
	return found;
}

unsigned cm_route_list(const struct cm_ep *cep, const union cm_addr *addrs, unsigned cnt,
		       struct cm_route *routes)
{
	unsigned local, found = 0;

	if (cnt == 1)
		return cm_route_of_one(cep, addrs, routes);
	local = cm_route_local(cep, addrs, cnt);
	routes[0] = (struct cm_route){ .to = addrs[0] };
	if (local == (1u << cnt) - 1)
		return 1;
	for (unsigned kind = 0; kind < 3; kind++)
		for (unsigned i = 0; i < cnt; i++)
			found = cm_route_add(cep, &addrs[i], local >> i & 1, kind, routes, found);
	return found ? found : 1;
}
