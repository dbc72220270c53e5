/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* State of a CM endpoint: address, statistics, the peer it admits. See cm_ep.h. */
#include "cm/ep/cm_ep.h"

#include <string.h>

#include "cm/base/cm_local.h"

void cm_ep_addr(const struct cm_ep *cep, struct sockaddr_storage *addr)
{
	union cm_addr list[UTIL_NAME_ADDRS] = { cep->addr };

	for (uint32_t i = 1; i < cep->sock_cnt; i++)
		list[i] = cep->socks[i].addr;
	cm_addr_export_name(list, cep->sock_cnt > 1 ? cep->sock_cnt : 1, addr);
}

void cm_ep_local_addr(const struct cm_ep *cep, uint32_t sock, struct sockaddr_storage *addr)
{
	cm_addr_export(cm_ep_sock_addr(cep, sock), addr);
}

uint64_t cm_ep_incarnation(const struct cm_ep *cep)
{
	return cep->inc;
}

void cm_ep_stats(struct cm_ep *cep, struct copyrpc_stats_handshakes *stats)
{
	cm_node_lock(cep->node);
	*stats = *cep->stats;
	cm_node_unlock(cep->node);
}

void cm_ep_count_in(struct cm_ep *cep, struct copyrpc_stats_handshakes *stats)
{
	cm_node_lock(cep->node);
	*stats = *cep->stats;
	cep->stats = stats;
	cm_node_unlock(cep->node);
}

void cm_ep_set_down(struct cm_ep *cep, uint32_t paths)
{
	__atomic_store_n(&cep->down_paths, paths, __ATOMIC_RELAXED);
}

uint32_t cm_ep_sound_paths(const struct cm_ep *cep, uint32_t paths)
{
	uint32_t sound = paths & ~__atomic_load_n(&cep->down_paths, __ATOMIC_RELAXED);

	return sound ? sound : paths;
}

void cm_ep_make_private(struct cm_ep *cep)
{
	cm_node_lock(cep->node);
	cm_ep_admit(cep, NULL, 0);
	cm_node_unlock(cep->node);
}

void cm_ep_admit(struct cm_ep *cep, const union cm_addr *addr, uint64_t inc)
{
	static const union cm_addr none;

	cep->is_private = true;
	cep->admitted = addr ? *addr : none;
	cep->admitted_inc = inc;
}

bool cm_ep_admits(const struct cm_ep *cep, const union cm_addr *addr, uint64_t inc)
{
	return !cep->is_private ||
	       (inc == cep->admitted_inc && cm_addr_is_equal(addr, &cep->admitted));
}

uint32_t cm_ep_host(const struct cm_ep *cep, const union cm_addr *addr)
{
	union cm_addr host;

	memset(&host, 0, sizeof(host));
	host.sa.sa_family = addr->sa.sa_family;
	if (addr->sa.sa_family == AF_INET)
		host.in.sin_addr = addr->in.sin_addr;
	else
		memcpy(&host.in6.sin6_addr, &addr->in6.sin6_addr, 8);
	return (uint32_t)(cm_mac_table_hash(&cep->jar, &host) % CM_EP_HOSTS);
}

int cm_ep_find_local(const struct cm_ep *cep, const union cm_addr *addr)
{
	const struct cm_node *node = cep->node;

	return node->cfg.is_local ? node->cfg.is_local(&addr->sa) : cm_local_has(addr);
}

bool cm_ep_is_local(const struct cm_ep *cep, const union cm_addr *addr)
{
	return cm_ep_find_local(cep, addr) > 0;
}

int cm_ep_needs_proof(const struct cm_ep *cep, const union cm_addr *addr)
{
	return cep->node->key.is_set ? 0 : cm_ep_find_local(cep, addr);
}
