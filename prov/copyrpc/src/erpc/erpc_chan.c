/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The tables of core_chan_ops for a session. Each operation is in the file of its subject. */
#include "engine/eng_outage.h"
#include "erpc/bulk/erpc_expose.h"
#include "erpc/bulk/erpc_get.h"
#include "erpc/erpc_progress.h"
#include "erpc/erpc_setup.h"
#include "erpc/rx/erpc_deliver.h"
#include "erpc/tx/erpc_call.h"
#include "erpc/tx/erpc_piggyback.h"
#include "erpc/tx/erpc_reply.h"
#include "erpc/tx/erpc_respond.h"
#include "erpc/tx/erpc_send.h"

/** Does nothing: each batch is acknowledged without a request. */
static void erpc_chan_await(struct core_chan *chan)
{
}

static void erpc_chan_flush(struct core_chan *chan)
{
	struct erpc_session *s = erpc_session_of(chan);

	erpc_session_flush(s);
	erpc_piggyback_end(s);
	erpc_piggyback_flush(s);
	erpc_ep_doorbell(s->ep);
}

static bool erpc_chan_is_busy(struct core_chan *chan)
{
	return erpc_session_is_busy(erpc_session_of(chan));
}

/** Shows the round trips of a connection that has a row of its own. */
static void erpc_chan_show(struct core_chan *chan)
{
	uint64_t rtt_ns = erpc_session_of(chan)->flow.rto.srtt_ns;
	struct copyrpc_stats_peer *stats = chan->stats;

	if (!stats->addr.family || !rtt_ns)
		return;
	stats->rtt_ns = rtt_ns;
	if (!stats->rtt_best_ns || rtt_ns < stats->rtt_best_ns)
		stats->rtt_best_ns = rtt_ns;
}

static void erpc_chan_stop(struct core_chan *chan)
{
	erpc_chan_flush(chan);
	erpc_session_stop(erpc_session_of(chan));
}

static void erpc_chan_close(struct core_chan *chan)
{
	erpc_chan_flush(chan);
	erpc_session_close(erpc_session_of(chan));
}

#define ERPC_CHAN_OPS(drain_op, fail_op, better_op, stop_op, close_op)                             \
	{                                                                                          \
		.send = erpc_send, .send_buf = erpc_send_buf, .send_more = erpc_send_more,         \
		.call = erpc_call, .call_buf = erpc_call_buf, .call_room = erpc_call_room,         \
		.call_shortage = erpc_call_shortage, .reply = erpc_reply,                          \
		.reply_release = erpc_reply_release, .retain = erpc_retain,                        \
		.await = erpc_chan_await, .flush = erpc_chan_flush, .get = erpc_get,               \
		.expose = erpc_expose, .unexpose = erpc_unexpose, .release = erpc_release,         \
		.show = erpc_chan_show, .is_busy = erpc_chan_is_busy, .drain = (drain_op),         \
		.fail = (fail_op), .better = (better_op), .stop = (stop_op), .close = (close_op),  \
	}

const struct core_chan_ops erpc_chan_ops =
	ERPC_CHAN_OPS(NULL, NULL, NULL, erpc_chan_stop, erpc_chan_close);
const struct core_chan_ops erpc_chan_eng_ops = ERPC_CHAN_OPS(
	eng_chan_drain, eng_chan_fail, eng_chan_better, eng_chan_stop, eng_chan_close);
