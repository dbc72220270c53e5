/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Interfaces of this host and the order of their addresses: see iface.h. */
#include "util/iface.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/iface_filter.h"
#include "util/line.h"
#include "util/log.h"
#include "util/name.h"

#define UTIL_IFACE_NET   "/sys/class/net"
#define UTIL_IFACE_IB    "/sys/class/infiniband"
#define UTIL_IFACE_PATH  320
#define UTIL_IFACE_DEPTH 3 /* VLAN over bond over hardware */

static int util_iface_speed(const char *name)
{
	char path[UTIL_IFACE_PATH], line[32];
	int speed;

	snprintf(path, sizeof(path), UTIL_IFACE_NET "/%s/speed", name);
	if (!util_line_read(path, line, sizeof(line)))
		return 0;
	speed = atoi(line);
	return speed > 0 ? speed : 0;
}

/* Returns whether the interface, or one that it is made of, is a device of the machine. */
static bool util_iface_is_physical(const char *name, int depth)
{
	char path[UTIL_IFACE_PATH];
	struct dirent *entry;
	bool found;
	DIR *dir;

	snprintf(path, sizeof(path), UTIL_IFACE_NET "/%s/device", name);
	if (!access(path, F_OK))
		return true;
	snprintf(path, sizeof(path), UTIL_IFACE_NET "/%s", name);
	dir = depth ? opendir(path) : NULL;
	if (!dir)
		return false;
	found = false;
	while (!found && (entry = readdir(dir)))
		found = !strncmp(entry->d_name, "lower_", 6) &&
			util_iface_is_physical(entry->d_name + 6, depth - 1);
	closedir(dir);
	return found;
}

static bool util_iface_is_bridge(const char *name)
{
	char path[UTIL_IFACE_PATH];

	snprintf(path, sizeof(path), UTIL_IFACE_NET "/%s/bridge", name);
	return !access(path, F_OK);
}

/* Returns whether the interface carries IP for the RDMA device: RoCE, iWARP, InfiniBand. */
static bool util_iface_is_over(const char *rdma, const char *name)
{
	char path[UTIL_IFACE_PATH], line[IFNAMSIZ + 1];

	snprintf(path, sizeof(path), UTIL_IFACE_NET "/%s/device/infiniband/%s", name, rdma);
	if (!access(path, F_OK))
		return true;
	snprintf(path, sizeof(path), UTIL_IFACE_IB "/%s/ports/1/gid_attrs/ndevs/0", rdma);
	return util_line_read(path, line, sizeof(line)) && !strcmp(line, name);
}

static void util_iface_find_rdma(struct util_iface *it)
{
	DIR *dir = opendir(UTIL_IFACE_IB);
	struct dirent *entry;

	while (dir && !it->rdma[0] && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < sizeof(it->rdma) &&
		    util_iface_is_over(entry->d_name, it->name))
			strcpy(it->rdma, entry->d_name);
	if (dir)
		closedir(dir);
}

/*
 * Finds the source address of packets to a documentation network (RFC 5737, RFC 3849), which only
 * the default route leads to. Connecting a UDP socket sends nothing.
 */
static bool util_iface_find_default(int family, union util_iface_addr *addr)
{
	union util_iface_addr far = { .sa.sa_family = (sa_family_t)family };
	socklen_t len = sizeof(*addr);
	bool found;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	if (family == AF_INET6) {
		far.in6.sin6_port = htons(9);
		inet_pton(AF_INET6, "2001:db8::1", &far.in6.sin6_addr);
	} else {
		far.in.sin_port = htons(9);
		inet_pton(AF_INET, "203.0.113.1", &far.in.sin_addr);
	}
	found = !connect(fd, &far.sa, family == AF_INET6 ? sizeof(far.in6) : sizeof(far.in)) &&
		!getsockname(fd, &addr->sa, &len);
	close(fd);
	return found;
}

static unsigned util_iface_count_bits(const uint8_t *mask, size_t len)
{
	unsigned bits = 0;

	for (size_t i = 0; i < len; i++)
		bits += (unsigned)__builtin_popcount(mask[i]);
	return bits;
}

static unsigned util_iface_prefix(const struct sockaddr *mask, int family)
{
	const union util_iface_addr *u = (const void *)mask;

	if (!mask)
		return family == AF_INET6 ? 128 : 32;
	return family == AF_INET6 ? util_iface_count_bits(u->in6.sin6_addr.s6_addr, 16)
				  : util_iface_count_bits((const uint8_t *)&u->in.sin_addr, 4);
}

