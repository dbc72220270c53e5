/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations of one transport, compiled once per device. Used by ring_over_*.c.
 *
 *   RING_OVER(shm, WIRE_CM_PATH_SHM, shm_dev_ops, shm_dev_ops_inline, shm_link_ops_inline, cfg)
 *
 * defines `const struct eng_transport_ops ring_transport_shm`. dev_inline and link_inline are
 * constants that the compiler propagates, so that no call below a channel operation is indirect.
 * cfg is the flush policy.
 */
#ifndef RING_RING_OVER_H
#define RING_RING_OVER_H

#include "ring/ring_bulk.h"
#include "ring/ring_call.h"
#include "ring/ring_rx.h"
#include "ring/ring_send.h"
#include "ring/ring_transport.h"

#define RING_OVER(kind, path_bit, dev_table, dev_inline, link_inline, cfg)                         \
	static int ring_##kind##_send(struct core_chan *chan, const struct core_frame *frame,      \
				      unsigned flags)                                              \
	{                                                                                          \
		return ring_tx_send(&link_inline, &cfg, ring_conn_of(chan), frame, flags);         \
	}                                                                                          \
	static __attribute__((noinline)) int ring_##kind##_send_general(                           \
		struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,             \
		const void *buf, size_t len)                                                       \
	{                                                                                          \
		return ring_tx_send_buf(&link_inline, &cfg, ring_conn_of(chan), packed, ext0,      \
					ext1, buf, len);                                           \
	}                                                                                          \
	static __attribute__((noinline)) int ring_##kind##_send_single(                            \
		struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,             \
		const void *buf, size_t len)                                                       \
	{                                                                                          \
		if (ring_single_send(&link_inline, &cfg, ring_conn_of(chan), packed, ext0, ext1,   \
				     buf, len))                                                    \
			return 0;                                                                  \
		return ring_##kind##_send_general(chan, packed, ext0, ext1, buf, len);             \
	}                                                                                          \
	static int ring_##kind##_send_buf(struct core_chan *chan, uint64_t packed, uint64_t ext0,  \
					  uint64_t ext1, const void *buf, size_t len)              \
	{                                                                                          \
		if (!ring_tx_may_append(ring_conn_of(chan), packed, len))                          \
			return !ring_single_may(&link_inline, ring_conn_of(chan))                  \
				       ? ring_##kind##_send_general(chan, packed, ext0, ext1, buf, \
								    len)                           \
				       : ring_##kind##_send_single(chan, packed, ext0, ext1, buf,  \
								   len);                           \
		return ring_tx_append(&link_inline, ring_conn_of(chan), packed, ext0, ext1, buf,   \
				      len);                                                        \
	}                                                                                          \
	static int ring_##kind##_call(struct core_chan *chan, const struct core_frame *frame,      \
				      uint32_t resp_max, void *context, unsigned flags)            \
	{                                                                                          \
		return ring_tx_call(&link_inline, &cfg, ring_conn_of(chan), frame, resp_max,       \
				    context, flags);                                               \
	}                                                                                          \
	static __attribute__((noinline)) int ring_##kind##_call_general(                           \
		struct core_chan *chan, uint32_t op, const void *buf, size_t len,                  \
		uint32_t resp_max, void *context, unsigned flags)                                  \
	{                                                                                          \
		return ring_call_general(&link_inline, &cfg, ring_conn_of(chan), op, buf, len,     \
					 resp_max, context, flags);                                \
	}                                                                                          \
	static __attribute__((noinline)) int ring_##kind##_call_single(                            \
		struct core_chan *chan, uint32_t op, const void *buf, size_t len,                  \
		uint32_t resp_max, void *context, unsigned flags)                                  \
	{                                                                                          \
		if (ring_call_single(&link_inline, &cfg, ring_conn_of(chan), op, buf, len,         \
				     resp_max, context, flags))                                    \
			return 0;                                                                  \
		return ring_##kind##_call_general(chan, op, buf, len, resp_max, context, flags);   \
	}                                                                                          \
	static int ring_##kind##_call_buf(struct core_chan *chan, uint32_t op, const void *buf,    \
					  size_t len, uint32_t resp_max, void *context,            \
					  unsigned flags)                                          \
	{                                                                                          \
		if (!ring_call_append(&cfg, ring_conn_of(chan), op, buf, len, resp_max, context,   \
				      flags))                                                      \
			return 0;                                                                  \
		if (!ring_single_may(&link_inline, ring_conn_of(chan)))                            \
			return ring_##kind##_call_general(chan, op, buf, len, resp_max, context,   \
							  flags);                                  \
		return ring_##kind##_call_single(chan, op, buf, len, resp_max, context, flags);    \
	}                                                                                          \
	static int ring_##kind##_reply(struct core_chan *chan, struct core_call_ref ref,           \
				       const struct iovec *iov, size_t iov_cnt, size_t len,        \
				       unsigned flags)                                             \
	{                                                                                          \
		return ring_tx_reply(&link_inline, &cfg, ring_conn_of(chan), ref, iov, iov_cnt,    \
				     len, flags);                                                  \
	}                                                                                          \
	static __attribute__((noinline)) int ring_##kind##_reply_general(                          \
		struct core_chan *chan, struct core_call_ref ref, core_retain_t retain,            \
		const void *buf, size_t len, unsigned flags)                                       \
	{                                                                                          \
		return ring_call_reply_general(&link_inline, &cfg, ring_conn_of(chan), ref,        \
					       retain, buf, len, flags);                           \
	}                                                                                          \
	static __attribute__((noinline)) int ring_##kind##_reply_single(                           \
		struct core_chan *chan, struct core_call_ref ref, core_retain_t retain,            \
		const void *buf, size_t len, unsigned flags)                                       \
	{                                                                                          \
		if (ring_call_reply_single(&link_inline, &cfg, ring_conn_of(chan), ref, retain,    \
					   buf, len, flags))                                       \
			return 0;                                                                  \
		return ring_##kind##_reply_general(chan, ref, retain, buf, len, flags);            \
	}                                                                                          \
	static int ring_##kind##_reply_buf(struct core_chan *chan, struct core_call_ref ref,       \
					   core_retain_t retain, const void *buf, size_t len,      \
					   unsigned flags)                                         \
	{                                                                                          \
		if (ring_call_reply_append(&cfg, ring_conn_of(chan), ref, retain, buf, len,        \
					   flags))                                                 \
			return 0;                                                                  \
		if (ring_single_may(&link_inline, ring_conn_of(chan)))                             \
			return ring_##kind##_reply_single(chan, ref, retain, buf, len, flags);     \
		return ring_##kind##_reply_general(chan, ref, retain, buf, len, flags);            \
	}                                                                                          \
	static void ring_##kind##_flush_chan(struct core_chan *chan)                               \
	{                                                                                          \
		if (!ring_conn_of(chan)->eng.err)                                                  \
			ring_tx_progress(&link_inline, ring_conn_of(chan));                        \
	}                                                                                          \
	static void ring_##kind##_await(struct core_chan *chan)                                    \
	{                                                                                          \
		ring_ack_watch(ring_conn_of(chan));                                                \
	}                                                                                          \
	static bool ring_##kind##_is_busy(struct core_chan *chan)                                  \
	{                                                                                          \
		return ring_tx_is_busy(&link_inline, ring_conn_of(chan));                          \
	}                                                                                          \
	static const struct core_chan_ops ring_##kind##_chan_ops = {                               \
		.send = ring_##kind##_send,                                                        \
		.send_buf = ring_##kind##_send_buf,                                                \
		.call = ring_##kind##_call,                                                        \
		.call_buf = ring_##kind##_call_buf,                                                \
		.call_room = ring_transport_call_room,                                             \
		.reply = ring_##kind##_reply,                                                      \
		.reply_release = ring_##kind##_reply_buf,                                          \
		.retain = ring_rx_keep,                                                            \
		.await = ring_##kind##_await,                                                      \
		.flush = ring_##kind##_flush_chan,                                                 \
		.get = ring_bulk_get,                                                              \
		.expose = ring_bulk_expose,                                                        \
		.unexpose = ring_bulk_unexpose,                                                    \
		.release = ring_rx_release_retained,                                               \
		.drain = eng_chan_drain,                                                           \
		.is_busy = ring_##kind##_is_busy,                                                  \
		.stop = eng_chan_stop,                                                             \
		.close = eng_chan_close,                                                           \
	};                                                                                         \
	static int ring_##kind##_probe(struct dev_about *about)                                    \
	{                                                                                          \
		return dev_table.probe ? dev_table.probe(about) : 0;                               \
	}                                                                                          \
	static int ring_##kind##_open(struct eng_transport *transport)                             \
	{                                                                                          \
		return ring_transport_open(transport, &dev_table, &ring_##kind##_chan_ops);        \
	}                                                                                          \
	static bool ring_##kind##_poll(struct eng_transport *transport)                            \
	{                                                                                          \
		return ring_loop_poll(&dev_inline, &link_inline, ring_transport_of(transport));    \
	}                                                                                          \
	static __attribute__((noinline)) void ring_##kind##_flush_some(                            \
		struct ring_transport *transport)                                                  \
	{                                                                                          \
		ring_loop_flush_dirty(&link_inline, transport);                                    \
	}                                                                                          \
	static void ring_##kind##_flush(struct eng_transport *transport)                           \
	{                                                                                          \
		if (!util_list_is_empty(&ring_transport_of(transport)->dirty))                     \
			ring_##kind##_flush_some(ring_transport_of(transport));                    \
		if (link_inline.write_imm_ack)                                                     \
			ring_ack_progress(ring_transport_of(transport));                           \
	}                                                                                          \
	const struct eng_transport_ops ring_transport_##kind = {                                   \
		.path = path_bit,                                                                  \
		.name = #kind,                                                                     \
		.probe = ring_##kind##_probe,                                                      \
		.open = ring_##kind##_open,                                                        \
		.close = ring_transport_close,                                                     \
		.prepare = ring_setup_prepare,                                                     \
		.establish = ring_setup_establish,                                                 \
		.attach = ring_life_attach,                                                        \
		.has_received = ring_life_has_received,                                            \
		.drain = ring_life_drain,                                                          \
		.end = ring_life_end,                                                              \
		.stop = ring_life_stop,                                                            \
		.free = ring_life_free,                                                            \
		.poll = ring_##kind##_poll,                                                        \
		.flush = ring_##kind##_flush,                                                      \
		.wait_fd = ring_transport_wait_fd,                                                 \
		.arm = ring_transport_arm,                                                         \
		.disarm = ring_transport_disarm,                                                   \
	}

#endif
