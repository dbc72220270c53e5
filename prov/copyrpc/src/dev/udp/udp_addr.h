/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where is a UDP endpoint, in the words of the handshake and of the kernel?
 *
 *	description, 24 bytes, little endian:
 *	0 version 1 | 1 family 4 or 6 | 2 port u16 | 4 mtu u32 | 8 address, 16 bytes (IPv4: the first four)
 *
 * The id of a sender is its address as IPv6 writes it (IPv4: mapped), and its port. A description
 * comes from a peer: decode believes nothing.
 *
 * Shown by test/unit/dev/udp/test_udp_addr.c and test/fuzz/fuzz_udp_addr.c.
 */
#ifndef UDP_UDP_ADDR_H
#define UDP_UDP_ADDR_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "dev/dgram.h"

#define UDP_DESC_LEN 24u
#define UDP_MTU_MIN  512u /* what any path carries, and a description may say at least */

union udp_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/** Bytes of `addr` as the kernel takes it. */
static inline socklen_t udp_addr_len(const union udp_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 ? sizeof(addr->in6) : sizeof(addr->in);
}

void udp_addr_id(const union udp_addr *addr, struct dev_dgram_id *id);

void udp_desc_encode(const union udp_addr *addr, uint32_t mtu, struct dev_desc *desc);

/**
 * The address that a peer described: -FI_EINVAL unless it is one to which datagrams can go, with
 * everything else in place. The scope of a link-local address is the reader's: it is left 0.
 */
int udp_desc_decode(const struct dev_desc *desc, union udp_addr *addr, uint32_t *mtu);

/** As people write it, for the log. Returns buf. */
const char *udp_addr_text(const union udp_addr *addr, char *buf, size_t len);

#endif
