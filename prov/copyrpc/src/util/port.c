/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ports of sockets: see port.h. */
#include "util/port.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "util/job.h"
#include "util/log.h"
#include "util/param.h"

union util_port_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage storage;
};

static bool util_port_read(const char **at, uint16_t *port)
{
	unsigned long value;
	char *end;

	if (!isdigit((unsigned char)**at))
		return false;
	value = strtoul(*at, &end, 10);
	*at = end;
	*port = (uint16_t)value;
	return value && value <= UINT16_MAX;
}

bool util_port_parse(const char *text, uint16_t *first, uint16_t *last)
{
	if (!util_port_read(&text, first))
		return false;
	*last = *first;
	if (*text == '-') {
		text++;
		if (!util_port_read(&text, last))
			return false;
	}
	return !*text && *first <= *last;
}

static void util_port_set(union util_port_addr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET6)
		addr->in6.sin6_port = htons(port);
	else
		addr->in.sin_port = htons(port);
}

static bool util_port_is_set(const union util_port_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 ? addr->in6.sin6_port : addr->in.sin_port;
}

/* Returns the range of FI_COPYRPC_PORTS. False: none, and an unreadable one is logged. */
static bool util_port_range(uint16_t *first, uint16_t *last)
{
	if (!util_params.ports)
		return false;
	if (util_port_parse(util_params.ports, first, last))
		return true;
	UTIL_WARN_HOST_SELDOM(
		FABRIC,
		"FI_COPYRPC_PORTS=%s is no port and no range such as 50000-50999: any port "
		"is used\n",
		util_params.ports);
	return false;
}

int util_port_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	union util_port_addr at = { .sa.sa_family = AF_UNSPEC };
	bool denied = true; /* every port so far was */
	uint16_t first, last;

	memcpy(&at, addr, len < sizeof(at) ? len : sizeof(at));
	if (util_port_is_set(&at) || !util_port_range(&first, &last))
		return bind(fd, addr, len) ? -errno : 0;
	for (unsigned port = first; port <= last; port++) {
		util_port_set(&at, (uint16_t)port);
		if (!bind(fd, &at.sa, len))
			return 0;
		if (errno != EADDRINUSE && errno != EACCES)
			return -errno;
		denied &= errno == EACCES;
	}
	if (denied) {
		UTIL_WARN_HOST_SELDOM(
			FABRIC,
			"FI_COPYRPC_PORTS=%s: this user may use none of these ports; those below "
			"net.ipv4.ip_unprivileged_port_start, usually 1024, are root's\n",
			util_params.ports);
		return -EACCES;
	}
	/* In any process: others have taken the ports. */
	UTIL_WARN_SELDOM(
		FABRIC,
		"FI_COPYRPC_PORTS=%s: all these ports are in use on this host; an endpoint "
		"takes up to two UDP ports and a listener a TCP port: use a longer range\n",
		util_params.ports);
	return -EADDRINUSE;
}
