/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Network interfaces of this host: which of their addresses endpoints publish, best first.
 *
 * Called by ofi/ for the source addresses of an fi_info and by cm/ for the addresses of an endpoint
 * that was opened at a wildcard. Interfaces that are down are left out. FI_COPYRPC_IFACE
 * (iface_filter.h) permits some and orders them; among equals
 *
 *   1. an interface of an RDMA device is better than any other,
 *   2. one over hardware better than a virtual one, and a bridge without hardware (of containers
 *      and virtual machines) worst: many hosts have one with the same address,
 *   3. the faster better than the slower,
 *   4. that of the default route better than others; no default route is needed.
 *
 * Loopback and link-local addresses are used only where there is no other, or where the filter
 * names them. An interface without a carrier is used before those, but not before any other: the
 * kernel may report the carrier a second after the interface came up, when its address works
 * already. Nothing is sent, and no host name is resolved.
 *
 * Also tested by test/integ/net/hosts.
 */
#ifndef UTIL_IFACE_H
#define UTIL_IFACE_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#define UTIL_IFACE_MAX  32u /* addresses of a host that are looked at */
#define UTIL_IFACE_RDMA 64u

union util_iface_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct util_iface {
	char name[IFNAMSIZ];
	char rdma[UTIL_IFACE_RDMA]; /* RDMA device over this interface; empty: none */
	union util_iface_addr addr; /* port 0 */
	unsigned prefix_len;        /* bits of the address that its network has in common */
	int item;                   /* item of the filter that permits it; 0 without a filter */
	int speed;                  /* Mbit/s; 0: not known */
	bool is_loopback;
	bool is_link_local;
	bool has_carrier;
	bool is_bridge;   /* a bridge without hardware */
	bool is_physical; /* hardware, or a bond, bridge or VLAN above hardware */
	bool is_default;  /* address from which packets to unknown networks leave */
};

/**
 * Writes at most `max` addresses of `family` (AF_UNSPEC: both) that `filter` (NULL: none) permits,
 * best first. Returns their number: 0 only if the filter permits no address, which is logged.
 */
unsigned util_iface_list(int family, const char *filter, struct util_iface *list, unsigned max);

/** Returns the family of addresses that endpoints have by default: IPv4 if the host has any. */
int util_iface_family(const char *filter);

/**
 * Adds further addresses of this host to a name (util/name.h) that has one: the best ones that
 * `filter` permits, of other networks. IPv6 names and those of loopback stay as they are.
 */
void util_iface_add_others(struct sockaddr *name, const char *filter);

/** Returns the bits that the network of an address of this host has in common; all if unknown. */
unsigned util_iface_prefix_of(const struct sockaddr *addr);

/** Returns whether `addr` belongs to the network of `it`. Pure. */
bool util_iface_is_near(const struct util_iface *it, const struct sockaddr *addr);

/** Returns a number below, equal to or above 0 if `a` is better, equal or worse. Pure. */
int util_iface_compare(const struct util_iface *a, const struct util_iface *b);

#endif
