/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Failback: questions, replies and the agreed end. See core_failback.h. */
#include "core/core_failback.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_ep.h"
#include "core/core_head.h"
#include "core/core_op.h"
#include "core/core_peer.h"
#include "util/clock.h"
#include "util/log.h"
#include "wire/wire_op.h"

static_assert(CORE_BETTER_ROOM == WIRE_FAILBACK_ROOM && CORE_BETTER_QUIET == WIRE_FAILBACK_QUIET,
	      "sizes are sent as they are");

/** Returns true if all operations that have started have ended. */
static bool core_failback_is_idle(const struct core_peer *peer)
{
	const struct util_list *it;
	const struct core_op *op;

	if (core_pending_is_open(&peer->pending) || peer->simple.head != peer->simple.tail ||
	    peer->direct_reads || peer->access_calls || !util_list_is_empty(&peer->tx_stream))
		return false;
	for (it = peer->tx.next; it != &peer->tx; it = it->next) {
		op = UTIL_CONTAINER_OF(it, const struct core_op, peer_link);
		if (!op->queued || op->tried)
			return false;
	}
	return true;
}

/**
 * Returns true if this end is idle. If not, asks the channel: nothing else asks for the ends of
 * silent operations, and the peer, which is sent nothing meanwhile, may never tell of them.
 */
static bool core_failback_is_drained(const struct core_peer *peer)
{
	if (core_failback_is_idle(peer))
		return true;
	peer->chan->ops->is_busy(peer->chan);
	return false;
}

/** Returns true while the peer waits for a reply. */
static bool core_failback_owes(const struct core_failback *failback)
{
	return failback->reply != CORE_FAILBACK_NONE && failback->reply != CORE_FAILBACK_AGREED;
}

/** Holds operations back or lets them go, as the state demands. */
static void core_failback_update(struct core_peer *peer)
{
	struct core_failback *failback = &peer->failback;
	bool held = peer->holds;

	peer->holds = failback->question != CORE_FAILBACK_QUIET ||
		      failback->reply == CORE_FAILBACK_WILLING ||
		      failback->reply == CORE_FAILBACK_AGREED;
	if (peer->holds || core_failback_owes(failback))
		core_dom_work(peer->ep->dom, &failback->work);
	else
		util_list_remove(&failback->work.link);
	if (peer->holds == held)
		return;
	core_peer_set_eager(peer);
	if (!peer->holds && !util_list_is_empty(&peer->tx_queue))
		core_op_schedule(peer);
}

static int core_failback_send(struct core_peer *peer, enum wire_failback_kind kind, uint32_t paths)
{
	struct wire_failback wire = { .kind = kind, .paths = paths };
	struct core_frame frame = { .op = WIRE_OP_FAILBACK, .ext_len = sizeof(wire) };

	memcpy(frame.ext, &wire, sizeof(wire));
	return peer->chan->ops->send(peer->chan, &frame, CORE_SEND_NOW);
}

/** Asks the peer when this end is idle, or gives up. */
static void core_failback_ask(struct core_peer *peer, uint64_t now_ns)
{
	struct core_failback *failback = &peer->failback;

	if (core_failback_is_drained(peer) &&
	    !core_failback_send(peer, WIRE_FAILBACK_ASK, failback->paths))
		failback->question = CORE_FAILBACK_ASKED;
	else if (now_ns > failback->until_ns)
		failback->question = CORE_FAILBACK_QUIET;
}

static void core_failback_refuse(struct core_peer *peer, enum wire_failback_kind kind)
{
	if (!core_failback_send(peer, kind, 0))
		peer->failback.reply = CORE_FAILBACK_NONE;
}

/** YES was sent. */
static void core_failback_agreed(struct core_peer *peer)
{
	struct core_failback *failback = &peer->failback;

	failback->reply = CORE_FAILBACK_AGREED;
	if (failback->common & CORE_BETTER_ROOM)
		peer->chan->ops->resize(peer->chan, true);
}

