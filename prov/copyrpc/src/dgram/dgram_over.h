/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Over which devices are there datagram endpoints (FI_EP_DGRAM), and how do users write addresses there?
 *
 * A constant table per device, each in a file of its own. An address as users exchange it becomes the
 * description that the device resolves (dev/dgram.h), and back:
 *
 *   UDP           sockaddr_in or sockaddr_in6 (FI_SOCKADDR_IN, FI_SOCKADDR_IN6)
 *   RDMA devices  32 bytes, FI_ADDR_IB_UD (dgram_ud_addr.h)
 */
#ifndef DGRAM_OVER_H
#define DGRAM_OVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/core_chan.h"
#include "dev/dgram.h"

struct dgram_over {
	const char *name; /* of the device, in FI_COPYRPC_PATHS and in the name of a domain */
	bool is_ip;
	const struct dev_ops *dev_ops; /* NULL: nothing is opened below endpoints */
	const struct dev_dgram_ops *ops;
	const struct core_engine_ops *engine_ops;
	/*
	 * Could one be opened (is_ip: at `local`)? 0, and *mtu: bytes of its largest datagram;
	 * *about is filled in for devices that have a name. -FI_ENODEV: no.
	 */
	int (*probe)(const struct sockaddr *local, struct dev_about *about, uint32_t *mtu);
	/* A user's address: 0 or -FI_EINVAL. It has the bytes that its format says. */
	int (*import)(const void *addr, struct dev_desc *desc);
	/* Writes one, and returns its bytes. */
	size_t (*export)(const struct dev_desc *desc, struct sockaddr_storage *addr);
};

extern const struct dgram_over dgram_over_udp;
extern const struct dgram_over dgram_over_mlx5;
extern const struct dgram_over dgram_over_verbs;

#endif
