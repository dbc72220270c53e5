/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * UDP device: datagrams without an RDMA device, on sockets behind dev/dgram.h.
 *
 * It has no struct dev: `dev` of the contract's open is NULL, and attr->local is the address to
 * use. The kernel copies the bytes, so no memory is registered.
 */
#ifndef DEV_UDP_UDP_H
#define DEV_UDP_UDP_H

#include "dev/dgram.h"

extern const struct dev_dgram_ops udp_dgram_ops;

#endif
