/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * UDP socket of an endpoint, and its limits. Called by udp_dgram.c.
 *
 * A socket is bound to a port of its own. Its MTU comes from the interface of its address, later
 * from the route to each peer. Its buffers hold a burst. GSO and GRO are used if the kernel has
 * them: cutting and merging runs of datagrams saves most of the cost of each.
 */
#ifndef DEV_UDP_UDP_SOCK_H
#define DEV_UDP_UDP_SOCK_H

#include <stdbool.h>

#include "dev/udp/udp_addr.h"

#define UDP_MTU_MAX 65000u /* limit of the 16-bit length, which includes headers */

struct udp_sock {
	int fd;
	union udp_addr local;
	uint32_t mtu;     /* MTU of the interface, without headers */
	uint32_t rx_room; /* see dev_dgram */
	bool gso;
	bool gro;
};

/**
 * Opens a socket on `local` (its port is ignored) and `port` (0: any), with buffers for rx_cnt
 * datagrams. Logs a remedy if the system's limit is too low. Returns 0 or an error, logged.
 */
int udp_sock_open(struct udp_sock *sock, const struct sockaddr *local, uint16_t port,
		  uint32_t rx_cnt);
void udp_sock_close(struct udp_sock *sock);

/**
 * Returns a second socket of the same address and port, with equal buffers and offloads, which the
 * caller connects and closes; or -FI_E*.
 */
int udp_sock_twin(const struct udp_sock *sock, uint32_t rx_cnt);

/** Returns sock.mtu of a socket on `local`, or 0 without such sockets. */
uint32_t udp_sock_link_mtu(const struct sockaddr *local);

/**
 * Returns the bytes of a datagram that the route to `peer` carries unfragmented, or
 * -FI_EHOSTUNREACH.
 */
int udp_sock_route_mtu(const struct udp_sock *sock, const union udp_addr *peer);

#endif
