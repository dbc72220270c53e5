/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is compiled once per device? RING_OVER makes a lane's operations.
 *
 *   RING_OVER(shm, WIRE_CM_PATH_SHM, shm_dev_ops, shm_dev_ops_inline, shm_link_ops_inline, cfg)
 *
 * defines `const struct ring_lane_ops ring_lane_shm`. dev_inline and link_inline are constants that
 * the compiler sees through, so that nothing below a channel's operation is an indirect call; cfg
 * is the flush policy.
 */
#ifndef RING_OVER_H
#define RING_OVER_H

#include "ring/ring_bulk.h"
#include "ring/ring_call.h"
#include "ring/ring_lane.h"
#include "ring/ring_loop.h"

#define RING_OVER(name, path_bit, dev_table, dev_inline, link_inline, cfg)                         \
	static int ring_##name##_send(struct core_chan *chan, const struct core_frame *frame,      \
				      unsigned flags)                                              \
	{                                                                                          \
		return ring_tx_send(&link_inline, &cfg, ring_conn_of(chan), frame, flags);         \
	}                                                                                          \
	static __attribute__((noinline)) int ring_##name##_send_alone(                             \
		struct core_chan *chan, uint32_t op, uint64_t ext0, uint64_t ext1,                 \
		const void *buf, size_t len, unsigned flags)                                       \
	{                                                                                          \
		return ring_tx_send_buf(&link_inline, &cfg, ring_conn_of(chan), op, ext0, ext1,    \
					buf, len, flags);                                          \
	}                                                                                          \
	static int ring_##name##_send_buf(struct core_chan *chan, uint32_t op, uint64_t ext0,      \
					  uint64_t ext1, const void *buf, size_t len,              \
					  unsigned flags)                                          \
	{                                                                                          \
		if (ring_tx_join(ring_conn_of(chan), op, ext0, ext1, buf, len, flags))             \
			return ring_tx_is_late(&link_inline);                                      \
		return ring_##name##_send_alone(chan, op, ext0, ext1, buf, len, flags);            \
	}                                                                                          \
	static int ring_##name##_call(struct core_chan *chan, const struct core_frame *frame,      \
				      uint32_t allowance, void *context)                           \
	{                                                                                          \
		return ring_tx_call(&link_inline, &cfg, ring_conn_of(chan), frame, allowance,      \
				    context);                                                      \
	}                                                                                          \
	static int ring_##name##_call_buf(struct core_chan *chan, uint32_t op, const void *buf,    \
					  size_t len, uint32_t allowance, void *context,           \
					  unsigned flags)                                          \
	{                                                                                          \
		return ring_call_buf(&link_inline, &cfg, ring_conn_of(chan), op, buf, len,         \
				     allowance, context, flags);                                   \
	}                                                                                          \
	static int ring_##name##_reply_iov(struct core_chan *chan, struct core_call_ref ref,       \
					   const struct iovec *iov, size_t iov_cnt, size_t len,    \
					   unsigned flags)                                         \
	{                                                                                          \
		return ring_tx_reply_iov(&link_inline, &cfg, ring_conn_of(chan), ref, iov,         \
					 iov_cnt, len, flags);                                     \
	}                                                                                          \
	static int ring_##name##_reply(struct core_chan *chan, struct core_call_ref ref,           \
				       const void *buf, size_t len)                                \
	{                                                                                          \
		return ring_tx_reply(&link_inline, &cfg, ring_conn_of(chan), ref, buf, len);       \
	}                                                                                          \
	static void ring_##name##_flush_chan(struct core_chan *chan)                               \
	{                                                                                          \
		if (!ring_conn_of(chan)->err)                                                      \
			ring_tx_progress(&link_inline, ring_conn_of(chan));                        \
	}                                                                                          \
	static void ring_##name##_await(struct core_chan *chan)                                    \
	{                                                                                          \
		ring_late_watch(ring_conn_of(chan));                                               \
	}                                                                                          \
	static bool ring_##name##_is_busy(struct core_chan *chan)                                  \
	{                                                                                          \
		return ring_tx_is_busy(&link_inline, ring_conn_of(chan));                          \
	}                                                                                          \
	static const struct core_chan_ops ring_##name##_chan_ops = {                               \
		.send = ring_##name##_send,                                                        \
		.send_buf = ring_##name##_send_buf,                                                \
		.call = ring_##name##_call,                                                        \
		.call_buf = ring_##name##_call_buf,                                                \
		.call_room = ring_engine_call_room,                                                \
		.reply = ring_##name##_reply,                                                      \
		.reply_iov = ring_##name##_reply_iov,                                              \
		.keep = ring_rx_keep,                                                              \
		.await = ring_##name##_await,                                                      \
		.flush = ring_##name##_flush_chan,                                                 \
		.get = ring_bulk_get,                                                              \
		.lend = ring_bulk_lend,                                                            \
		.unlend = ring_bulk_unlend,                                                        \
		.release = ring_rx_release_hold,                                                   \
		.is_busy = ring_##name##_is_busy,                                                  \
		.stop = ring_engine_chan_stop,                                                     \
		.close = ring_engine_chan_close,                                                   \
	};                                                                                         \
	static bool ring_##name##_poll(struct ring_lane *lane)                                     \
	{                                                                                          \
		return ring_loop_poll(&dev_inline, &link_inline, lane);                            \
	}                                                                                          \
	static void ring_##name##_flush(struct ring_lane *lane)                                    \
	{                                                                                          \
		ring_loop_flush_dirty(&link_inline, lane);                                         \
	}                                                                                          \
	const struct ring_lane_ops ring_lane_##name = {                                            \
		.path = path_bit,                                                                  \
		.dev_ops = &dev_table,                                                             \
		.chan_ops = &ring_##name##_chan_ops,                                               \
		.poll = ring_##name##_poll,                                                        \
		.flush = ring_##name##_flush,                                                      \
	}

#endif
