/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Name of an endpoint: a socket address, and the further addresses of its host.
 *
 * A name is a plain sockaddr_in or sockaddr_in6, so that all names have one length and programs may
 * take them apart. A sockaddr_in has 8 bytes that nothing else uses (sin_zero): they hold up to two
 * further IPv4 addresses of the same endpoint, at the same port, best first, zeros behind. A
 * sockaddr_in6 has no such room: an IPv6 name has one address. Processes of older versions write
 * zeros and read none.
 *
 * Called by cm/ for the addresses that a peer can be reached at, by core/ to compare names, and by
 * ofi/ for the source address of an fi_info. Names come from peers: the further addresses are used
 * only if all of them are valid. Pure.
 *
 * Also tested by test/fuzz/fuzz_name.c.
 */
#ifndef UTIL_NAME_H
#define UTIL_NAME_H

#include <netinet/in.h>
#include <stdbool.h>

#define UTIL_NAME_OTHERS 2u
#define UTIL_NAME_ADDRS  (1u + UTIL_NAME_OTHERS)

/** Replaces the further addresses of a sockaddr_in; at most UTIL_NAME_OTHERS are written. */
void util_name_set_others(struct sockaddr_in *name, const struct in_addr *others, unsigned cnt);

/**
 * Reads the further addresses of a name. Returns their number: 0 for IPv6, and if one of them is no
 * unicast address, is loopback, or occurs twice.
 */
unsigned util_name_others(const struct sockaddr *name, struct in_addr others[UTIL_NAME_OTHERS]);

/**
 * Returns whether the first addresses of two names are the same: family, address, port, and the
 * scope of a link-local one.
 */
bool util_name_is_same(const struct sockaddr *a, const struct sockaddr *b);

/** Returns whether the endpoint with this name has `addr`: one of its addresses, and its port. */
bool util_name_has(const struct sockaddr *name, const struct sockaddr *addr);

#endif
