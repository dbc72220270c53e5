/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verbs device: any RDMA NIC, through libibverbs. Described in docs/verbs.md.
 *
 *   vb_dev    the device: completion queue, shared receive queue; open, close, waiting
 *   vb_link   a link, an RC queue pair: create, connect, write_imm, read_consumer
 *   vb_bulk   get and put, in pieces
 *   vb_poll   poll of the device: arrivals, ends, errors
 *   vb_ud     datagrams on a UD queue pair; vb_ud_life: open, close, addresses
 *
 * Code shared with the mlx5 device is in dev/ib. Engines that include this file compile their loop
 * over vb_dev_ops_inline and vb_link_ops_inline.
 */
#ifndef DEV_VERBS_VB_H
#define DEV_VERBS_VB_H

#include "dev/verbs/vb_link.h"
#include "dev/verbs/vb_poll.h"

#endif
