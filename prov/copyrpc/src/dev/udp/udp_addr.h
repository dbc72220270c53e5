/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address of a UDP endpoint: in descriptions, in sender ids and for the kernel.
 *
 * description, 24 bytes, little endian:
 * 0 version 1 | 1 family 4 or 6 | 2 port u16 | 4 mtu u32 | 8 address, 16 bytes (IPv4: first 4)
 *
 * A sender's id is its IPv6 address (IPv4: mapped) and port. A description comes from a peer:
 * decoding validates all of it.
 *
 * Tests: test/unit/dev/udp/test_udp_addr.c and test/fuzz/fuzz_udp_addr.c.
 */
#ifndef DEV_UDP_UDP_ADDR_H
#define DEV_UDP_UDP_ADDR_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "dev/dgram.h"

#define UDP_DESC_LEN 24u
#define UDP_MTU_MIN  512u /* smallest MTU of any path, and in a description */

union udp_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/** Returns the length of `addr` for the kernel. */
static inline socklen_t udp_addr_len(const union udp_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 ? sizeof(addr->in6) : sizeof(addr->in);
}

void udp_addr_id(const union udp_addr *addr, struct dev_dgram_id *id);

void udp_desc_encode(const union udp_addr *addr, uint32_t mtu, struct dev_desc *desc);

/**
 * Decodes and validates a peer's description: a unicast address, a port, zeros elsewhere. Leaves
 * the scope of a link-local address 0, for the caller to set. Returns 0 or -FI_EINVAL.
 */
int udp_desc_decode(const struct dev_desc *desc, union udp_addr *addr, uint32_t *mtu);

/** Formats an address for the log. Returns buf. */
const char *udp_addr_text(const union udp_addr *addr, char *buf, size_t len);

#endif
