/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device that talks to a ConnectX by itself. Start here.
 *
 *   m5_layout   the bytes that the device reads and writes
 *   m5_wqe      work requests: segments         m5_cq        completions, by their owner bit
 *   m5_sq       the send queue: room, signals   m5_cqe_zip   ... compressed ones
 *   m5_uar      doorbells                       m5_cqe_err   ... errors, and what to do
 *   m5_bf       BlueFlame's copy                m5_srq       receive WQEs that all links share
 *   m5_barrier  orders, by their names          m5_table     whose WQE was that
 *
 *   m5_dev, m5_scq   what all links share       m5_link, m5_bulk   a link: one RC queue pair
 *   m5_poll          the device: poll           m5_dv              libmlx5, if it is there
 *
 * Objects are made by libibverbs and libmlx5; from then on the data path touches only memory. What
 * it shares with the other device behind libibverbs is in dev/ib. docs/mlx5.md has the whole.
 *
 * Owner: whoever includes it instantiates its loop over m5_dev_ops_inline and m5_link_ops_inline.
 */
#ifndef M5_M5_H
#define M5_M5_H

#include "dev/mlx5/m5_link.h"
#include "dev/mlx5/m5_poll.h"

#endif