/** Replies to the peer when that is due. */
static void core_failback_try_reply(struct core_peer *peer, uint64_t now_ns)
{
	struct core_failback *failback = &peer->failback;

	if (failback->reply == CORE_FAILBACK_WILLING && core_failback_is_drained(peer)) {
		if (!core_failback_send(peer, WIRE_FAILBACK_YES, 0))
			core_failback_agreed(peer);
	} else if (failback->reply == CORE_FAILBACK_WILLING && now_ns > failback->until_ns) {
		failback->reply = CORE_FAILBACK_LATER;
	}
	if (failback->reply == CORE_FAILBACK_NO)
		core_failback_refuse(peer, WIRE_FAILBACK_NO);
	else if (failback->reply == CORE_FAILBACK_LATER)
		core_failback_refuse(peer, WIRE_FAILBACK_LATER);
}

/** Closes the connection that both ends have agreed to end. */
static void core_failback_close(struct core_peer *peer)
{
	if (core_failback_is_idle(peer))
		core_failback_end(peer);
	else /* the peer agreed while it owed a response */
		core_peer_fail(peer, -FI_EIO, CORE_PEER_DEAD);
}

void core_failback_run(struct core_work *work)
{
	struct core_failback *failback = UTIL_CONTAINER_OF(work, struct core_failback, work);
	struct core_peer *peer = UTIL_CONTAINER_OF(failback, struct core_peer, failback);
	uint64_t now_ns = util_clock_ns();

	if (failback->question == CORE_FAILBACK_GRANTED) {
		core_failback_close(peer);
		return;
	}
	if (failback->question == CORE_FAILBACK_DRAINS)
		core_failback_ask(peer, now_ns);
	if (core_failback_owes(failback))
		core_failback_try_reply(peer, now_ns);
	core_failback_update(peer);
}

/*
 * The peer's reply, room for a refusal and the end of the connection wake a thread; the end of the
 * time to drain does not.
 */
bool core_failback_retry(struct core_work *work)
{
	struct core_failback *failback = UTIL_CONTAINER_OF(work, struct core_failback, work);
	enum core_failback_question question = failback->question;
	enum core_failback_reply reply = failback->reply;

	core_failback_run(work);
	return question == CORE_FAILBACK_DRAINS || question == CORE_FAILBACK_GRANTED ||
	       reply == CORE_FAILBACK_WILLING || failback->reply != reply;
}

/** Notes an attempt. One soon after the last one doubles the pause. */
static void core_failback_note(struct core_failback *failback, uint64_t now_ns)
{
	bool soon = failback->last_ns &&
		    now_ns - failback->last_ns < 2 * failback->pause_ns + CORE_FAILBACK_PAUSE_NS;

	failback->pause_ns = soon ? 2 * failback->pause_ns : CORE_FAILBACK_PAUSE_NS;
	if (failback->pause_ns > CORE_FAILBACK_PAUSE_MAX)
		failback->pause_ns = CORE_FAILBACK_PAUSE_MAX;
	failback->last_ns = now_ns;
}

/** Begins to replace the connection of a peer if that is due. Returns true if so. */
static bool core_failback_begin(struct core_peer *peer, uint64_t now_ns)
{
	struct core_failback *failback = &peer->failback;

	if (peer->state != CORE_PEER_UP || !peer->chan->ops->better || peer->holds ||
	    core_failback_owes(failback) ||
	    (failback->last_ns && now_ns - failback->last_ns < failback->pause_ns))
		return false;
	failback->paths = peer->chan->ops->better(peer->chan, true);
	if (!failback->paths)
		return false;
	core_failback_note(failback, now_ns);
	failback->question = CORE_FAILBACK_DRAINS;
	failback->until_ns = now_ns + CORE_FAILBACK_DRAIN_NS;
	core_failback_update(peer);
	return true;
}

static void core_failback_look_at(const struct util_list *peers, unsigned *left)
{
	uint64_t now_ns = util_clock_ns();
	const struct util_list *it;

	for (it = peers->next; it != peers && *left; it = it->next)
		*left -= core_failback_begin(UTIL_CONTAINER_OF(it, struct core_peer, ep_link),
					     now_ns);
}

void core_failback_look(struct core_ep *ep)
{
	unsigned left = CORE_FAILBACK_BURST;

	if (ep->conn) /* the user would see the end */
		return;
	core_failback_look_at(&ep->known, &left);
	core_failback_look_at(&ep->unnamed, &left);
}

