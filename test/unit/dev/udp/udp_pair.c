/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "unit/dev/udp/udp_pair.h"

#include <poll.h>
#include <string.h>

bool udp_pair_open(struct udp_pair *p, int family, uint32_t rx_cnt)
{
	union udp_addr local = { .in = { .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	struct dev_dgram_attr attr = { .local = &local.sa, .rx_cnt = rx_cnt, .tx_cnt = 64 };
	struct dev_desc desc;
	int i;

	memset(p, 0, sizeof(*p));
	if (family == AF_INET6)
		local.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	for (i = 0; i < 2; i++) {
		if (udp_dgram_ops.open(NULL, &attr, &p->dg[i]))
			return false;
	}
	for (i = 0; i < 2; i++) {
		if (udp_dgram_ops.describe(p->dg[1 - i], &desc) ||
		    udp_dgram_ops.resolve(p->dg[i], &desc, &p->to[i]))
			return false;
	}
	return true;
}

void udp_pair_close(struct udp_pair *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (p->to[i])
			udp_dgram_ops.forget(p->dg[i], p->to[i]);
		if (p->dg[i])
			udp_dgram_ops.close(p->dg[i]);
	}
}

void udp_fill_bytes(uint8_t *buf, uint32_t len, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		buf[i] = (uint8_t)(n * 37 + i * 11 + (i >> 8));
}

bool udp_check_bytes(const uint8_t *buf, uint32_t len, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < len; i++) {
		if (buf[i] != (uint8_t)(n * 37 + i * 11 + (i >> 8)))
			return false;
	}
	return true;
}

int udp_pair_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt)
{
	struct pollfd pfd = { .fd = udp_dgram_ops.wait_fd(dg), .events = POLLIN };
	int ret = udp_dgram_ops.poll(dg, in, cnt);

	if (ret)
		return ret;
	poll(&pfd, 1, 60000);
	return udp_dgram_ops.poll(dg, in, cnt);
}
