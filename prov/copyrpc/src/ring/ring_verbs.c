/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ring transport over any RDMA device, through libibverbs: the functions of ring_template.h for
 * this device.
 *
 * Reading the peer's consumer word takes a round trip, so the flush policy uses the advertised
 * position.
 */
#include "dev/verbs/vb.h"
#include "ring/ring_flush.h"
#include "ring/ring_transports.h"
#include "wire/wire_cm.h"

static const struct ring_flush_cfg ring_verbs_flush_cfg = { .best_len = RING_NIC_BEST_LEN,
							    .packet_len = RING_NIC_BEST_LEN };

#define RING_NAME      "verbs"
#define RING_PATH      WIRE_CM_PATH_NIC
#define RING_DEVICE    vb_dev_ops
#define RING_DEV_OPS   vb_dev_ops_inline
#define RING_LINK_OPS  vb_link_ops_inline
#define RING_FLUSH_CFG ring_verbs_flush_cfg
#define RING_FAILS
#define RING_RAILS

#define ring_this_send            ring_verbs_send
#define ring_this_send_general    ring_verbs_send_general
#define ring_this_send_single     ring_verbs_send_single
#define ring_this_send_buf        ring_verbs_send_buf
#define ring_this_send_more       ring_verbs_send_more
#define ring_this_call            ring_verbs_call
#define ring_this_call_general    ring_verbs_call_general
#define ring_this_call_single     ring_verbs_call_single
#define ring_this_call_buf        ring_verbs_call_buf
#define ring_this_reply           ring_verbs_reply
#define ring_this_reply_general   ring_verbs_reply_general
#define ring_this_reply_single    ring_verbs_reply_single
#define ring_this_reply_release   ring_verbs_reply_release
#define ring_this_flush_chan      ring_verbs_flush_chan
#define ring_this_is_busy         ring_verbs_is_busy
#define ring_this_access          ring_verbs_access
#define ring_this_chan_ops        ring_verbs_chan_ops
#define ring_this_probe           ring_verbs_probe
#define ring_this_open            ring_verbs_open
#define ring_this_poll            ring_verbs_poll
#define ring_this_flush_dirty     ring_verbs_flush_dirty
#define ring_this_flush           ring_verbs_flush
#define ring_this_transport       ring_transport_verbs
#define ring_this_rails_poll      ring_verbs_rails_poll
#define ring_this_rails_transport ring_verbs_rails_transport

#include "ring/ring_template.h"
