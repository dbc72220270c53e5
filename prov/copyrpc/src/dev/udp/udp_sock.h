/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is asked of the kernel once, when an endpoint opens?
 *
 * A socket bound to a port of its own; how large datagrams may be, from the interface of its
 * address and later from the route to each peer; buffers that hold a burst; and whether the kernel
 * cuts (GSO) and joins (GRO) runs of datagrams, which saves most of the cost of each.
 *
 * Shown by test/unit/dev/udp/test_udp_sock.c.
 */
#ifndef UDP_UDP_SOCK_H
#define UDP_UDP_SOCK_H

#include <stdbool.h>

#include "dev/udp/udp_addr.h"

#define UDP_MTU_MAX 65000u /* a length in a header has 16 bits, for the headers too */

struct udp_sock {
	int fd;
	union udp_addr local;
	uint32_t mtu;     /* of the interface, without headers */
	uint32_t rx_room; /* as dev_dgram's */
	bool gso;
	bool gro;
};

/**
 * A socket on `local` (its port is ignored) and `port` (0: any), with room for rx_cnt datagrams, if
 * the system's limit allows: otherwise a line says what to do. 0 or -FI_E*, logged.
 */
int udp_sock_open(struct udp_sock *sock, const struct sockaddr *local, uint16_t port,
		  uint32_t rx_cnt);
void udp_sock_close(struct udp_sock *sock);

/** What sock.mtu of a socket on `local` would be; 0: no such address family, or no sockets. */
uint32_t udp_sock_link_mtu(const struct sockaddr *local);

/** Bytes of a datagram that the route to `peer` carries whole; -FI_EHOSTUNREACH: there is none. */
int udp_sock_route_mtu(const struct udp_sock *sock, const union udp_addr *peer);

#endif
