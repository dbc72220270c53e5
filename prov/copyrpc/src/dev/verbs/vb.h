/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device for any RDMA NIC, through libibverbs. Start here.
 *
 *   vb_dev    the device: one completion queue, one shared receive queue; open, close, sleep
 *   vb_link   a link is an RC queue pair: create, connect, write_imm, read_consumer
 *   vb_bulk   get and put, in pieces
 *   vb_poll   what has arrived, what is done, what failed
 *
 * What it shares with other devices behind libibverbs is in dev/ib. docs/verbs.md has the whole.
 *
 * Owner: whoever includes it instantiates its loop over vb_dev_ops_inline and vb_link_ops_inline.
 */
#ifndef VB_VB_H
#define VB_VB_H

#include "dev/verbs/vb_link.h"
#include "dev/verbs/vb_poll.h"

#endif
