/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whose address is it?
 *
 * Inside cm an address is canonical: no flow information, an IPv4 address never dressed as IPv6,
 * an interface index only where it belongs to the address (IPv6 link-local). So two addresses are
 * the same exactly if their bytes are. Pure, except resolve, which asks the kernel for a route.
 *
 * Shown by test/unit/cm/base/test_cm_addr.c.
 */
#ifndef CM_CM_ADDR_H
#define CM_CM_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "wire/wire_cm.h"

/** Room for what print writes: "[2001:db8::1%4294967295]:65535". */
#define CM_ADDR_TEXT_MAX (INET6_ADDRSTRLEN + 24)

union cm_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/** The canonical form of `sa`: 0, or -FI_EINVAL (neither IPv4 nor IPv6). */
int cm_addr_import(const struct sockaddr *sa, union cm_addr *addr);
void cm_addr_export(const union cm_addr *addr, struct sockaddr_storage *ss);

socklen_t cm_addr_len(const union cm_addr *addr);
uint16_t cm_addr_port(const union cm_addr *addr);
bool cm_addr_is_equal(const union cm_addr *a, const union cm_addr *b);
bool cm_addr_is_wildcard(const union cm_addr *addr);

/** Could a single peer be there? Not a wildcard, multicast or broadcast address, and a port. */
bool cm_addr_is_peer(const union cm_addr *addr);

/** Writes it as people do, for messages; returns `text`. */
const char *cm_addr_print(const union cm_addr *addr, char text[CM_ADDR_TEXT_MAX]);

void cm_addr_to_wire(const union cm_addr *addr, struct wire_cm_addr *wire);
void cm_addr_from_wire(const struct wire_cm_addr *wire, union cm_addr *addr);

/**
 * Replaces a wildcard by the address of the interface that the default route uses, or loopback if
 * there is none. Nothing is sent.
 */
void cm_addr_resolve(union cm_addr *addr);

#endif
