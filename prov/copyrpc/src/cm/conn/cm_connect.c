/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests of an endpoint, by address: see cm_connect.h. */
#include "cm/conn/cm_connect.h"

#include <rdma/fi_errno.h>

#include "cm/conn/cm_req.h"
#include "cm/ep/cm_ep.h"
#include "cm/ep/cm_peer.h"
#include "util/log.h"

static int cm_connect_check(const struct cm_ep *cep, const union cm_addr *to)
{
	char text[CM_ADDR_TEXT_MAX];

	if (to->sa.sa_family == cep->addr.sa.sa_family && cm_addr_is_peer(to) &&
	    !cm_addr_is_equal(to, &cep->addr))
		return 0;
	UTIL_WARN(EP_CTRL,
		  "this endpoint cannot connect to %s: pass the address of another endpoint\n",
		  cm_addr_print(to, text));
	return -FI_EINVAL;
}

int cm_connect_locked(struct cm_ep *cep, const union cm_addr *list, unsigned cnt, bool was_up)
{
	int ret = cm_connect_check(cep, &list[0]);
	struct cm_peer *peer;

	if (ret)
		return ret;
	peer = cm_peer_get_name(cep, list, cnt);
	if (!peer)
		return -FI_ENOMEM;
	if (!peer->req)
		ret = cm_req_open(peer, &list[0], was_up);
	cm_peer_settle(peer);
	return ret;
}

void cm_connect_cancel_locked(struct cm_ep *cep, const union cm_addr *list, unsigned cnt)
{
	struct cm_peer *peer = cm_peer_find_name(cep, list, cnt);

	if (!peer)
		return;
	cm_req_cancel(peer);
	cm_peer_settle(peer);
}

int cm_connect(struct cm_ep *cep, const struct sockaddr *addr, bool was_up)
{
	union cm_addr list[UTIL_NAME_ADDRS];
	unsigned cnt = cm_addr_import_name(addr, list);
	int ret;

	if (!cnt)
		return -FI_EINVAL;
	cm_node_lock(cep->node);
	ret = cm_connect_locked(cep, list, cnt, was_up);
	cm_node_unlock(cep->node);
	return ret;
}

void cm_connect_cancel(struct cm_ep *cep, const struct sockaddr *addr)
{
	union cm_addr list[UTIL_NAME_ADDRS];
	unsigned cnt = cm_addr_import_name(addr, list);

	if (!cnt)
		return;
	cm_node_lock(cep->node);
	cm_connect_cancel_locked(cep, list, cnt);
	cm_node_unlock(cep->node);
}
