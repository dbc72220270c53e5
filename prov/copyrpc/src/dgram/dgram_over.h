/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Devices with datagram endpoints (FI_EP_DGRAM), and the format of their addresses. Used by ofi/
 * and the datagram engine.
 *
 * One constant table per device (dgram_over_ud.c, dgram_over_udp.c). import converts an address as
 * users exchange it to the description that the device resolves (dev/dgram.h); export converts
 * back:
 *
 *   UDP           sockaddr_in or sockaddr_in6 (FI_SOCKADDR_IN, FI_SOCKADDR_IN6)
 *   RDMA devices  32 bytes, FI_ADDR_IB_UD (dgram_ud_addr.h)
 */
#ifndef DGRAM_DGRAM_OVER_H
#define DGRAM_DGRAM_OVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/core_engine.h"
#include "dev/dgram.h"

struct dgram_over {
	const char *name; /* Name of the device, in FI_COPYRPC_PATHS and in domain names */
	bool is_ip;
	const struct dev_ops *dev_ops; /* NULL: no device is opened for the engine */
	const struct dev_dgram_ops *ops;
	const struct core_progress_ops *progress_ops;
	/*
	 * Checks whether an endpoint could be opened (is_ip: at `local`). Returns 0 and *mtu, the
	 * bytes of its largest datagram, or -FI_ENODEV. Fills in *about for devices with a name.
	 */
	int (*probe)(const struct dgram_over *over, const struct sockaddr *local,
		     struct dev_about *about, uint32_t *mtu);
	/* Converts a user's address, as long as its format prescribes. Returns 0 or -FI_EINVAL. */
	int (*import)(const void *addr, struct dev_desc *desc);
	/* Writes a user's address. Returns its length. */
	size_t (*export)(const struct dev_desc *desc, struct sockaddr_storage *addr);
	/*
	 * Writes the address of the device's port, that of an endpoint which is not enabled yet.
	 * Returns its length. NULL if is_ip.
	 */
	size_t (*port_addr)(const struct dev_about *about, struct sockaddr_storage *addr);
};

extern const struct dgram_over dgram_over_udp;
extern const struct dgram_over dgram_over_mlx5;
extern const struct dgram_over dgram_over_verbs;

#endif
