/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses: formats, resolution of node and service, text form. Called by ofi/info, address
 * vectors and endpoints.
 *
 * An address is a plain sockaddr_in or sockaddr_in6. A domain uses one of the two, so all its
 * addresses have one length. No call sends a packet to a peer; the local address that reaches a
 * destination comes from the routing table.
 */
#ifndef OFI_BASE_CPR_ADDR_H
#define OFI_BASE_CPR_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define CPR_ADDR_IB_UD_LEN 32u
#define CPR_ADDR_STR_MAX   96 /* "fi_sockaddr_in6://[...]:port" with its end */

/** Returns FI_SOCKADDR_IN or FI_SOCKADDR_IN6 for a family, FI_FORMAT_UNSPEC for any other. */
uint32_t cpr_addr_format(int family);
/**
 * Returns AF_INET or AF_INET6 for a format, AF_UNSPEC if the format allows both, -1 if it is not
 * supported.
 */
int cpr_addr_family(uint32_t format);
/**
 * Returns the bytes of an address in `format` (FI_SOCKADDR_IN, FI_SOCKADDR_IN6 or FI_ADDR_IB_UD).
 */
size_t cpr_addr_len(uint32_t format);

/**
 * Resolves node and service, as in fi_getinfo(3), to an address of `family` (AF_UNSPEC: the
 * one that endpoints have here, if there is one). `node` may be "fi_sockaddr_in://host:port" if
 * service is NULL. ai_flags: AI_NUMERICHOST, AI_PASSIVE. Returns 0 or -FI_ENODATA.
 */
int cpr_addr_resolve(const char *node, const char *service, int family, int ai_flags,
		     struct sockaddr_storage *addr);

/**
 * Writes the local address, port 0, from which packets to `dest` leave. Without dest, without a
 * route to it, or where FI_COPYRPC_IFACE does not permit that address, the best one of this host
 * (util/iface.h). Returns 0, or -FI_ENODATA if FI_COPYRPC_IFACE permits none of the family.
 */
int cpr_addr_local(int family, const struct sockaddr *dest, struct sockaddr_storage *addr);
/** Returns true if an endpoint could be bound there: a wildcard, or an address of this host. */
bool cpr_addr_is_local(const struct sockaddr *addr);

/**
 * Implements fi_getname and fi_getpeer: copies as many bytes as fit and sets *addrlen to the bytes
 * needed. Returns 0 or -FI_ETOOSMALL.
 */
int cpr_addr_copy_out(const struct sockaddr_storage *from, void *addr, size_t *addrlen);

/** Writes the text form, cut to `len` bytes. Returns the bytes that all of it needs. */
size_t cpr_addr_print(const struct sockaddr *addr, char *buf, size_t len);

/** Writes the text form of an address in any format, as cpr_addr_print. */
size_t cpr_addr_print_as(uint32_t format, const void *addr, char *buf, size_t len);

/** Adds to the host part and the port. Returns false if either would overflow. */
bool cpr_addr_step(struct sockaddr_storage *addr, size_t nodes, size_t ports);

#endif
