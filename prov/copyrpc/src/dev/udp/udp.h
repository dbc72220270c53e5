/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagrams without an RDMA device: UDP sockets behind dev/dgram.h.
 *
 * There is no struct dev to open one on: `dev` of the contract's open is NULL, and attr->local says
 * which address to use. Bytes are copied by the kernel, so nothing is registered.
 */
#ifndef UDP_UDP_H
#define UDP_UDP_H

#include "dev/dgram.h"

extern const struct dev_dgram_ops udp_dgram_ops;

#endif
