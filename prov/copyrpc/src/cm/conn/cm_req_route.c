/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The routes of a request, tried one after the other: see cm_req_route.h. */
#include "cm/conn/cm_req_route.h"

#include <string.h>

#include "cm/ep/cm_ep.h"

void cm_req_route_next(struct cm_req *req)
{
	req->route_tries = 0;
	for (uint32_t i = 0; i < req->route_cnt; i++) {
		req->route_at = (req->route_at + 1) % req->route_cnt;
		req->has_tried_all |= !req->route_at;
		if (!(req->routes_wrong >> req->route_at & 1))
			return;
	}
}

void cm_req_route_choose(struct cm_req *req)
{
	bool is_refused = req->routes_refused >> req->route_at & 1;
	uint32_t tries = req->has_tried_all ? 1 : CM_REQ_ROUTE_TRIES;

	if (req->route_cnt > 1 && (is_refused || req->route_tries >= tries))
		cm_req_route_next(req);
}

void cm_req_route_find(struct cm_req *req)
{
	const struct cm_peer *peer = req->peer;
	union cm_addr list[UTIL_NAME_ADDRS] = { peer->nodes[0].addr }; /* each peer has a node */
	struct cm_route *routes = req->routes;

	for (uint32_t i = 1; i < peer->node_cnt; i++)
		list[i] = peer->nodes[i].addr;
	req->route_cnt = cm_route_list(peer->cep, list, peer->node_cnt, routes);
	req->route_at = req->route_tries = 0;
	req->routes_refused = 0;
	req->has_tried_all = false;
	for (uint32_t i = 1; i < req->route_cnt; i++) {
		struct cm_route one = routes[i];

		if (one.sock != peer->via.sock || !cm_addr_is_equal(&one.to, &peer->via.to))
			continue;
		memmove(&routes[1], &routes[0], i * sizeof(one));
		routes[0] = one;
	}
}

uint32_t cm_req_route_via(const struct cm_req *req, const struct cm_route *via)
{
	uint32_t at;

	for (at = 0; at < req->route_cnt; at++)
		if (req->routes[at].sock == via->sock &&
		    cm_addr_is_equal(&req->routes[at].to, &via->to))
			break;
	return at;
}

uint32_t cm_req_route_index(const struct cm_req *req, const union cm_addr *to)
{
	uint32_t at = req->route_at;

	/* Several routes lead to one address only from several sockets: the last one replied. */
	if (at < req->route_cnt && cm_addr_is_equal(&req->routes[at].to, to))
		return at;
	for (at = 0; at < req->route_cnt; at++)
		if (cm_addr_is_equal(&req->routes[at].to, to))
			break;
	return at;
}
