/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions of one ring transport, compiled once per device. Included by ring_shm.c, ring_mlx5.c
 * and ring_verbs.c, once each, behind the definitions of
 *
 *   RING_NAME, RING_PATH          name of the device, and bit of WIRE_CM_PATH_*
 *   RING_DEVICE                   dev_ops by which the device is opened
 *   RING_DEV_OPS, RING_LINK_OPS   the ops as constants: the compiler inlines them, so that no call
 *                                 below a channel operation is indirect
 *   RING_FLUSH_CFG                flush policy
 *   RING_MOVES                    if links of the device move (ring_balance.h)
 *   RING_FAILS                    if the device can fail, and be opened again
 *   RING_RAILS                    if there may be a second device (ring_rail.h)
 *   ring_this_*                   names of the functions, written out, so that a name in a profile
 *                                 or a backtrace is found in the source
 *
 * Everything else is in ring_send.h, ring_call.h and ring_rx.h. The general and single forms are
 * not inlined: the append form then needs no stack frame.
 */
#include "engine/eng_outage.h"
#include "engine/eng_room.h"
#include "ring/ring_access.h"
#include "ring/ring_balance.h"
#include "ring/ring_bulk.h"
#include "ring/ring_call.h"
#include "ring/ring_direct.h"
#include "ring/ring_rail.h"
#include "ring/ring_room.h"
#include "ring/ring_rx.h"
#include "ring/ring_send.h"
#include "ring/ring_takeover.h"
#include "ring/ring_transport.h"

#ifdef RING_LINK_OPS

#define RING_NOINLINE __attribute__((noinline))

static int ring_this_send(struct core_chan *chan, const struct core_frame *frame, unsigned flags)
{
	return ring_send_frame(&RING_LINK_OPS, &RING_FLUSH_CFG, ring_conn_of(chan), frame, flags);
}

static RING_NOINLINE int ring_this_send_general(struct core_chan *chan, uint64_t packed,
						uint64_t ext0, uint64_t ext1, const void *buf,
						size_t len)
{
	return ring_send_general(&RING_LINK_OPS, &RING_FLUSH_CFG, ring_conn_of(chan), packed, ext0,
				 ext1, buf, len);
}

static RING_NOINLINE int ring_this_send_single(struct core_chan *chan, uint64_t packed,
					       uint64_t ext0, uint64_t ext1, const void *buf,
					       size_t len)
{
	if (ring_send_single(&RING_LINK_OPS, &RING_FLUSH_CFG, ring_conn_of(chan), packed, ext0,
			     ext1, buf, len))
		return 0;
	return ring_this_send_general(chan, packed, ext0, ext1, buf, len);
}

static int ring_this_send_buf(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
			      const void *buf, size_t len)
{
	struct ring_conn *conn = ring_conn_of(chan);

	if (!ring_send_may_append(conn, packed, len))
		return !ring_single_is_possible(&RING_LINK_OPS, conn)
			       ? ring_this_send_general(chan, packed, ext0, ext1, buf, len)
			       : ring_this_send_single(chan, packed, ext0, ext1, buf, len);
	return ring_send_append(&RING_LINK_OPS, conn, packed, ext0, ext1, buf, len);
}

static int ring_this_send_more(struct core_chan *chan, uint64_t packed, uint64_t ext0,
			       uint64_t ext1, const void *buf, size_t len)
{
	struct ring_conn *conn = ring_conn_of(chan);

	if (!ring_send_may_gather(conn, packed, len))
		return ring_this_send_general(chan, core_packed_more(packed), ext0, ext1, buf, len);
	return ring_send_append(&RING_LINK_OPS, conn, packed, ext0, ext1, buf, len);
}

static int ring_this_call(struct core_chan *chan, const struct core_frame *frame, uint32_t resp_max,
			  void *context, unsigned flags)
{
	return ring_call_frame(&RING_LINK_OPS, &RING_FLUSH_CFG, ring_conn_of(chan), frame, resp_max,
			       context, flags);
}

static RING_NOINLINE int ring_this_call_general(struct core_chan *chan, uint32_t op,
						const void *buf, size_t len, uint32_t resp_max,
						void *context, unsigned flags)
{
	return ring_call_general(&RING_LINK_OPS, &RING_FLUSH_CFG, ring_conn_of(chan), op, buf, len,
				 resp_max, context, flags);
}

