/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names, routes and text of addresses: see cpr_addr.h. */
#include "ofi/base/cpr_addr.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/iface.h"
#include "util/iface_filter.h"
#include "util/param.h"

#define CPR_ADDR_NODE_MAX 256

uint32_t cpr_addr_format(int family)
{
	switch (family) {
	case AF_INET: return FI_SOCKADDR_IN;
	case AF_INET6: return FI_SOCKADDR_IN6;
	default: return FI_FORMAT_UNSPEC;
	}
}

int cpr_addr_family(uint32_t format)
{
	switch (format) {
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR: return AF_UNSPEC;
	case FI_SOCKADDR_IN: return AF_INET;
	case FI_SOCKADDR_IN6: return AF_INET6;
	default: return -1;
	}
}

size_t cpr_addr_len(uint32_t format)
{
	switch (format) {
	case FI_SOCKADDR_IN6: return sizeof(struct sockaddr_in6);
	case FI_ADDR_IB_UD: return CPR_ADDR_IB_UD_LEN;
	default: return sizeof(struct sockaddr_in);
	}
}

/* getaddrinfo accepts any number and truncates it to 16 bits: "70000" would be port 4464. */
static bool cpr_addr_is_service(const char *service)
{
	char *end;
	unsigned long port;

	if (!service || service[0] < '0' || service[0] > '9')
		return true;
	port = strtoul(service, &end, 10);
	return *end || port <= UINT16_MAX;
}

/* Resolves a name. The first address of the family that endpoints have here is used. */
static int cpr_addr_lookup(const char *node, const char *service, int family, int ai_flags,
			   struct sockaddr_storage *addr)
{
	struct addrinfo hints = { .ai_family = family,
				  .ai_socktype = SOCK_DGRAM,
				  .ai_flags = ai_flags };
	struct addrinfo *list, *ai, *best = NULL;
	int usual = util_iface_family(util_params.iface);

	if (!cpr_addr_is_service(service) || getaddrinfo(node, service, &hints, &list))
		return -FI_ENODATA;
	for (ai = list; ai; ai = ai->ai_next) {
		if (!best && (ai->ai_family == AF_INET || ai->ai_family == AF_INET6))
			best = ai;
		if (ai->ai_family == usual) {
			best = ai;
			break;
		}
	}
	if (best) {
		memset(addr, 0, sizeof(*addr));
		memcpy(addr, best->ai_addr, best->ai_addrlen);
	}
	freeaddrinfo(list);
	return best ? 0 : -FI_ENODATA;
}

/* Splits "//host:port" or "//[host]:port"; both parts point into `buf`. */
static int cpr_addr_split(char *buf, char **node, char **service)
{
	char *end;

	if (*buf == '[') {
		*node = buf + 1;
		end = strchr(buf, ']');
		if (!end || end[1] != ':')
			return -FI_ENODATA;
		*end++ = '\0';
	} else {
		*node = buf;
		end = strrchr(buf, ':');
		if (!end)
			return -FI_ENODATA;
	}
	*end = '\0';
	*service = end + 1;
	return 0;
}

/* Parses FI_ADDR_STR: "fi_sockaddr_in://host:port" and the forms for the other families. */
static int cpr_addr_parse(const char *str, int family, struct sockaddr_storage *addr)
{
	static const struct {
		const char *prefix;
		int family;
	} kinds[] = { { "fi_sockaddr://", AF_UNSPEC },
		      { "fi_sockaddr_in://", AF_INET },
		      { "fi_sockaddr_in6://", AF_INET6 } };
	char buf[CPR_ADDR_NODE_MAX];
	char *node, *service;
	size_t i, len;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		len = strlen(kinds[i].prefix);
		if (strncmp(str, kinds[i].prefix, len))
			continue;
		if (family != AF_UNSPEC && kinds[i].family != AF_UNSPEC &&
		    kinds[i].family != family)
			return -FI_ENODATA;
		if ((size_t)snprintf(buf, sizeof(buf), "%s", str + len) >= sizeof(buf) ||
		    cpr_addr_split(buf, &node, &service))
			return -FI_ENODATA;
		return cpr_addr_lookup(node, service, family ? family : kinds[i].family, 0, addr);
	}
	return -FI_ENODATA;
}

int cpr_addr_resolve(const char *node, const char *service, int family, int ai_flags,
		     struct sockaddr_storage *addr)
{
	if (node && !service && strstr(node, "://"))
		return cpr_addr_parse(node, family, addr);
	if (!node && !service)
		return -FI_ENODATA;
	return cpr_addr_lookup(node, service, family, ai_flags, addr);
}

static void cpr_addr_set_port(struct sockaddr_storage *addr, uint16_t port)
{
	if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)addr)->sin_port = htons(port);
}

/*
 * Writes the source address that the routing table picks for `dest`. Connecting a UDP socket
 * selects the source and sends nothing.
 */
