/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ring transport over a ConnectX driven directly: the functions of ring_template.h for this device.
 *
 * Reading the peer's consumer word takes a round trip, so the flush policy uses the advertised
 * position.
 */
#include "dev/mlx5/m5.h"
#include "ring/ring_flush.h"
#include "ring/ring_mlx5_tags.h"
#include "ring/ring_transports.h"
#include "wire/wire_cm.h"

static const struct ring_flush_cfg ring_mlx5_flush_cfg = { .best_len = RING_NIC_BEST_LEN,
							   .packet_len = RING_NIC_BEST_LEN };

#define RING_NAME      "mlx5"
#define RING_PATH      WIRE_CM_PATH_NIC
#define RING_DEVICE    m5_dev_ops
#define RING_DEV_OPS   m5_dev_ops_inline
#define RING_LINK_OPS  m5_link_ops_inline
#define RING_FLUSH_CFG ring_mlx5_flush_cfg
#define RING_MOVES
#define RING_FAILS
#define RING_RAILS
#define RING_TAGS_OPEN ring_mlx5_tags_open

#define ring_this_send            ring_mlx5_send
#define ring_this_send_general    ring_mlx5_send_general
#define ring_this_send_single     ring_mlx5_send_single
#define ring_this_send_buf        ring_mlx5_send_buf
#define ring_this_send_more       ring_mlx5_send_more
#define ring_this_call            ring_mlx5_call
#define ring_this_call_general    ring_mlx5_call_general
#define ring_this_call_single     ring_mlx5_call_single
#define ring_this_call_buf        ring_mlx5_call_buf
#define ring_this_reply           ring_mlx5_reply
#define ring_this_reply_general   ring_mlx5_reply_general
#define ring_this_reply_single    ring_mlx5_reply_single
#define ring_this_reply_release   ring_mlx5_reply_release
#define ring_this_flush_chan      ring_mlx5_flush_chan
#define ring_this_is_busy         ring_mlx5_is_busy
#define ring_this_access          ring_mlx5_access
#define ring_this_chan_ops        ring_mlx5_chan_ops
#define ring_this_probe           ring_mlx5_probe
#define ring_this_open            ring_mlx5_open
#define ring_this_poll            ring_mlx5_poll
#define ring_this_flush_dirty     ring_mlx5_flush_dirty
#define ring_this_flush           ring_mlx5_flush
#define ring_this_transport       ring_transport_mlx5
#define ring_this_rails_poll      ring_mlx5_rails_poll
#define ring_this_rails_transport ring_mlx5_rails_transport

#include "ring/ring_template.h"
