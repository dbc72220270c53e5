/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Socket addresses in canonical form: see cm_addr.h. */
#include "cm/base/cm_addr.h"

#include <arpa/inet.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "util/iface.h"
#include "util/iface_filter.h"
#include "util/name.h"
#include "util/param.h"

static void cm_addr_import_in(const struct sockaddr_in *in, union cm_addr *addr)
{
	addr->in.sin_family = AF_INET;
	addr->in.sin_port = in->sin_port;
	addr->in.sin_addr = in->sin_addr;
}

static void cm_addr_import_in6(const struct sockaddr_in6 *in6, union cm_addr *addr)
{
	if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		addr->in.sin_family = AF_INET;
		addr->in.sin_port = in6->sin6_port;
		memcpy(&addr->in.sin_addr, &in6->sin6_addr.s6_addr[12], 4);
		return;
	}
	addr->in6.sin6_family = AF_INET6;
	addr->in6.sin6_port = in6->sin6_port;
	addr->in6.sin6_addr = in6->sin6_addr;
	if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		addr->in6.sin6_scope_id = in6->sin6_scope_id;
}

int cm_addr_import(const struct sockaddr *sa, union cm_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	switch (sa->sa_family) {
	case AF_INET:
		cm_addr_import_in((const struct sockaddr_in *)(const void *)sa, addr);
		return 0;
	case AF_INET6:
		cm_addr_import_in6((const struct sockaddr_in6 *)(const void *)sa, addr);
		return 0;
	default: return -FI_EINVAL;
	}
}

void cm_addr_export(const union cm_addr *addr, struct sockaddr_storage *ss)
{
	memset(ss, 0, sizeof(*ss));
	memcpy(ss, addr, cm_addr_len(addr));
}

socklen_t cm_addr_len(const union cm_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 ? sizeof(addr->in6) : sizeof(addr->in);
}

uint16_t cm_addr_port(const union cm_addr *addr)
{
	return ntohs(addr->sa.sa_family == AF_INET6 ? addr->in6.sin6_port : addr->in.sin_port);
}

void cm_addr_set_port(union cm_addr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET6)
		addr->in6.sin6_port = htons(port);
	else
		addr->in.sin_port = htons(port);
}

bool cm_addr_is_equal(const union cm_addr *a, const union cm_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

bool cm_addr_is_near(const union cm_addr *a, const union cm_addr *b, unsigned prefix_len)
{
	return util_iface_filter_is_in(&a->sa, &b->sa, prefix_len);
}

bool cm_addr_is_wildcard(const union cm_addr *addr)
{
	if (addr->sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
	return addr->in.sin_addr.s_addr == htonl(INADDR_ANY);
}

bool cm_addr_is_loopback(const union cm_addr *addr)
{
	if (addr->sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr);
	return ntohl(addr->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool cm_addr_is_peer(const union cm_addr *addr)
{
	if (!cm_addr_port(addr) || cm_addr_is_wildcard(addr))
		return false;
	if (addr->sa.sa_family == AF_INET6)
		return !IN6_IS_ADDR_MULTICAST(&addr->in6.sin6_addr);
	return !IN_MULTICAST(ntohl(addr->in.sin_addr.s_addr)) &&
	       addr->in.sin_addr.s_addr != htonl(INADDR_BROADCAST);
}

unsigned cm_addr_import_name(const struct sockaddr *name, union cm_addr *list)
{
	struct in_addr others[UTIL_NAME_OTHERS];
	unsigned cnt;

	if (cm_addr_import(name, &list[0]))
		return 0;
	cnt = util_name_others(name, others);
	for (unsigned i = 0; i < cnt; i++) {
		list[1 + i] = list[0];
		list[1 + i].in.sin_addr = others[i];
	}
	return 1 + cnt;
}

void cm_addr_export_name(const union cm_addr *list, unsigned cnt, struct sockaddr_storage *name)
{
	struct in_addr others[UTIL_NAME_OTHERS];

	cm_addr_export(&list[0], name);
	if (list[0].sa.sa_family != AF_INET)
		return;
	for (unsigned i = 1; i < cnt && i < UTIL_NAME_ADDRS; i++)
		others[i - 1] = list[i].in.sin_addr;
	util_name_set_others((struct sockaddr_in *)name, others, cnt - 1);
}

bool cm_addr_fit_one_name(const union cm_addr *a, const union cm_addr *b)
{
	return a->sa.sa_family == AF_INET && b->sa.sa_family == AF_INET &&
	       a->in.sin_port == b->in.sin_port;
}

const char *cm_addr_print(const union cm_addr *addr, char text[CM_ADDR_TEXT_MAX])
{
	char ip[INET6_ADDRSTRLEN] = "?";
	char scope[16] = "";

	if (addr->sa.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &addr->in6.sin6_addr, ip, sizeof(ip));
		if (addr->in6.sin6_scope_id)
			snprintf(scope, sizeof(scope), "%%%u", addr->in6.sin6_scope_id);
		snprintf(text, CM_ADDR_TEXT_MAX, "[%s%s]:%u", ip, scope, cm_addr_port(addr));
	} else {
		inet_ntop(AF_INET, &addr->in.sin_addr, ip, sizeof(ip));
		snprintf(text, CM_ADDR_TEXT_MAX, "%s:%u", ip, cm_addr_port(addr));
	}
	return text;
}

void cm_addr_to_wire(const union cm_addr *addr, struct wire_cm_addr *wire)
{
	memset(wire, 0, sizeof(*wire));
	wire->port = cm_addr_port(addr);
	if (addr->sa.sa_family == AF_INET6) {
		wire->family = 6;
		wire->scope = addr->in6.sin6_scope_id;
		memcpy(wire->ip, &addr->in6.sin6_addr, 16);
	} else {
		wire->family = 4;
		memcpy(wire->ip, &addr->in.sin_addr, 4);
	}
}

void cm_addr_from_wire(const struct wire_cm_addr *wire, union cm_addr *addr)
{
	union cm_addr raw;

	memset(&raw, 0, sizeof(raw));
	if (wire->family == 6) {
		raw.in6.sin6_family = AF_INET6;
		raw.in6.sin6_port = htons(wire->port);
		raw.in6.sin6_scope_id = wire->scope;
		memcpy(&raw.in6.sin6_addr, wire->ip, 16);
	} else {
		raw.in.sin_family = AF_INET;
		raw.in.sin_port = htons(wire->port);
		memcpy(&raw.in.sin_addr, wire->ip, 4);
	}
	cm_addr_import(&raw.sa, addr);
}

int cm_addr_resolve(union cm_addr *addr)
{
	uint16_t port = cm_addr_port(addr);
	struct util_iface best;

	if (!cm_addr_is_wildcard(addr))
		return 0;
	if (!util_iface_list(addr->sa.sa_family, util_params.iface, &best, 1))
		return -FI_EADDRNOTAVAIL;
	cm_addr_import(&best.addr.sa, addr);
	cm_addr_set_port(addr, port);
	return 0;
}
