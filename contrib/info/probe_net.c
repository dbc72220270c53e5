/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Network interfaces: which address endpoints publish, by the provider's own rules (util/iface.h),
 * and the ports for firewalls.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "info/info.h"
#include "info/info_probes.h"
#include "util/iface.h"
#include "util/name.h"
#include "util/port.h"

#define TOPIC    "network"
#define LIST_MAX 16u

static const char *net_text(const struct util_iface *it, char text[INET6_ADDRSTRLEN])
{
	const void *addr = it->addr.sa.sa_family == AF_INET6 ? (const void *)&it->addr.in6.sin6_addr
							     : (const void *)&it->addr.in.sin_addr;

	return inet_ntop(it->addr.sa.sa_family, addr, text, INET6_ADDRSTRLEN);
}

static void net_none(struct info_report *report, const char *filter)
{
	info_add(report, INFO_BROKEN, TOPIC, "iface-none",
		 filter ? "FI_COPYRPC_IFACE=%s permits no address of this host: fi_getinfo finds "
			  "nothing"
			: "no network interface is up, not even %s: endpoints have no address",
		 filter ? filter : "lo");
	info_mend(report, "%s",
		  filter ? "unset FI_COPYRPC_IFACE (ip -br addr lists interfaces)"
			 : "ip link set lo up (as root)");
}

/* Lists the addresses behind the first that peers get, or those that they do not get. */
static char *net_others(const struct util_iface *list, unsigned cnt, const struct sockaddr *name,
			bool published)
{
	char text[INET6_ADDRSTRLEN], *all = info_print("%s", "");

	for (unsigned i = 1; i < cnt; i++) {
		char *more;

		if (util_name_has(name, &list[i].addr.sa) != published)
			continue;
		more = info_print("%s%s%s (%s)", all, *all ? ", " : "", net_text(&list[i], text),
				  list[i].name);
		free(all);
		all = more;
	}
	return all;
}

static void net_several(struct info_report *report, const struct util_iface *list, unsigned cnt,
			const char *filter)
{
	union util_iface_addr name = list[0].addr;
	char *also, *left;

	util_iface_add_others(&name.sa, filter);
	also = net_others(list, cnt, &name.sa, true);
	left = net_others(list, cnt, &name.sa, false);
	if (*also)
		info_add(report, INFO_GOOD, TOPIC, "iface-further",
			 "peers get %s, too, and use what their own networks reach", also);
	if (*left && !filter) {
		info_add(report, INFO_NOTE, TOPIC, "iface-several",
			 "this host has further addresses, which peers do not get: %s; if the "
			 "hosts of a job reach each other by one of those, choose it",
			 left);
		info_mend(report, "export FI_COPYRPC_IFACE=%s (or its network: 10.1.0.0/16)",
			  list[cnt - 1].name);
	}
	free(also);
	free(left);
}

static void net_chosen(struct info_report *report, const struct util_iface *it)
{
	char text[INET6_ADDRSTRLEN];

	net_text(it, text);
	if (it->is_loopback && !getenv("FI_COPYRPC_IFACE")) {
		info_add(report, INFO_SLOW, TOPIC, "iface-loopback",
			 "only loopback has an address (%s, %s): processes of this host reach "
			 "each other, other hosts cannot",
			 text, it->name);
		info_mend(report, "bring an interface up and give it an address: ip link, ip addr");
	} else if (!it->has_carrier) {
		info_add(report, INFO_SLOW, TOPIC, "iface-no-carrier",
			 "endpoints publish %s (%s), which has no carrier, because there is no "
			 "better one",
			 text, it->name);
		info_mend(report, "check the cable of %s: ip link show %s", it->name, it->name);
	} else {
		info_add(report, INFO_GOOD, TOPIC, "iface", "endpoints publish %s (%s%s%s%s)", text,
			 it->name, it->rdma[0] ? ", RDMA device " : "", it->rdma,
			 it->is_default ? ", default route" : "");
	}
}

static void net_ifaces(struct info_report *report)
{
	const char *filter = getenv("FI_COPYRPC_IFACE");
	struct util_iface list[LIST_MAX];
	unsigned cnt;

	filter = filter && *filter ? filter : NULL;
	cnt = util_iface_list(util_iface_family(filter), filter, list, LIST_MAX);
	if (!cnt) {
		net_none(report, filter);
		return;
	}
	net_chosen(report, &list[0]);
	if (cnt > 1)
		net_several(report, list, cnt, filter);
}

/* Returns whether this user may use a port, also if another process uses it now. */
static bool net_may_use(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool may = fd < 0 || !bind(fd, (struct sockaddr *)&at, sizeof(at)) || errno != EACCES;

	if (fd >= 0)
		close(fd);
	return may;
}

static void net_ports(struct info_report *report)
{
	const char *text = getenv("FI_COPYRPC_PORTS");
	unsigned needed = 2 * (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	uint16_t first, last;

	if (!text || !*text)
		return;
	if (!util_port_parse(text, &first, &last)) {
		info_add(report, INFO_SLOW, TOPIC, "ports-unreadable",
			 "FI_COPYRPC_PORTS=%s is neither a port nor a range: any port is used, "
			 "which a firewall may block",
			 text);
		info_mend(report, "export FI_COPYRPC_PORTS=50000-50999");
	} else if (!net_may_use(first) || !net_may_use(last)) {
		info_add(report, INFO_SLOW, TOPIC, "ports-denied",
			 "FI_COPYRPC_PORTS=%s has ports that this user may not use, usually those "
			 "below 1024: endpoints have the others, or fail with FI_EACCES",
			 text);
		info_mend(report, "export FI_COPYRPC_PORTS=50000-50999");
	} else if (last - first + 1u < needed) {
		info_add(report, INFO_SLOW, TOPIC, "ports-few",
			 "FI_COPYRPC_PORTS=%s has %u ports, and each rank of this host takes "
			 "one, or two over UDP: further ones fail with FI_EADDRINUSE",
			 text, last - first + 1u);
		info_mend(report, "export FI_COPYRPC_PORTS=50000-50999");
	} else {
		info_add(report, INFO_GOOD, TOPIC, "ports", "sockets take the ports %s", text);
	}
}

void info_probe_net(struct info *info)
{
	net_ifaces(&info->report);
	net_ports(&info->report);
}