static RING_NOINLINE int ring_this_call_single(struct core_chan *chan, uint32_t op, const void *buf,
					       size_t len, uint32_t resp_max, void *context,
					       unsigned flags)
{
	if (ring_call_single(&RING_LINK_OPS, &RING_FLUSH_CFG, ring_conn_of(chan), op, buf, len,
			     resp_max, context, flags))
		return 0;
	return ring_this_call_general(chan, op, buf, len, resp_max, context, flags);
}

static int ring_this_call_buf(struct core_chan *chan, uint32_t op, const void *buf, size_t len,
			      uint32_t resp_max, void *context, unsigned flags)
{
	struct ring_conn *conn = ring_conn_of(chan);

	if (!ring_call_append(&RING_FLUSH_CFG, conn, op, buf, len, resp_max, context, flags))
		return 0;
	if (ring_single_is_possible(&RING_LINK_OPS, conn))
		return ring_this_call_single(chan, op, buf, len, resp_max, context, flags);
	return ring_this_call_general(chan, op, buf, len, resp_max, context, flags);
}

static int ring_this_reply(struct core_chan *chan, struct core_call_ref ref,
			   const struct iovec *iov, size_t iov_cnt, size_t len, unsigned flags)
{
	return ring_reply(&RING_LINK_OPS, &RING_FLUSH_CFG, ring_conn_of(chan), ref, iov, iov_cnt,
			  len, flags);
}

static RING_NOINLINE int ring_this_reply_general(struct core_chan *chan, struct core_call_ref ref,
						 core_retain_t retain, const void *buf, size_t len,
						 unsigned flags)
{
	return ring_reply_general(&RING_LINK_OPS, &RING_FLUSH_CFG, ring_conn_of(chan), ref, retain,
				  buf, len, flags);
}

static RING_NOINLINE int ring_this_reply_single(struct core_chan *chan, struct core_call_ref ref,
						core_retain_t retain, const void *buf, size_t len,
						unsigned flags)
{
	if (ring_reply_single(&RING_LINK_OPS, &RING_FLUSH_CFG, ring_conn_of(chan), ref, retain, buf,
			      len, flags))
		return 0;
	return ring_this_reply_general(chan, ref, retain, buf, len, flags);
}

static int ring_this_reply_release(struct core_chan *chan, struct core_call_ref ref,
				   core_retain_t retain, const void *buf, size_t len,
				   unsigned flags)
{
	struct ring_conn *conn = ring_conn_of(chan);

	if (ring_reply_append(&RING_FLUSH_CFG, conn, ref, retain, buf, len, flags))
		return 0;
	if (ring_single_is_possible(&RING_LINK_OPS, conn))
		return ring_this_reply_single(chan, ref, retain, buf, len, flags);
	return ring_this_reply_general(chan, ref, retain, buf, len, flags);
}

static void ring_this_flush_chan(struct core_chan *chan)
{
	if (!ring_conn_of(chan)->eng.err)
		ring_flush_dirty(&RING_LINK_OPS, ring_conn_of(chan));
}

static bool ring_this_is_busy(struct core_chan *chan)
{
	return ring_flush_is_busy(&RING_LINK_OPS, ring_conn_of(chan));
}

static int ring_this_access(struct core_chan *chan, const struct core_access_args *args)
{
	return ring_access(&RING_LINK_OPS, ring_conn_of(chan), args);
}

