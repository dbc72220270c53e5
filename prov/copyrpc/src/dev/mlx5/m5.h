/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mlx5 device: drives ConnectX NICs directly. libibverbs and libmlx5 make the objects; from then on
 * the data path accesses only memory and one register. Code shared with the verbs device is in
 * dev/ib. Described in docs/mlx5.md.
 *
 *   m5_layout   bytes that the device reads and writes
 *   m5_wqe      work requests: segments         m5_cq        completion queue, by the owner bit
 *   m5_sq       send queue: room, signals       m5_cqe_err   error CQEs and their remedies
 *   m5_uar      doorbells
 *   m5_bf       copies to the BlueFlame register
 *   m5_barrier  memory orders by name           m5_table     user word of each WQE
 *   m5_srq      receive WQEs shared by all links
 *   m5_rq       receive buffers of one queue pair
 *
 *   m5_dev, m5_scq   state shared by all links  m5_link, m5_bulk   a link: one RC queue pair
 *   m5_poll          poll of the device         m5_ud              datagrams on a UD queue pair
 *   m5_dv            loads libmlx5
 *
 * Engines that include this file compile their loop over m5_dev_ops_inline and m5_link_ops_inline.
 */
#ifndef DEV_MLX5_M5_H
#define DEV_MLX5_M5_H

#include "dev/mlx5/m5_link.h"
#include "dev/mlx5/m5_poll.h"

#endif
