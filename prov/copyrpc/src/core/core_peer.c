/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers: created on first use, connected lazily, failed as a whole. See core_peer.h. */
#include "core/core_peer.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_conn.h"
#include "core/core_dom.h"
#include "core/core_module.h"
#include "core/core_op.h"
#include "core/core_peer_name.h"
#include "core/core_self.h"
#include "util/log.h"
#include "util/name.h"
#include "wire/wire_op.h"

/* from -> to */
static const bool core_peer_may[4][4] = {
	[CORE_PEER_IDLE] = { [CORE_PEER_CONNECTING] = true,
			     [CORE_PEER_UP] = true,
			     [CORE_PEER_DEAD] = true },
	[CORE_PEER_CONNECTING] = { [CORE_PEER_UP] = true, [CORE_PEER_DEAD] = true },
	[CORE_PEER_UP] = { [CORE_PEER_IDLE] = true, [CORE_PEER_DEAD] = true },
	[CORE_PEER_DEAD] = { [CORE_PEER_CONNECTING] = true, [CORE_PEER_UP] = true },
};

static void core_peer_set_state(struct core_peer *peer, enum core_peer_state state)
{
	assert(core_peer_may[peer->state][state]);
	peer->state = state;
	core_peer_set_eager(peer);
}

void core_peer_set_eager(struct core_peer *peer)
{
	peer->eager_end = 0;
	peer->simple.may = false;
	if (peer->state == CORE_PEER_UP && !core_peer_queues(peer) && !peer->direct_reads &&
	    !peer->offloads) {
		peer->eager_end = peer->pipelined ? 0 : core_peer_eager_max(peer) + 1;
		peer->simple.may = peer->chan->reg_dev && !peer->ep->rma_ordered;
	}
}

void core_peer_on_limits(struct core_chan *chan)
{
	core_peer_set_eager(chan->peer);
}

size_t core_peer_eager_max(const struct core_peer *peer)
{
	const struct core_chan *chan = peer->chan;
	/* Tag and 64 bits of data are the largest extension of an eager message. */
	size_t chan_max = chan->eager_max - 16, max = peer->ep->dom->limits.eager_max;

	if (max < chan->eager_min)
		max = chan->eager_min;
	return chan_max < max ? chan_max : max;
}

struct core_peer *core_peer_new(struct core_ep *ep, const struct sockaddr *addr)
{
	struct core_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->ep = ep;
	peer->fi_addr = FI_ADDR_NOTAVAIL;
	peer->id = ep->next_peer_id++;
	peer->state = CORE_PEER_IDLE;
	util_list_init(&peer->tx);
	util_list_init(&peer->tx_queue);
	util_list_init(&peer->tx_stream);
	util_list_init(&peer->rma_deferred);
	util_list_init(&peer->lessees);
	util_list_init(&peer->rx);
	util_list_init(&peer->ep_link);
	util_list_init(&peer->work.link);
	peer->work.run = core_op_resume;
	util_list_init(&peer->failback.work.link);
	peer->failback.work.run = core_failback_run;
	peer->failback.work.retry = core_failback_retry;
	memcpy(&peer->addr, addr,
	       addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
	return peer;
}

void core_peer_up(struct core_peer *peer, struct core_chan *chan)
{
	peer->chan = chan;
	chan->peer = peer;
	peer->work.retry = chan->caps & CORE_CHAN_WAKES ? core_op_retry : NULL;
	peer->rpc_resp_lim =
		chan->resp_sure < WIRE_RPC_RESP_MAX ? chan->resp_sure : WIRE_RPC_RESP_MAX;
	peer->inject_pending = false;
	peer->inject_err = 0;
	core_peer_set_state(peer, CORE_PEER_UP);
	CORE_MODULES_CALL(peer_up, peer);
}

struct core_peer *core_peer_make(struct core_ep *ep)
{
	static const struct sockaddr unknown;
	struct core_peer *peer = core_peer_new(ep, &unknown);

	if (!peer)
		return NULL;
	if (core_peer_reserve(ep, 0)) {
		free(peer);
		return NULL;
	}
	core_peer_name(peer, 0);
	peer->fi_addr = FI_ADDR_NOTAVAIL;
	return peer;
}

static void core_peer_connect_self(struct core_peer *peer)
{
	struct core_chan *chan = core_self_open();

	if (chan)
		core_peer_up(peer, chan);
}

struct core_peer *core_peer_get_cold(struct core_ep *ep, fi_addr_t fi_addr)
{
	struct sockaddr_storage addr, own;
	struct core_peer *peer;

