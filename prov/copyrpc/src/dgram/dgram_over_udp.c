/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram endpoints on UDP sockets. A message is a datagram without added bytes, so the peer may
 * be any UDP program.
 */
#include <rdma/fi_errno.h>
#include <string.h>

#include "dev/udp/udp.h"
#include "dev/udp/udp_addr.h"
#include "dev/udp/udp_sock.h"
#include "dgram/dgram_engine.h"

static int dgram_udp_probe(const struct dgram_over *over, const struct sockaddr *local,
			   struct dev_about *about, uint32_t *mtu)
{
	*mtu = udp_sock_link_mtu(local);
	return *mtu ? 0 : -FI_ENODEV;
}

/* Imports the address with the largest MTU: it carries none; the route's is found at resolve. */
static int dgram_udp_import(const void *addr, struct dev_desc *desc)
{
	union udp_addr to = { 0 };
	uint32_t mtu;

	memcpy(&to.sa.sa_family, addr, sizeof(to.sa.sa_family));
	if (to.sa.sa_family != AF_INET && to.sa.sa_family != AF_INET6)
		return -FI_EINVAL;
	memcpy(&to, addr, udp_addr_len(&to));
	udp_desc_encode(&to, UINT16_MAX, desc);
	return udp_desc_decode(desc, &to, &mtu);
}

static size_t dgram_udp_export(const struct dev_desc *desc, struct sockaddr_storage *addr)
{
	union udp_addr to = { 0 };
	uint32_t mtu;

	if (udp_desc_decode(desc, &to, &mtu))
		return 0;
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &to, udp_addr_len(&to));
	return udp_addr_len(&to);
}

static int dgram_udp_open(const struct core_upcalls *up, struct core_progress **base)
{
	return dgram_engine_open(&dgram_over_udp, base);
}

static const struct core_progress_ops dgram_udp_progress_ops = DGRAM_PROGRESS_OPS(dgram_udp_open);

const struct dgram_over dgram_over_udp = {
	.name = "udp",
	.is_ip = true,
	.ops = &udp_dgram_ops,
	.progress_ops = &dgram_udp_progress_ops,
	.probe = dgram_udp_probe,
	.import = dgram_udp_import,
	.export = dgram_udp_export,
};
