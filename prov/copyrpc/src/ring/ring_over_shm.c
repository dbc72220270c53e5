/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rings over shared memory: this device's copy of the loop.
 *
 * The only file of the engine that names a device. Signalling is one store here, so a message
 * leaves at once unless FI_MORE holds it (ring_flush.h).
 */
#include "dev/shm/shm.h"
#include "ring/ring_loop.h"

static const struct ring_flush_cfg ring_shm_flush_cfg = { .best_len = 544, .looks = true };

static int ring_shm_send(struct core_chan *chan, const struct core_frame *frame, unsigned flags)
{
	return ring_tx_send(&shm_link_ops_inline, &ring_shm_flush_cfg, ring_conn_of(chan), frame,
			    flags);
}

static int ring_shm_call(struct core_chan *chan, const struct core_frame *frame, uint32_t allowance,
			 void *context)
{
	return ring_tx_call(&shm_link_ops_inline, &ring_shm_flush_cfg, ring_conn_of(chan), frame,
			    allowance, context);
}

static int ring_shm_reply(struct core_chan *chan, struct core_call_ref ref, const void *buf,
			  size_t len)
{
	return ring_tx_reply(&shm_link_ops_inline, &ring_shm_flush_cfg, ring_conn_of(chan), ref,
			     buf, len);
}

static void ring_shm_flush(struct core_chan *chan)
{
	struct ring_conn *conn = ring_conn_of(chan);

	if (!conn->err)
		ring_tx_progress(&shm_link_ops_inline, conn);
}

static int ring_shm_get(struct core_chan *chan, struct core_get *get)
{
	return ring_loop_get(&shm_link_ops_inline, ring_conn_of(chan), get);
}

static void ring_shm_lend(struct core_chan *chan, int delta)
{
	shm_link_lend(ring_conn_of(chan)->link, delta);
}

static void ring_shm_release(struct core_chan *chan, core_hold_t hold)
{
	struct ring_conn *conn = ring_conn_of(chan);

	if (ring_holds_release(&conn->rx.holds, hold))
		ring_rx_release(conn);
}

static bool ring_shm_is_busy(struct core_chan *chan)
{
	return ring_tx_is_busy(&shm_link_ops_inline, ring_conn_of(chan));
}

static const struct core_chan_ops ring_shm_chan_ops = {
	.send = ring_shm_send,
	.call = ring_shm_call,
	.reply = ring_shm_reply,
	.flush = ring_shm_flush,
	.get = ring_shm_get,
	.lend = ring_shm_lend,
	.release = ring_shm_release,
	.is_busy = ring_shm_is_busy,
	.close = ring_engine_chan_close,
};

static int ring_shm_open(const struct core_upcalls *up, struct core_engine **engine)
{
	return ring_engine_open(&shm_dev_ops, &ring_shm_chan_ops, up, engine);
}

static void ring_shm_progress(struct core_engine *engine)
{
	ring_loop_progress(&shm_dev_ops_inline, &shm_link_ops_inline, engine);
}

const struct core_engine_ops ring_engine_shm_ops = {
	.name = "ring/shm",
	.open = ring_shm_open,
	.close = ring_engine_close,
	.ep_open = ring_engine_ep_open,
	.ep_addr = ring_engine_ep_addr,
	.ep_close = ring_engine_ep_close,
	.connect = ring_engine_connect,
	.connect_cancel = ring_engine_connect_cancel,
	.progress = ring_shm_progress,
	.wait_fd = ring_engine_wait_fd,
	.arm = ring_engine_arm,
	.disarm = ring_engine_disarm,
};
