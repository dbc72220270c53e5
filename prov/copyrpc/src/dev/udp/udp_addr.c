/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of UDP endpoints (udp_addr.h). */
#include "dev/udp/udp_addr.h"

#include <arpa/inet.h>
#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define UDP_DESC_VERSION 1u

struct udp_desc {
	uint8_t version;
	uint8_t family;
	uint16_t port; /* host order */
	uint32_t mtu;
	uint8_t ip[16];
};

static_assert(sizeof(struct udp_desc) == UDP_DESC_LEN, "wire");

void udp_addr_id(const union udp_addr *addr, struct dev_dgram_id *id)
{
	uint8_t ip[16] = { [10] = 0xFF, [11] = 0xFF };

	if (addr->sa.sa_family == AF_INET6) {
		memcpy(ip, &addr->in6.sin6_addr, sizeof(ip));
		id->word[2] = addr->in6.sin6_port;
	} else {
		memcpy(ip + 12, &addr->in.sin_addr, 4);
		id->word[2] = addr->in.sin_port;
	}
	memcpy(id->word, ip, sizeof(ip));
}

void udp_desc_encode(const union udp_addr *addr, uint32_t mtu, struct dev_desc *desc)
{
	struct udp_desc d = { .version = UDP_DESC_VERSION, .mtu = mtu };

	if (addr->sa.sa_family == AF_INET6) {
		d.family = 6;
		d.port = ntohs(addr->in6.sin6_port);
		memcpy(d.ip, &addr->in6.sin6_addr, 16);
	} else {
		d.family = 4;
		d.port = ntohs(addr->in.sin_port);
		memcpy(d.ip, &addr->in.sin_addr, 4);
	}
	memcpy(desc->bytes, &d, sizeof(d));
	desc->len = sizeof(d);
	desc->fd_cnt = 0;
}

static bool udp_desc_decode_4(const struct udp_desc *d, union udp_addr *addr)
{
	static const uint8_t zero[12];

	addr->in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(d->port) };
	memcpy(&addr->in.sin_addr, d->ip, 4);
	return !memcmp(d->ip + 4, zero, sizeof(zero)) && addr->in.sin_addr.s_addr != INADDR_ANY &&
	       addr->in.sin_addr.s_addr != INADDR_BROADCAST &&
	       !IN_MULTICAST(ntohl(addr->in.sin_addr.s_addr));
}

static bool udp_desc_decode_6(const struct udp_desc *d, union udp_addr *addr)
{
	addr->in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(d->port) };
	memcpy(&addr->in6.sin6_addr, d->ip, 16);
	return !IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr) &&
	       !IN6_IS_ADDR_MULTICAST(&addr->in6.sin6_addr) &&
	       !IN6_IS_ADDR_V4MAPPED(&addr->in6.sin6_addr);
}

int udp_desc_decode(const struct dev_desc *desc, union udp_addr *addr, uint32_t *mtu)
{
	struct udp_desc d;
	bool good = false;

	if (desc->len != sizeof(d) || desc->fd_cnt)
		return -FI_EINVAL;
	memcpy(&d, desc->bytes, sizeof(d));
	if (d.version != UDP_DESC_VERSION || !d.port || d.mtu < UDP_MTU_MIN || d.mtu > UINT16_MAX)
		return -FI_EINVAL;
	if (d.family == 4)
		good = udp_desc_decode_4(&d, addr);
	else if (d.family == 6)
		good = udp_desc_decode_6(&d, addr);
	*mtu = d.mtu;
	return good ? 0 : -FI_EINVAL;
}

const char *udp_addr_text(const union udp_addr *addr, char *buf, size_t len)
{
	char ip[INET6_ADDRSTRLEN] = "?";

	if (addr->sa.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &addr->in6.sin6_addr, ip, sizeof(ip));
		snprintf(buf, len, "[%s]:%u", ip, ntohs(addr->in6.sin6_port));
	} else {
		inet_ntop(AF_INET, &addr->in.sin_addr, ip, sizeof(ip));
		snprintf(buf, len, "%s:%u", ip, ntohs(addr->in.sin_port));
	}
	return buf;
}