static int cpr_addr_route(int family, struct sockaddr_storage *dest, struct sockaddr_storage *addr)
{
	socklen_t len = sizeof(*addr);
	int ret = -FI_ENODATA;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return ret;
	cpr_addr_set_port(dest, 9);
	memset(addr, 0, sizeof(*addr));
	if (!connect(fd, (struct sockaddr *)dest,
		     (socklen_t)cpr_addr_len(cpr_addr_format(family))) &&
	    !getsockname(fd, (struct sockaddr *)addr, &len))
		ret = 0;
	close(fd);
	return ret;
}

/* Returns whether FI_COPYRPC_IFACE permits the address. */
static bool cpr_addr_is_permitted(const struct sockaddr_storage *addr)
{
	struct util_iface list[UTIL_IFACE_MAX];
	unsigned cnt = util_iface_list(addr->ss_family, util_params.iface, list, UTIL_IFACE_MAX);

	for (unsigned i = 0; i < cnt; i++)
		if (util_iface_filter_is_in(&list[i].addr.sa, (const struct sockaddr *)addr,
					    addr->ss_family == AF_INET6 ? 128 : 32))
			return true;
	return false;
}

int cpr_addr_local(int family, const struct sockaddr *dest, struct sockaddr_storage *addr)
{
	struct sockaddr_storage to;
	struct util_iface best;

	if (dest) {
		memset(&to, 0, sizeof(to));
		memcpy(&to, dest, cpr_addr_len(cpr_addr_format(family)));
		if (!cpr_addr_route(family, &to, addr) &&
		    (!util_params.iface || cpr_addr_is_permitted(addr))) {
			cpr_addr_set_port(addr, 0);
			return 0;
		}
	}
	if (!util_iface_list(family, util_params.iface, &best, 1))
		return -FI_ENODATA;
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &best.addr, cpr_addr_len(cpr_addr_format(family)));
	return 0;
}

bool cpr_addr_is_local(const struct sockaddr *addr)
{
	struct sockaddr_storage any_port;
	socklen_t len = (socklen_t)cpr_addr_len(cpr_addr_format(addr->sa_family));
	bool ours;
	int fd = socket(addr->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	memset(&any_port, 0, sizeof(any_port));
	memcpy(&any_port, addr, len);
	cpr_addr_set_port(&any_port, 0);
	ours = !bind(fd, (struct sockaddr *)&any_port, len);
	close(fd);
	return ours;
}

int cpr_addr_copy_out(const struct sockaddr_storage *from, void *addr, size_t *addrlen)
{
	size_t len = cpr_addr_len(cpr_addr_format(from->ss_family));
	size_t room = *addrlen;

	*addrlen = len;
	if (room)
		memcpy(addr, from, room < len ? room : len);
	return room < len ? -FI_ETOOSMALL : 0;
}

size_t cpr_addr_print(const struct sockaddr *addr, char *buf, size_t len)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)addr;
	char host[INET6_ADDRSTRLEN] = "?";
	int need;

	switch (addr->sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &sin->sin_addr, host, sizeof(host));
		need = snprintf(buf, len, "fi_sockaddr_in://%s:%u", host, ntohs(sin->sin_port));
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &sin6->sin6_addr, host, sizeof(host));
		need = snprintf(buf, len, "fi_sockaddr_in6://[%s]:%u", host,
				ntohs(sin6->sin6_port));
		break;
	default:
		need = snprintf(buf, len, "family %u is no address of copyrpc", addr->sa_family);
		break;
	}
	return (size_t)need + 1;
}

/* Writes the form that libfabric writes: GID, and in hexadecimal QP number, LID, P_Key and SL. */
static size_t cpr_addr_print_ud(const uint8_t *addr, char *buf, size_t len)
{
	char gid[INET6_ADDRSTRLEN] = "?";
	uint32_t qpn;
	uint16_t lid, pkey;

	inet_ntop(AF_INET6, addr, gid, sizeof(gid));
	memcpy(&qpn, addr + 16, sizeof(qpn));
	memcpy(&lid, addr + 20, sizeof(lid));
	memcpy(&pkey, addr + 22, sizeof(pkey));
	return (size_t)snprintf(buf, len, "fi_addr_ib_ud://%s:%x/%x/%x/%x", gid, qpn, lid, pkey,
				addr[26]) +
	       1;
}

size_t cpr_addr_print_as(uint32_t format, const void *addr, char *buf, size_t len)
{
	return format == FI_ADDR_IB_UD ? cpr_addr_print_ud(addr, buf, len)
				       : cpr_addr_print(addr, buf, len);
}

static bool cpr_addr_add_be(uint8_t *bytes, size_t len, size_t add)
{
	while (len && add) {
		len--;
		add += bytes[len];
		bytes[len] = (uint8_t)add;
		add >>= 8;
	}
	return !add;
}

bool cpr_addr_step(struct sockaddr_storage *addr, size_t nodes, size_t ports)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *sin = (struct sockaddr_in *)addr;

	if (addr->ss_family == AF_INET6)
		return cpr_addr_add_be(sin6->sin6_addr.s6_addr, 16, nodes) &&
		       cpr_addr_add_be((uint8_t *)&sin6->sin6_port, 2, ports);
	return cpr_addr_add_be((uint8_t *)&sin->sin_addr, 4, nodes) &&
	       cpr_addr_add_be((uint8_t *)&sin->sin_port, 2, ports);
}
