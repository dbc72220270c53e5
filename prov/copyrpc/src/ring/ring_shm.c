/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ring transport over shared memory: the functions of ring_template.h for this device, and the
 * progress of engines in which this transport is first: its loop, and the cold path only when
 * needed.
 *
 * The peer's consumer word is one load away, so the flush policy (ring_flush.h) reads whether the
 * peer is busy.
 */
#include "dev/shm/shm.h"
#include "ring/ring_flush.h"
#include "ring/ring_transports.h"
#include "wire/wire_cm.h"

static const struct ring_flush_cfg ring_shm_flush_cfg = { .best_len = 544,
							  .reads_consumer = true,
							  .head_bits = 32 };

#define RING_NAME      "shm"
#define RING_PATH      WIRE_CM_PATH_SHM
#define RING_DEVICE    shm_dev_ops
#define RING_DEV_OPS   shm_dev_ops_inline
#define RING_LINK_OPS  shm_link_ops_inline
#define RING_FLUSH_CFG ring_shm_flush_cfg

#define ring_this_send          ring_shm_send
#define ring_this_send_general  ring_shm_send_general
#define ring_this_send_single   ring_shm_send_single
#define ring_this_send_buf      ring_shm_send_buf
#define ring_this_send_more     ring_shm_send_more
#define ring_this_call          ring_shm_call
#define ring_this_call_general  ring_shm_call_general
#define ring_this_call_single   ring_shm_call_single
#define ring_this_call_buf      ring_shm_call_buf
#define ring_this_reply         ring_shm_reply
#define ring_this_reply_general ring_shm_reply_general
#define ring_this_reply_single  ring_shm_reply_single
#define ring_this_reply_release ring_shm_reply_release
#define ring_this_flush_chan    ring_shm_flush_chan
#define ring_this_is_busy       ring_shm_is_busy
#define ring_this_access        ring_shm_access
#define ring_this_chan_ops      ring_shm_chan_ops
#define ring_this_probe         ring_shm_probe
#define ring_this_open          ring_shm_open
#define ring_this_poll          ring_shm_poll
#define ring_this_flush_dirty   ring_shm_flush_dirty
#define ring_this_flush         ring_shm_flush
#define ring_this_transport     ring_transport_shm

#include "ring/ring_template.h"

void ring_shm_progress(struct core_progress *base)
{
	ring_rx_progress(&RING_DEV_OPS, &RING_LINK_OPS, eng_engine_of(base));
}
