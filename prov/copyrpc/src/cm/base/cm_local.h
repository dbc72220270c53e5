/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses of this host.
 *
 * A process of this host can send only from loopback or from an address of one of its interfaces,
 * so the source of a datagram tells whether its sender may be another user of this host. The kernel
 * decides by its routes: no list of addresses is kept, so none can be out of date.
 */
#ifndef CM_BASE_CM_LOCAL_H
#define CM_BASE_CM_LOCAL_H

#include "cm/base/cm_addr.h"

/**
 * Returns 1 if packets to `addr` stay on this host (in this network namespace), 0 if not, or -FI_E*
 * if that is unknown: -FI_EMFILE without a free descriptor. Costs four system calls unless `addr`
 * is loopback; never blocks.
 */
int cm_local_has(const union cm_addr *addr);

/**
 * The two ways to find out, for tests. Both return 1, 0, or -FI_E* if the kernel does not say.
 * cm_local_by_source misses secondary addresses; it is for systems that refuse netlink.
 */
int cm_local_by_route(const union cm_addr *addr);
int cm_local_by_source(const union cm_addr *addr);

#endif