	if (ep->conn)
		return ep->conn->peer;
	if (!core_av_addr(ep->av, fi_addr, &addr) || core_peer_reserve(ep, fi_addr))
		return NULL;
	if (ep->peers[fi_addr])
		return ep->peers[fi_addr];
	peer = core_peer_new(ep, (struct sockaddr *)&addr);
	if (!peer)
		return NULL;
	core_peer_name(peer, fi_addr);
	core_ep_addr(ep, &own);
	/* By any address of the name: cm connects to no endpoint that is this one. */
	if (util_name_has((struct sockaddr *)&own, (struct sockaddr *)&addr))
		core_peer_connect_self(peer);
	return peer;
}

bool core_peer_is_known(const struct core_ep *ep, fi_addr_t fi_addr)
{
	struct sockaddr_storage addr;

	return ep->av && core_av_addr(ep->av, fi_addr, &addr);
}

int core_peer_connect(struct core_peer *peer)
{
	const struct core_engine_ops *engine = peer->ep->dom->engine_ops;
	int ret;

	if (peer->state == CORE_PEER_UP || peer->state == CORE_PEER_CONNECTING)
		return 0;
	if (peer->ep->conn)
		return core_conn_send_err(peer->ep->conn);
	ret = engine->connect(peer->ep->eep, (struct sockaddr *)&peer->addr,
			      peer->incarnation != 0);
	if (!ret)
		core_peer_set_state(peer, CORE_PEER_CONNECTING);
	return ret;
}

void core_peer_on_up(struct core_ep *ep, struct core_chan *chan, const struct sockaddr *addr,
		     uint64_t incarnation)
{
	struct core_peer *peer;

	if (ep->conn) {
		core_conn_on_up(ep->conn, chan, addr, incarnation);
		return;
	}
	peer = core_peer_by_name(ep, addr, chan->caps & CORE_CHAN_AUTHENTIC);
	if (!peer) {
		UTIL_WARN(EP_CTRL, "out of memory: connection refused\n");
		chan->ops->close(chan);
		return;
	}
	if (peer->chan && peer->chan->ops->withdraw && !peer->chan->ops->withdraw(peer->chan)) {
		chan->ops->close(chan); /* the peer connects again, after the end of the old one */
		return;
	}
	if (peer->chan && incarnation == peer->incarnation &&
	    core_failback_is_agreed(peer, -FI_ESHUTDOWN))
		core_peer_fail(peer, 0, CORE_PEER_IDLE);
	else if (peer->chan)
		core_peer_fail(peer, -FI_ECONNABORTED, CORE_PEER_DEAD);
	peer->incarnation = incarnation;
	core_peer_up(peer, chan);
	if (!util_list_is_empty(&peer->tx_queue))
		core_op_schedule(peer);
}

void core_peer_on_connect_failed(struct core_ep *ep, const struct sockaddr *addr, int err)
{
	uint64_t fi_addr = ep->av ? core_av_find(ep->av, addr) : CORE_AV_NONE;
	struct core_peer *peer = NULL;

	if (ep->conn) {
		core_conn_on_refused(ep, err, NULL, 0);
		return;
	}
	if (fi_addr != CORE_AV_NONE && fi_addr < ep->peer_cnt)
		peer = ep->peers[fi_addr];
	if (!peer || peer->state != CORE_PEER_CONNECTING)
		return;
	if (peer->inject_pending)
		peer->inject_err = err;
	peer->inject_pending = false;
	core_peer_fail(peer, err, CORE_PEER_DEAD);
}

/** Returns true if only the connection broke: the peer is alive, and messages of it may be lost. */
static bool core_peer_is_alive(int err)
{
	switch (err) {
	case -FI_ESHUTDOWN:    /* orderly shutdown */
	case -FI_ECONNRESET:   /* peer died */
	case -FI_ECONNABORTED: /* peer restarted */
	/* peer is silent */
	case -FI_ETIMEDOUT: return false;
	default: return true;
	}
}

void core_peer_on_down(struct core_chan *chan, int err)
{
	struct core_peer *peer = chan->peer;
	bool goodbye = err == -FI_ESHUTDOWN;

	if (core_failback_is_agreed(peer, err)) {
		core_failback_end(peer);
		return;
	}
	core_peer_fail(peer, err, goodbye ? CORE_PEER_IDLE : CORE_PEER_DEAD);
	if (core_peer_is_alive(err))
		CORE_MODULES_CALL(ep_lost, peer->ep, err);
	if (peer->ep->conn)
		core_conn_on_down(peer->ep->conn);
}

/** Closes a stopped channel, at once or when the user has released its retained memory. */
static void core_peer_close_chan(struct core_ep *ep, struct core_chan *chan)
{
	CORE_MODULES_CALL(chan_down, ep, chan);
	chan->peer = NULL;
	if (chan->retained)
		util_list_push_back(&ep->stopped, &chan->stopped_link);
	else
		chan->ops->close(chan);
}

void core_peer_fail(struct core_peer *peer, int err, enum core_peer_state state)
{
	struct core_chan *chan = peer->chan;

	/* Saves what has arrived while the channel's memory exists. */
	CORE_MODULES_CALL(peer_failing, peer, err);
	/* A device may move bytes of open operations until then; their end returns the memory. */
	if (chan)
		chan->ops->stop(chan);
	peer->chan = NULL;
	util_list_remove(&peer->work.link);
	core_failback_reset(peer);
	if (peer->state != state)
		core_peer_set_state(peer, state);
	core_pending_fail_peer(peer, err);
	if (err)
		core_op_fail_peer(peer, err);
	CORE_MODULES_CALL(peer_failed, peer, err);
	core_peer_drop_aliases(peer);
	core_peer_set_eager(peer);
	if (chan)
		core_peer_close_chan(peer->ep, chan);
	CORE_MODULES_CALL(peer_closed, peer);
}

/**
 * Ends what waits for a peer that has no connection and is about to be freed. The peer is DEAD
 * before, so that no module sends to it: that would connect it again.
 */
static void core_peer_fail_unconnected(struct core_peer *peer)
{
	const struct core_ep *ep = peer->ep;

	if (peer->state == CORE_PEER_CONNECTING)
		ep->dom->engine_ops->connect_cancel(ep->eep, (struct sockaddr *)&peer->addr);
	if (peer->state != CORE_PEER_DEAD)
		core_peer_set_state(peer, CORE_PEER_DEAD);
	core_op_fail_peer(peer, -FI_ESHUTDOWN);
	CORE_MODULES_CALL(peer_failed, peer, -FI_ESHUTDOWN);
}

void core_peer_free(struct core_peer *peer)
{
	struct core_ep *ep = peer->ep;

	if (peer->state == CORE_PEER_UP)
		core_peer_fail(peer, -FI_ESHUTDOWN, CORE_PEER_IDLE);
	else
		core_peer_fail_unconnected(peer);
	CORE_MODULES_CALL(peer_free, peer);
	util_list_remove(&peer->ep_link);
	util_list_remove(&peer->failback.work.link);
	util_list_remove(&peer->work.link);
	if (peer->fi_addr < ep->peer_cnt)
		ep->peers[peer->fi_addr] = NULL;
	core_pending_fini(&peer->pending);
	free(peer);
}

bool core_peer_is_busy(const struct core_peer *peer)
{
	return !util_list_is_empty(&peer->tx_queue) || !util_list_is_empty(&peer->tx_stream) ||
	       peer->chan->ops->is_busy(peer->chan);
}

bool core_ep_av_is_busy(const struct core_ep *ep, uint64_t fi_addr)
{
	const struct core_peer *peer = fi_addr < ep->peer_cnt ? ep->peers[fi_addr] : NULL;

	/* With another address nothing ends. */
	if (!peer || peer->alias_cnt)
		return false;
	/* Some may have been accepted before a failback. */
	if (peer->state == CORE_PEER_CONNECTING)
		return peer->incarnation && !util_list_is_empty(&peer->tx_queue);
	return peer->chan && core_peer_is_busy(peer);
}

/* Delivers what has arrived first: the peer may have completed these sends already. */
void core_ep_av_removed(struct core_ep *ep, uint64_t fi_addr)
{
	struct core_peer *peer = fi_addr < ep->peer_cnt ? ep->peers[fi_addr] : NULL;

	if (!peer || core_peer_part(peer, fi_addr))
		return;
	if (peer->chan && peer->chan->ops->drain)
		peer->chan->ops->drain(peer->chan);
	core_peer_free(peer);
}