static const struct core_chan_ops ring_this_chan_ops = {
	.send = ring_this_send,
	.send_buf = ring_this_send_buf,
	.send_more = ring_this_send_more,
	.call = ring_this_call,
	.call_buf = ring_this_call_buf,
	.call_room = ring_transport_call_room,
	.call_shortage = ring_transport_call_shortage,
	.reply = ring_this_reply,
	.reply_release = ring_this_reply_release,
	.retain = ring_rx_keep,
	.await = ring_ack_await,
	.flush = ring_this_flush_chan,
	.get = ring_bulk_get,
	.expose = ring_bulk_expose,
	.unexpose = ring_bulk_unexpose,
	.direct = ring_direct,
	.access = ring_this_access,
	.undirect = ring_direct_drop,
	.reg = ring_direct_reg,
	.release = ring_rx_release_retained,
	.drain = eng_chan_drain,
	.withdraw = eng_chan_withdraw,
	.fail = eng_chan_fail,
#ifdef RING_TAGS_OPEN
	.tags_open = RING_TAGS_OPEN,
	.positions = ring_transport_positions,
#endif
	.better = eng_chan_better,
	.resize = eng_chan_resize,
	.is_busy = ring_this_is_busy,
	.stop = eng_chan_stop,
	.close = eng_chan_close,
};

static int ring_this_probe(struct dev_about *about)
{
	return RING_DEVICE.probe ? RING_DEVICE.probe(about) : 0;
}

#ifdef RING_RAILS
static const struct eng_transport_ops ring_this_rails_transport;
#define RING_RAILS_TRANSPORT &ring_this_rails_transport
#else
#define RING_RAILS_TRANSPORT NULL
#endif

static int ring_this_open(struct eng_transport *transport)
{
	return ring_transport_open(transport, &RING_DEVICE, &ring_this_chan_ops,
				   RING_RAILS_TRANSPORT);
}

static bool ring_this_poll(struct eng_transport *transport)
{
	return ring_rx_poll(&RING_DEV_OPS, &RING_LINK_OPS, ring_transport_of(transport));
}

static RING_NOINLINE void ring_this_flush_dirty(struct ring_transport *transport)
{
	ring_rx_flush_dirty(&RING_LINK_OPS, transport);
}

static void ring_this_flush(struct eng_transport *transport)
{
	if (!util_list_is_empty(&ring_transport_of(transport)->dirty))
		ring_this_flush_dirty(ring_transport_of(transport));
	if (RING_LINK_OPS.write_imm_ack)
		ring_ack_progress(ring_transport_of(transport));
}

#ifdef RING_FAILS
#define RING_HEALTH ring_transport_health
#define RING_REOPEN ring_transport_reopen
#else
#define RING_HEALTH NULL
#define RING_REOPEN NULL
#endif
#ifdef RING_MOVES
#define RING_TICK ring_balance_look
#else
#define RING_TICK NULL
#endif

#define RING_TRANSPORT_OPS(poll_function, unused_function, improves_function)                      \
	{                                                                                          \
		.path = RING_PATH, .name = RING_NAME, .probe = ring_this_probe,                    \
		.open = ring_this_open, .close = ring_transport_close, .health = RING_HEALTH,      \
		.is_unused = (unused_function), .reopen = RING_REOPEN,                             \
		.prepare = ring_setup_prepare, .establish = ring_setup_establish,                  \
		.improves = (improves_function), .grows = ring_room_grows,                         \
		.shrinks = ring_room_shrinks, .conn_name = ring_life_name,                         \
		.attach = ring_life_attach, .has_received = ring_life_has_received,                \
		.drain = ring_life_drain, .withdraw = ring_life_withdraw, .end = ring_life_end,    \
		.stop = ring_life_stop, .free = ring_life_free, .poll = (poll_function),           \
		.flush = ring_this_flush, .tick = RING_TICK, .wait_fd = ring_transport_wait_fd,    \
		.arm = ring_transport_arm, .disarm = ring_transport_disarm,                        \
	}

const struct eng_transport_ops ring_this_transport = RING_TRANSPORT_OPS(ring_this_poll, NULL, NULL);

#ifdef RING_RAILS
/** Polls both devices: one device costs nothing for this. */
static bool ring_this_rails_poll(struct eng_transport *transport)
{
	struct ring_rails *rails = ring_transport_of(transport)->rails;
	bool more = ring_transport_of(transport)->dev && ring_this_poll(transport);

	if (!util_list_is_empty(&rails->taking))
		ring_takeover_work(rails, !more);
	return ring_rails_poll(ring_transport_of(transport)) || more;
}

static const struct eng_transport_ops ring_this_rails_transport =
	RING_TRANSPORT_OPS(ring_this_rails_poll, ring_rails_is_unused, ring_rail_improves);
#endif

#endif
