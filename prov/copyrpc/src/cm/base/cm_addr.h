/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Socket addresses in canonical form.
 *
 * cm stores addresses without flow information, IPv4 never mapped into IPv6, and an interface index
 * only for IPv6 link-local addresses. Two addresses are equal exactly if their bytes are. Pure,
 * except cm_addr_resolve, which looks at the interfaces.
 */
#ifndef CM_BASE_CM_ADDR_H
#define CM_BASE_CM_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "wire/wire_cm.h"

/** Buffer size for cm_addr_print: "[2001:db8::1%4294967295]:65535". */
#define CM_ADDR_TEXT_MAX (INET6_ADDRSTRLEN + 24)

union cm_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/** Way to a peer: one of its addresses, and the socket of this endpoint that packets leave from. */
struct cm_route {
	union cm_addr to;
	uint32_t sock; /* index in cm_ep.socks */
};

/** Converts `sa` to canonical form. Returns 0, or -FI_EINVAL if it is neither IPv4 nor IPv6. */
int cm_addr_import(const struct sockaddr *sa, union cm_addr *addr);
void cm_addr_export(const union cm_addr *addr, struct sockaddr_storage *ss);

socklen_t cm_addr_len(const union cm_addr *addr);
uint16_t cm_addr_port(const union cm_addr *addr);
void cm_addr_set_port(union cm_addr *addr, uint16_t port);
bool cm_addr_is_equal(const union cm_addr *a, const union cm_addr *b);
/** Returns whether the first `prefix_len` bits of the hosts are equal. */
bool cm_addr_is_near(const union cm_addr *a, const union cm_addr *b, unsigned prefix_len);
bool cm_addr_is_wildcard(const union cm_addr *addr);
bool cm_addr_is_loopback(const union cm_addr *addr);

/**
 * Returns whether a single peer can have this address: has a port, no wildcard, multicast,
 * broadcast.
 */
bool cm_addr_is_peer(const union cm_addr *addr);

/**
 * Writes the addresses of an endpoint's name (util/name.h) to `list`, of UTIL_NAME_ADDRS, the first
 * one first. Returns their number, or 0 if the family is neither IPv4 nor IPv6.
 */
unsigned cm_addr_import_name(const struct sockaddr *name, union cm_addr *list);
/** Returns whether one name can have both addresses: they are IPv4, with one port. */
bool cm_addr_fit_one_name(const union cm_addr *a, const union cm_addr *b);
/** Writes a name with the addresses of `list`, which fit one name. */
void cm_addr_export_name(const union cm_addr *list, unsigned cnt, struct sockaddr_storage *name);

/** Writes the usual notation for log lines. Returns `text`. */
const char *cm_addr_print(const union cm_addr *addr, char text[CM_ADDR_TEXT_MAX]);

void cm_addr_to_wire(const union cm_addr *addr, struct wire_cm_addr *wire);
void cm_addr_from_wire(const struct wire_cm_addr *wire, union cm_addr *addr);

/**
 * Replaces a wildcard by the best address of this host (util/iface.h). Returns 0, or
 * -FI_EADDRNOTAVAIL if FI_COPYRPC_IFACE permits none. Sends nothing.
 */
int cm_addr_resolve(union cm_addr *addr);

#endif
