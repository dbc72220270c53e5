/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * User-visible address of a UD queue pair: FI_ADDR_IB_UD.
 *
 * 32 bytes in the order of libfabric's own format (printed by fi_tostr and fi_av_straddr), numbers
 * in the host's byte order. Bytes that libfabric calls padding carry the other data that a sender
 * needs:
 *
 * 	0 gid, 16 bytes as on the wire | 16 qpn u32 | 20 lid u16 (0: Ethernet) | 22 pkey u16 |
 * 	24 service u16 | 26 sl u8 | 27 mtu u8 (enum ibv_mtu) | 28 qkey, 4 bytes little endian
 *
 * Partition and service level are fixed by the device: pkey is 0xffff, service and sl are 0. The
 * source address that fi_getinfo returns is that of a port: qpn and qkey are 0.
 */
#ifndef DGRAM_DGRAM_UD_ADDR_H
#define DGRAM_DGRAM_UD_ADDR_H

#include <stddef.h>
#include <sys/socket.h>

#include "dev/dev.h"

#define DGRAM_UD_ADDR_LEN 32u

/** Implement dgram_over.import, export and port_addr for RDMA devices. */
int dgram_ud_addr_import(const void *addr, struct dev_desc *desc);
size_t dgram_ud_addr_export(const struct dev_desc *desc, struct sockaddr_storage *addr);
size_t dgram_ud_addr_of_port(const struct dev_about *about, struct sockaddr_storage *addr);

#endif