static bool util_iface_read_addr(const struct ifaddrs *ifa, struct util_iface *it)
{
	int family = ifa->ifa_addr ? ifa->ifa_addr->sa_family : AF_UNSPEC;

	if ((family != AF_INET && family != AF_INET6) || !(ifa->ifa_flags & IFF_UP))
		return false;
	memset(it, 0, sizeof(*it));
	snprintf(it->name, sizeof(it->name), "%s", ifa->ifa_name);
	memcpy(&it->addr, ifa->ifa_addr,
	       family == AF_INET6 ? sizeof(it->addr.in6) : sizeof(it->addr.in));
	it->prefix_len = util_iface_prefix(ifa->ifa_netmask, family);
	it->is_loopback = ifa->ifa_flags & IFF_LOOPBACK;
	it->has_carrier = ifa->ifa_flags & IFF_RUNNING;
	it->is_link_local = family == AF_INET6
				    ? IN6_IS_ADDR_LINKLOCAL(&it->addr.in6.sin6_addr)
				    : (ntohl(it->addr.in.sin_addr.s_addr) >> 16) == 0xA9FE;
	return true;
}

static void util_iface_rate(struct util_iface *it)
{
	union util_iface_addr from;
	unsigned bits = it->addr.sa.sa_family == AF_INET6 ? 128 : 32;

	it->speed = util_iface_speed(it->name);
	it->is_physical = util_iface_is_physical(it->name, UTIL_IFACE_DEPTH);
	it->is_bridge = !it->is_physical && util_iface_is_bridge(it->name);
	util_iface_find_rdma(it);
	memset(&from, 0, sizeof(from));
	it->is_default = util_iface_find_default(it->addr.sa.sa_family, &from) &&
			 util_iface_filter_is_in(&from.sa, &it->addr.sa, bits);
}

/* Writes every address of this host, in the kernel's order. Returns their number. */
static unsigned util_iface_scan(int family, struct util_iface *list)
{
	struct ifaddrs *all, *ifa;
	unsigned cnt = 0;

	if (getifaddrs(&all))
		return 0;
	for (ifa = all; ifa && cnt < UTIL_IFACE_MAX; ifa = ifa->ifa_next) {
		if (!util_iface_read_addr(ifa, &list[cnt]))
			continue;
		if (family != AF_UNSPEC && family != list[cnt].addr.sa.sa_family)
			continue;
		util_iface_rate(&list[cnt++]);
	}
	freeifaddrs(all);
	return cnt;
}

int util_iface_compare(const struct util_iface *a, const struct util_iface *b)
{
	if (a->item != b->item)
		return a->item - b->item;
	if (a->is_loopback != b->is_loopback)
		return a->is_loopback - b->is_loopback;
	if (a->is_link_local != b->is_link_local)
		return a->is_link_local - b->is_link_local;
	if (!a->rdma[0] != !b->rdma[0])
		return !a->rdma[0] - !b->rdma[0];
	if (a->is_physical != b->is_physical)
		return b->is_physical - a->is_physical;
	if (a->is_bridge != b->is_bridge)
		return a->is_bridge - b->is_bridge;
	if (a->speed != b->speed)
		return a->speed > b->speed ? -1 : 1;
	return b->is_default - a->is_default;
}

/* Sorts by insertion, which keeps the kernel's order among equals. */
static void util_iface_sort(struct util_iface *list, unsigned cnt)
{
	for (unsigned i = 1; i < cnt; i++) {
		struct util_iface one = list[i];
		unsigned at = i;

		for (; at && util_iface_compare(&one, &list[at - 1]) < 0; at--)
			list[at] = list[at - 1];
		list[at] = one;
	}
}

static unsigned util_iface_permitted(const char *filter, struct util_iface *list, unsigned cnt)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < cnt; i++) {
		list[i].item = util_iface_filter_item(filter, &list[i]);
		if (list[i].item >= 0)
			list[kept++] = list[i];
	}
	return kept;
}

static bool util_iface_is_proper(const struct util_iface *it)
{
	return !it->is_loopback && !it->is_link_local;
}

/*
 * Removes interfaces without a carrier, unless no other has a proper address. The kernel gives an
 * IPv6 address for use only once there is a carrier.
 */
static unsigned util_iface_connected(struct util_iface *list, unsigned cnt)
{
	unsigned kept = 0;
	bool found = false;

	for (unsigned i = 0; i < cnt && !found; i++)
		found = list[i].has_carrier && util_iface_is_proper(&list[i]);
	for (unsigned i = 0; i < cnt; i++)
		if (list[i].has_carrier || (!found && list[i].addr.sa.sa_family == AF_INET))
			list[kept++] = list[i];
	return kept;
}