/** Returns the reply to a question, so far as it does not depend on what is in flight. */
static enum core_failback_reply core_failback_judge(struct core_peer *peer, uint32_t paths,
						    uint64_t now_ns)
{
	struct core_failback *failback = &peer->failback;
	struct core_chan *chan = peer->chan;

	if (peer->ep->conn || !chan->ops->better)
		return CORE_FAILBACK_NO;
	failback->common = paths & chan->ops->better(chan, false);
	if (!failback->common)
		return paths & CORE_BETTER_SIZES ? CORE_FAILBACK_LATER : CORE_FAILBACK_NO;
	if (failback->question == CORE_FAILBACK_QUIET && now_ns < failback->rest_ns)
		return CORE_FAILBACK_LATER;
	return CORE_FAILBACK_WILLING;
}

static enum core_rx_verdict core_failback_on_ask(struct core_peer *peer, uint32_t paths)
{
	struct core_failback *failback = &peer->failback;
	uint64_t now_ns = util_clock_ns();

	if (failback->reply != CORE_FAILBACK_NONE || failback->question == CORE_FAILBACK_GRANTED)
		return CORE_RX_BAD;
	failback->reply = core_failback_judge(peer, paths, now_ns);
	if (failback->reply != CORE_FAILBACK_WILLING)
		return CORE_RX_DONE;
	failback->until_ns = now_ns + CORE_FAILBACK_DRAIN_NS;
	if (failback->question == CORE_FAILBACK_QUIET)
		core_failback_note(failback, now_ns);
	else if (failback->question == CORE_FAILBACK_DRAINS)
		failback->question = CORE_FAILBACK_QUIET;
	return CORE_RX_DONE;
}

static void core_failback_granted(struct core_peer *peer)
{
	struct core_failback *failback = &peer->failback;

	failback->question = CORE_FAILBACK_GRANTED;
	if (failback->paths & CORE_BETTER_QUIET)
		peer->chan->ops->resize(peer->chan, false);
}

static enum core_rx_verdict core_failback_on_reply(struct core_peer *peer,
						   const struct wire_failback *reply)
{
	struct core_failback *failback = &peer->failback;

	if (reply->paths || failback->question != CORE_FAILBACK_ASKED)
		return CORE_RX_BAD;
	switch (reply->kind) {
	case WIRE_FAILBACK_YES: core_failback_granted(peer); return CORE_RX_DONE;
	case WIRE_FAILBACK_NO: failback->pause_ns = CORE_FAILBACK_PAUSE_MAX; break;
	case WIRE_FAILBACK_LATER: break;
	default: return CORE_RX_BAD;
	}
	failback->question = CORE_FAILBACK_QUIET;
	return CORE_RX_DONE;
}

enum core_rx_verdict core_failback_on_msg(struct core_chan *chan, struct core_head *head,
					  core_retain_t retain)
{
	struct core_peer *peer = chan->peer;
	enum core_rx_verdict verdict = CORE_RX_DONE;
	struct wire_failback wire;

	if (head->tagged || head->has_data || head->body_len != sizeof(wire))
		return CORE_RX_BAD;
	memcpy(&wire, head->body, sizeof(wire));
	if (wire.kind == WIRE_FAILBACK_ASK)
		verdict = core_failback_on_ask(peer, wire.paths);
	else
		verdict = core_failback_on_reply(peer, &wire);
	core_failback_update(peer);
	return verdict;
}

void core_failback_reset(struct core_peer *peer)
{
	struct core_failback *failback = &peer->failback;

	util_list_remove(&failback->work.link);
	failback->question = CORE_FAILBACK_QUIET;
	failback->reply = CORE_FAILBACK_NONE;
	peer->holds = false;
}

bool core_failback_is_agreed(const struct core_peer *peer, int err)
{
	return peer->failback.reply == CORE_FAILBACK_AGREED && err == -FI_ESHUTDOWN &&
	       core_failback_is_idle(peer);
}

void core_failback_end(struct core_peer *peer)
{
	int ret = -FI_ESHUTDOWN; /* of an end that cannot connect */

	UTIL_INFO(
		EP_CTRL,
		"peer %llu: the connection is replaced, for a better path or device, or its size\n",
		(unsigned long long)peer->fi_addr);
	peer->failback.rest_ns = util_clock_ns() + peer->failback.pause_ns / 2;
	core_peer_fail(peer, 0, CORE_PEER_IDLE);
	if (peer->fi_addr != FI_ADDR_NOTAVAIL)
		ret = core_peer_connect(peer);
	if (ret)
		core_peer_fail(peer, ret, CORE_PEER_IDLE);
}
