/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How is an address written, and which one is meant?
 *
 * An address is a plain sockaddr_in or sockaddr_in6; a domain uses one of the two, so that all its
 * addresses have one length. Here node and service become such an address, and back to text.
 * Nothing is sent: the local address that reaches a destination is asked of the routing table.
 *
 * Shown by test/unit/ofi/base/test_cpr_addr.c.
 */
#ifndef CPR_ADDR_H
#define CPR_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define CPR_ADDR_IB_UD_LEN 32u
#define CPR_ADDR_STR_MAX   96 /* "fi_sockaddr_in6://[...]:port" with its end */

/** FI_SOCKADDR_IN or FI_SOCKADDR_IN6 for a family, FI_FORMAT_UNSPEC for any other. */
uint32_t cpr_addr_format(int family);
/** AF_INET or AF_INET6 for a format; AF_UNSPEC where either will do; -1 for what we do not speak. */
int cpr_addr_family(uint32_t format);
/** Bytes of an address in `format` (FI_SOCKADDR_IN, FI_SOCKADDR_IN6 or FI_ADDR_IB_UD). */
size_t cpr_addr_len(uint32_t format);

/**
 * Resolves node and service, as in fi_getinfo(3), to an address of `family` (AF_UNSPEC: IPv4 if
 * there is one). `node` may be "fi_sockaddr_in://host:port" if service is NULL. ai_flags:
 * AI_NUMERICHOST, AI_PASSIVE. 0, or -FI_ENODATA.
 */
int cpr_addr_resolve(const char *node, const char *service, int family, int ai_flags,
		     struct sockaddr_storage *addr);

/** Our own address, port 0, as `dest` sees it; dest NULL: as the default route does, else loopback. */
void cpr_addr_local(int family, const struct sockaddr *dest, struct sockaddr_storage *addr);
/** True if an endpoint could be bound there: a wildcard, or an address of this host. */
bool cpr_addr_is_ours(const struct sockaddr *addr);

/** For fi_getname and fi_getpeer: as much as fits, and what would be needed: 0 or -FI_ETOOSMALL. */
int cpr_addr_give(const struct sockaddr_storage *from, void *addr, size_t *addrlen);

/** Writes the text form, cut to `len` bytes, and returns the bytes that all of it needs. */
size_t cpr_addr_print(const struct sockaddr *addr, char *buf, size_t len);

/** The same for an address in any format. */
size_t cpr_addr_print_as(uint32_t format, const void *addr, char *buf, size_t len);

/** Adds to the host part and the port. False if either would run over. */
bool cpr_addr_step(struct sockaddr_storage *addr, size_t nodes, size_t ports);

#endif
