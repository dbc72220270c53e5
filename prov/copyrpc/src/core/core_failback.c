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

/** Holds operations back or lets them go, as the state demands. */
static void core_failback_update(struct core_peer *peer)
{
	struct core_failback *failback = &peer->failback;
	bool held = peer->holds;

	peer->holds = failback->drains || failback->asked || failback->agreed || failback->willing;
	if (peer->holds || failback->owes)
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

	if (core_failback_is_idle(peer) &&
	    !core_failback_send(peer, WIRE_FAILBACK_ASK, failback->paths)) {
		failback->asked = true;
		failback->drains = false;
	}
	if (now_ns > failback->until_ns)
		failback->drains = false;
}

/** Replies to the peer when that is due. */
static void core_failback_reply(struct core_peer *peer, uint64_t now_ns)
{
	struct core_failback *failback = &peer->failback;

	if (failback->willing && core_failback_is_idle(peer)) {
		failback->agreed = !core_failback_send(peer, WIRE_FAILBACK_YES, 0);
		failback->owes = failback->willing = !failback->agreed;
	} else if (failback->willing && now_ns > failback->until_ns) {
		failback->refusal = WIRE_FAILBACK_LATER;
		failback->willing = false;
	}
	if (!failback->willing && failback->owes)
		failback->owes = core_failback_send(peer, failback->refusal, 0) != 0;
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

	if (failback->granted) {
		core_failback_close(peer);
		return;
	}
	if (failback->drains)
		core_failback_ask(peer, now_ns);
	if (failback->owes)
		core_failback_reply(peer, now_ns);
	core_failback_update(peer);
}

/*
 * The peer's reply, room for a refusal and the end of the connection wake a thread; the end of the
 * time to drain does not.
 */
bool core_failback_retry(struct core_work *work)
{
	struct core_failback *failback = UTIL_CONTAINER_OF(work, struct core_failback, work);
	bool drained = failback->drains || failback->willing;
	bool owed = failback->owes, granted = failback->granted;

	core_failback_run(work);
	return granted || drained || failback->owes != owed;
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
	    failback->owes ||
	    (failback->last_ns && now_ns - failback->last_ns < failback->pause_ns))
		return false;
	failback->paths = peer->chan->ops->better(peer->chan, true);
	if (!failback->paths)
		return false;
	core_failback_note(failback, now_ns);
	failback->drains = true;
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

static enum core_rx_verdict core_failback_on_ask(struct core_peer *peer, uint32_t paths)
{
	const struct core_chan *chan = peer->chan;
	struct core_failback *failback = &peer->failback;
	uint64_t now_ns = util_clock_ns();

	if (failback->owes || failback->agreed || failback->granted)
		return CORE_RX_BAD;
	failback->owes = true;
	failback->willing = !peer->ep->conn && chan->ops->better &&
			    (chan->ops->better(peer->chan, false) & paths);
	failback->refusal = WIRE_FAILBACK_NO;
	if (failback->willing) {
		if (!failback->drains && !failback->asked)
			core_failback_note(failback, now_ns);
		failback->drains = false;
		failback->until_ns = now_ns + CORE_FAILBACK_DRAIN_NS;
	}
	return CORE_RX_DONE;
}

static enum core_rx_verdict core_failback_on_reply(struct core_failback *failback,
						   const struct wire_failback *reply)
{
	if (reply->paths || !failback->asked || failback->granted)
		return CORE_RX_BAD;
	switch (reply->kind) {
	case WIRE_FAILBACK_YES: failback->granted = true; return CORE_RX_DONE;
	case WIRE_FAILBACK_NO: failback->pause_ns = CORE_FAILBACK_PAUSE_MAX; break;
	case WIRE_FAILBACK_LATER: break;
	default: return CORE_RX_BAD;
	}
	failback->asked = false;
	return CORE_RX_DONE;
}

enum core_rx_verdict core_failback_on_msg(struct core_chan *chan, struct core_head *head,
					  core_retain_t retain)
{
	struct core_peer *peer = chan->peer;
	struct core_failback *failback = &peer->failback;
	enum core_rx_verdict verdict = CORE_RX_DONE;
	struct wire_failback wire;

	if (head->tagged || head->has_data || head->body_len != sizeof(wire))
		return CORE_RX_BAD;
	memcpy(&wire, head->body, sizeof(wire));
	if (wire.kind == WIRE_FAILBACK_ASK)
		verdict = core_failback_on_ask(peer, wire.paths);
	else
		verdict = core_failback_on_reply(failback, &wire);
	core_failback_update(peer);
	return verdict;
}

void core_failback_reset(struct core_peer *peer)
{
	struct core_failback *failback = &peer->failback;

	util_list_remove(&failback->work.link);
	peer->holds = failback->drains = failback->asked = failback->agreed = false;
	failback->owes = failback->willing = failback->granted = false;
}

bool core_failback_is_agreed(const struct core_peer *peer, int err)
{
	return peer->failback.agreed && err == -FI_ESHUTDOWN && core_failback_is_idle(peer);
}

void core_failback_end(struct core_peer *peer)
{
	int ret = -FI_ESHUTDOWN; /* of an end that cannot connect */

	UTIL_INFO(EP_CTRL, "peer %llu: the connection ends, a better path is back\n",
		  (unsigned long long)peer->fi_addr);
	core_peer_fail(peer, 0, CORE_PEER_IDLE);
	if (peer->fi_addr != FI_ADDR_NOTAVAIL)
		ret = core_peer_connect(peer);
	if (ret)
		core_peer_fail(peer, ret, CORE_PEER_IDLE);
}
