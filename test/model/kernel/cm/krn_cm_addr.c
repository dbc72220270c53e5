/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses of the connection manager: binding, and resolution.
 *
 * The host's own routing selects the source address for a destination; the rest is known locally.
 */
#include "model/kernel/cm/krn_cm.h"
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_segment.h"
#include "model/fabric/mdl_table.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>
#include <sys/socket.h>

#define EVENT_ADDR_RESOLVED  0
#define EVENT_ROUTE_RESOLVED 2
#define PORT_FIRST           49152
#define PORT_COUNT           16384

/* Returns the bytes of an address, 0 for a family without IP addresses. */
static socklen_t address_len(const void *address)
{
	const struct sockaddr *sa = address;

	if (sa->sa_family == AF_INET)
		return sizeof(struct sockaddr_in);
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

static uint16_t *port_of(void *address)
{
	return &((struct sockaddr_in *)address)->sin_port; /* offset is equal in both families */
}

static bool is_any(const void *address)
{
	const struct sockaddr_in *v4 = address;
	const struct sockaddr_in6 *v6 = address;

	if (v4->sin_family == AF_INET)
		return v4->sin_addr.s_addr == INADDR_ANY;
	return IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
}

/* Returns true if the host has the address, that is, if a socket can be bound to it. */
static bool is_local(const void *address)
{
	struct sockaddr_in6 copy;
	socklen_t len = address_len(address);
	long fd = MDL_RAW3(socket, ((const struct sockaddr *)address)->sa_family,
			   SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool local;

	if (fd < 0)
		return false;
	memcpy(&copy, address, len);
	*port_of(&copy) = 0;
	local = MDL_RAW3(bind, fd, &copy, len) == 0;
	MDL_RAW1(close, fd);
	return local;
}

static bool port_taken(uint32_t ps, uint16_t port)
{
	for (uint32_t i = 1; i < MDL_CM_MAX; i++) {
		struct mdl_cm_id *id = &mdl_self.seg->cm_id[i];

		if (id->number && id->ps == ps && *port_of(id->src) == port &&
		    (id->state == MDL_CM_BOUND || id->state == MDL_CM_LISTENING) &&
		    !mdl_proc_is_dead(id->proc))
			return true;
	}
	return false;
}

static int take_port(struct mdl_cm_id *id)
{
	uint32_t start = (uint32_t)mdl_now_ns() % PORT_COUNT;

	if (*port_of(id->src))
		return port_taken(id->ps, *port_of(id->src)) ? -EADDRINUSE : 0;
	for (uint32_t n = 0; n < PORT_COUNT; n++) {
		uint16_t port = htobe16((uint16_t)(PORT_FIRST + (start + n) % PORT_COUNT));

		if (port_taken(id->ps, port))
			continue;
		*port_of(id->src) = port;
		return 0;
	}
	return -EADDRNOTAVAIL;
}

int krn_cm_bind_ip(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_bind_ip *req = cmd->in;
	struct mdl_cm_id *id = krn_cm_own(req->id);
	int err;

	if (!id || id->state != MDL_CM_IDLE || !address_len(&req->addr))
		return -EINVAL;
	if (!is_any(&req->addr) && !is_local(&req->addr))
		return -EADDRNOTAVAIL;
	memcpy(id->src, &req->addr, address_len(&req->addr));
	err = take_port(id);
	if (!err)
		id->state = MDL_CM_BOUND;
	return err;
}

/* Finds the source address that the host uses for a destination. */
static int find_source(void *source, const void *dest)
{
	struct sockaddr_in6 copy;
	socklen_t len = address_len(dest);
	long fd = MDL_RAW3(socket, ((const struct sockaddr *)dest)->sa_family,
			   SOCK_DGRAM | SOCK_CLOEXEC, 0);
	long err;

	if (fd < 0)
		return (int)fd;
	memcpy(&copy, dest, len);
	if (!*port_of(&copy))
		*port_of(&copy) = htobe16(1);
	err = MDL_RAW3(connect, fd, &copy, len);
	if (!err)
		err = MDL_RAW3(getsockname, fd, source, &len);
	MDL_RAW1(close, fd);
	return (int)err;
}

int krn_cm_resolve_ip(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_resolve_ip *req = cmd->in;
	struct mdl_cm_id *id = krn_cm_own(req->id);
	int err;

	if (!id || id->state > MDL_CM_BOUND || !address_len(&req->dst_addr))
		return -EINVAL;
	if (id->state == MDL_CM_IDLE) {
		if (address_len(&req->src_addr) && !is_any(&req->src_addr))
			memcpy(id->src, &req->src_addr, address_len(&req->src_addr));
		else if ((err = find_source(id->src, &req->dst_addr)))
			return err;
		id->state = MDL_CM_BOUND;
	}
	memcpy(id->dst, &req->dst_addr, address_len(&req->dst_addr));
	krn_cm_event(id, id->number, id, EVENT_ADDR_RESOLVED, 0, NULL);
	return 0;
}

int krn_cm_resolve_route(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_resolve_route *req = cmd->in;
	struct mdl_cm_id *id = krn_cm_own(req->id);

	if (!id || id->state != MDL_CM_BOUND || !address_len(id->dst))
		return -EINVAL;
	id->routed = 1;
	krn_cm_event(id, id->number, id, EVENT_ROUTE_RESOLVED, 0, NULL);
	return 0;
}

static void fill_path(struct ib_user_path_rec *path, const struct mdl_port *from,
		      const struct mdl_port *to)
{
	uint32_t gid = from->gid_cnt - 1; /* RoCE: the routable GID, version 2 */

	memcpy(path->sgid, from->gid[gid], 16);
	memcpy(path->dgid, to->gid[gid], 16);
	path->slid = htobe16(from->lid);
	path->dlid = htobe16(to->lid);
	path->reversible = 1;
	path->mtu = mdl_self.seg->link == MDL_LINK_ROCE ? 3 : 5;
	path->pkey = htobe16(0xffff);
	path->hop_limit = 64;
	path->numb_path = 1;
	path->mtu_selector = path->rate_selector = path->packet_life_time_selector = 2;
	path->rate = 16;
	path->packet_life_time = 14;
}

int krn_cm_query_route(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_query *req = cmd->in;
	struct mdl_cm_id *id = krn_cm_own(req->id), *peer;
	struct rdma_ucm_query_route_resp resp = { .ibdev_index = 0xffffffff };
	const struct mdl_port *ports = mdl_self.seg->port;

	if (!id)
		return -EINVAL;
	memcpy(&resp.src_addr, id->src, sizeof(id->src));
	memcpy(&resp.dst_addr, id->dst, sizeof(id->dst));
	/* An end bound to the wildcard address has no device yet. */
	if (id->state != MDL_CM_IDLE && !(is_any(id->src) && !address_len(id->dst))) {
		peer = krn_cm_find(id->peer);
		resp.node_guid = htobe64(ports[id->node].guid);
		resp.port_num = 1;
		fill_path(&resp.ib_route[0], &ports[id->node],
			  &ports[peer ? peer->node : id->node]);
		resp.num_paths = id->routed;
	}
	krn_cm_reply(cmd, req->response, &resp, sizeof(resp));
	return 0;
}