/* Removes loopback and link-local addresses, unless there is no other. */
static unsigned util_iface_proper(struct util_iface *list, unsigned cnt)
{
	unsigned kept = 0;

	while (kept < cnt && util_iface_is_proper(&list[kept]))
		kept++;
	return kept || !cnt ? kept : 1;
}

static bool util_iface_is_named_before(const struct util_iface *list, unsigned i)
{
	for (unsigned before = 0; before < i; before++)
		if (!strcmp(list[before].name, list[i].name))
			return true;
	return false;
}

/* Warns if the filter permits no address of any family. */
static void util_iface_check(const char *filter)
{
	struct util_iface all[UTIL_IFACE_MAX];
	unsigned cnt = util_iface_scan(AF_UNSPEC, all);
	char names[256] = "";
	size_t len = 0;

	for (unsigned i = 0; i < cnt; i++)
		if (util_iface_filter_item(filter, &all[i]) >= 0)
			return;
	for (unsigned i = 0; i < cnt && len + IFNAMSIZ + 1 < sizeof(names); i++)
		if (!util_iface_is_named_before(all, i))
			len += (size_t)snprintf(names + len, IFNAMSIZ + 1, " %.15s", all[i].name);
	UTIL_WARN_SELDOM(FABRIC,
			 "FI_COPYRPC_IFACE=%s permits no address of this host; interfaces that are "
			 "up:%s\n",
			 filter, names);
}

unsigned util_iface_list(int family, const char *filter, struct util_iface *list, unsigned max)
{
	struct util_iface all[UTIL_IFACE_MAX];
	unsigned cnt = util_iface_scan(family, all);

	if (filter)
		cnt = util_iface_permitted(filter, all, cnt);
	cnt = util_iface_connected(all, cnt);
	util_iface_sort(all, cnt);
	cnt = util_iface_proper(all, cnt);
	if (filter && !cnt)
		util_iface_check(filter);
	cnt = cnt < max ? cnt : max;
	memcpy(list, all, cnt * sizeof(*list));
	return cnt;
}

/* Returns false if there is no address, or no filter and only loopback. */
static bool util_iface_find_best(int family, const char *filter, struct util_iface *best)
{
	return util_iface_list(family, filter, best, 1) && (filter || !best->is_loopback);
}

int util_iface_family(const char *filter)
{
	struct util_iface best;
	bool has_ipv4 = util_iface_find_best(AF_INET, filter, &best);

	if (has_ipv4 && best.has_carrier)
		return AF_INET;
	return util_iface_find_best(AF_INET6, filter, &best) ? AF_INET6 : AF_INET;
}

/* Returns whether `first`, or an address of the list before `i`, is in the network of that one. */
static bool util_iface_is_covered(const struct util_iface *list, unsigned i,
				  const struct sockaddr *first)
{
	if (util_iface_is_near(&list[i], first))
		return true;
	for (unsigned before = 0; before < i; before++)
		if (util_iface_is_near(&list[i], &list[before].addr.sa))
			return true;
	return false;
}

void util_iface_add_others(struct sockaddr *name, const char *filter)
{
	struct util_iface list[UTIL_IFACE_MAX];
	struct in_addr others[UTIL_NAME_OTHERS];
	unsigned cnt, found = 0;

	if (name->sa_family != AF_INET ||
	    ntohl(((struct sockaddr_in *)name)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET)
		return;
	cnt = util_iface_list(AF_INET, filter, list, UTIL_IFACE_MAX);
	for (unsigned i = 0; i < cnt && found < UTIL_NAME_OTHERS; i++)
		if (!list[i].is_loopback && list[i].has_carrier &&
		    !util_iface_is_covered(list, i, name))
			others[found++] = list[i].addr.in.sin_addr;
	util_name_set_others((struct sockaddr_in *)name, others, found);
}

static bool util_iface_is_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	return a && a->sa_family == b->sa_family &&
	       util_iface_filter_is_in(a, b, a->sa_family == AF_INET6 ? 128 : 32);
}

unsigned util_iface_prefix_of(const struct sockaddr *addr)
{
	unsigned len = addr->sa_family == AF_INET6 ? 128 : 32;
	struct ifaddrs *all, *ifa;

	if (getifaddrs(&all))
		return len;
	for (ifa = all; ifa; ifa = ifa->ifa_next) {
		if (!util_iface_is_equal(ifa->ifa_addr, addr))
			continue;
		len = util_iface_prefix(ifa->ifa_netmask, addr->sa_family);
		break;
	}
	freeifaddrs(all);
	return len;
}

bool util_iface_is_near(const struct util_iface *it, const struct sockaddr *addr)
{
	return util_iface_filter_is_in(&it->addr.sa, addr, it->prefix_len);
}
