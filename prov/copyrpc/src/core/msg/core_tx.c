/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Eager sends and their queue: see core_tx.h. Messages that need more than one frame or a reply
 * continue in core_tx_bulk.c.
 */
#include "core/msg/core_tx.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_peer.h"
#include "core/msg/core_offload.h"
#include "core/msg/core_tx_bulk.h"
#include "util/copy.h"
#include "util/log.h"
#include "util/probe.h"
#include "wire/wire_op.h"

void core_tx_fill_ext(struct core_frame *frame, uint64_t tag, uint64_t data, uint64_t flags,
		      bool tagged)
{
	uint8_t *ext = (uint8_t *)frame->ext;

	frame->ext_len = 0;
	if (tagged) {
		memcpy(ext, &tag, sizeof(tag));
		frame->ext_len = sizeof(tag);
		frame->op |= WIRE_F_TAG;
	}
	if (!(flags & FI_REMOTE_CQ_DATA))
		return;
	memcpy(ext + frame->ext_len, &data, sizeof(data));
	if (data <= UINT32_MAX) {
		frame->ext_len += 4;
		frame->op |= WIRE_F_DATA32;
	} else {
		frame->ext_len += 8;
		frame->op |= WIRE_F_DATA64;
	}
}

static inline int core_tx_send_eager(struct core_chan *chan, const struct core_send *s)
{
	struct core_frame frame;

	frame.op = WIRE_OP_MSG;
	frame.iov = s->iov;
	frame.iov_cnt = s->iov_cnt;
	frame.iov_off = 0;
	frame.len = s->len;
	core_tx_fill_ext(&frame, s->tag, s->data, s->flags, s->tagged);
	return chan->ops->send(chan, &frame, core_tx_send_flags(s->flags));
}

/** Returns what a copied message of `len` bytes takes of CORE_TX_COPIED_MAX. */
static size_t core_tx_copied_len(size_t len)
{
	return sizeof(struct core_tx_req) + len;
}

/** Returns a request for a queued send, or NULL. Copies the iov, not the bytes. */
static struct core_tx_req *core_tx_req_new(struct core_ep *ep, const struct core_send *s)
{
	struct core_tx_req *req = util_pool_alloc(&ep->tx_reqs);

	if (!req)
		return NULL;
	req->op.fence = s->flags & FI_FENCE;
	req->state = CORE_TX_QUEUED;
	req->tagged = s->tagged;
	req->silent = s->silent;
	req->announced = false;
	req->injected = false;
	req->exposure.chan = NULL;
	req->copy = NULL;
	req->send_id = CORE_NO_ID;
	req->iov_cnt = s->iov_cnt;
	req->len = s->len;
	req->sent = 0;
	req->start_ns = 0;
	req->tag = s->tag;
	req->data = s->data;
	req->flags = s->flags;
	req->context = s->context;
	memcpy(req->iov, s->iov, s->iov_cnt * sizeof(req->iov[0]));
	return req;
}

static void core_tx_req_free(struct core_ep *ep, struct core_tx_req *req)
{
	if (req->send_id != CORE_NO_ID)
		util_idmap_release(&ep->tx_ids, req->send_id);
	core_tx_unexpose(req);
	if (req->injected)
		ep->tx_copied -= core_tx_copied_len(req->len);
	free(req->copy);
	util_pool_release(&ep->tx_reqs, req);
}

void core_tx_end(struct core_tx_req *req, int err)
{
	struct core_ep *ep = req->op.peer->ep;
	struct fi_cq_err_entry entry = {
		.op_context = req->context,
		.flags = core_tx_comp_flags(req->tagged),
		.err = -err,
		.prov_errno = -err,
	};

	if (!err) {
		core_tx_complete(ep, req->context, req->flags, req->tagged, req->silent);
	} else {
		if (ep->tx.cntr)
			core_cntr_add_err(ep->tx.cntr, 1);
		if (ep->tx.cq)
			core_cq_write_err(ep->tx.cq, &entry, FI_ADDR_NOTAVAIL);
	}
	core_op_end(&req->op);
	core_tx_req_free(ep, req);
}

/**
 * Notes a message with FI_INJECT_COMPLETE that is too long to be injected, so that its loss is
 * reported. Counters count it when it completes, and once.
 */
static void core_tx_note_copied(struct core_peer *peer, size_t len, bool tagged)
{
	if (len > peer->ep->dom->limits.eager_max && !peer->ep->tx.cntr)
		core_pending_add(peer, NULL, 0, tagged, true);
}

/** Completes a send that the channel has accepted, or makes its completion pending. */
static void core_tx_accepted(struct core_peer *peer, size_t len, void *context, uint64_t flags,
			     bool tagged, bool silent)
{
	bool async = peer->chan->caps & CORE_CHAN_ASYNC;

	if (async && !(flags & FI_INJECT_COMPLETE)) {
		core_pending_add(peer, context, flags, tagged, silent);
		return;
	}
	if (async)
		core_tx_note_copied(peer, len, tagged);
	core_tx_complete(peer->ep, context, flags, tagged, silent);
}

void core_tx_copied_cold(struct core_peer *peer, size_t len, bool tagged, int ret)
{
	core_tx_note_copied(peer, len, tagged);
	if (ret & CORE_SEND_STAYS)
		core_tx_stays_cold(peer);
}

void __attribute__((noinline)) core_tx_stays_cold(struct core_peer *peer)
{
	struct core_chan *chan = peer->chan;
	unsigned polls = CORE_TX_STAYS_POLLS;

	/* A peer that does not respond, as it computes, costs one wait. */
	if (chan->stays)
		return;
	chan->stays = true;
	do {
		core_dom_progress(peer->ep->dom); /* may end or replace the channel */
	} while (--polls && peer->chan == chan && chan->stays);
}

void core_tx_complete_cold(struct core_ep *ep, void *context, uint64_t flags, bool tagged,
			   bool silent)
{
	core_tx_complete(ep, context, flags, tagged, silent);
}

void core_tx_end_accepted(struct core_tx_req *req)
{
	struct core_ep *ep = req->op.peer->ep;

	core_tx_accepted(req->op.peer, req->len, req->context, req->flags, req->tagged,
			 req->silent);
	core_op_end(&req->op);
	core_tx_req_free(ep, req);
}

/** Returns the flags of a request that starts. Of copied messages the last must leave at once. */
static uint64_t core_tx_start_flags(const struct core_tx_req *req)
{
	bool leaves = req->injected && util_list_is_empty(&req->op.peer->tx_queue);

	return req->flags | (leaves ? FI_INJECT : 0);
}

static int core_tx_start(struct core_op *op)
{
	struct core_tx_req *req = core_tx_req_of(op);
	struct core_send s = {
		.iov = req->iov,
		.iov_cnt = req->iov_cnt,
		.len = req->len,
		.tag = req->tag,
		.data = req->data,
		.flags = core_tx_start_flags(req),
		.tagged = req->tagged,
	};
	int ret;

	if (op->peer->pipelined)
		return -FI_EAGAIN;
	if (UTIL_UNLIKELY(op->peer->offload != NULL) && req->tagged) {
		ret = core_offload_start(req);
		if (ret != CORE_OFFLOAD_BY_RING)
			return ret;
	}
	if (core_tx_is_bulk(op->peer, req->len, req->flags))
		return core_tx_bulk_start(req);
	ret = core_tx_send_eager(op->peer->chan, &s);
	if (ret)
		return ret;
	op->peer->inject_refused = 0;
	core_tx_end_accepted(req);
	return 0;
}

static void core_tx_fail(struct core_op *op, int err)
{
	struct core_tx_req *req = core_tx_req_of(op);

	op->peer->pipelined -= req->state == CORE_TX_PIPELINED || req->state == CORE_TX_PULLED;
	core_tx_end(req, err);
}

static const struct core_op_ops core_tx_op_ops = {
	.start = core_tx_start,
	.stream = core_tx_bulk_stream,
	.on_reply = core_tx_bulk_on_reply,
	.fail = core_tx_fail,
	.awaits = COPYRPC_STATS_FOR_RECEIVE,
};

/**
 * Returns the error for an injected message that cannot leave now, and starts the connection. There
 * is no request to report a failed connect: inject_err reports it once, to the next send. Makes
 * progress until there is a connection, for callers that only try again. May free the peer.
 */
static ssize_t core_tx_inject_later(struct core_peer *peer)
{
	struct core_dom *dom = peer->ep->dom;
	int ret = peer->inject_err;

	peer->inject_err = 0;
	if (!ret)
		ret = core_peer_connect(peer);
	if (ret)
		return ret;
	peer->inject_pending = peer->state != CORE_PEER_UP;
	if (peer->inject_pending)
		core_dom_progress(dom);
	return -FI_EAGAIN;
}

/**
 * Returns true if an injected message may wait as a copy. Its sender tries for some time first: a
 * peer that makes progress has room sooner than a copy is made, and is sent more at a time.
 */
static bool core_tx_inject_waits(struct core_peer *peer, const struct core_send *s)
{
	if (peer->state != CORE_PEER_UP || !(s->flags & FI_INJECT) ||
	    peer->inject_refused++ < CORE_TX_INJECT_TRIES)
		return false;
	peer->inject_refused = CORE_TX_INJECT_TRIES;
	return peer->ep->tx_copied + core_tx_copied_len(s->len) <= CORE_TX_COPIED_MAX;
}

/** Returns true if an injected message cannot leave in one frame, even with room. */
static bool core_tx_inject_is_bulk(const struct core_peer *peer, const struct core_send *s)
{
	return peer->state == CORE_PEER_UP && util_list_is_empty(&peer->tx_queue) &&
	       ((s->flags & FI_FENCE) || core_tx_is_bulk(peer, s->len, s->flags));
}

/** Returns a request for an injected message, with a copy of its bytes, or NULL. */
static struct core_tx_req *core_tx_req_copy(struct core_ep *ep, const struct core_send *s)
{
	void *copy = malloc(s->len + 1); /* not NULL without bytes */
	struct core_tx_req *req = copy ? core_tx_req_new(ep, s) : NULL;

	if (!req) {
		free(copy);
		return NULL;
	}
	util_iov_gather(copy, s->iov, s->iov_cnt, 0, s->len);
	ep->tx_copied += core_tx_copied_len(s->len);
	req->injected = true;
	req->flags &= ~FI_INJECT; /* core_tx_start_flags */
	req->copy = copy;
	req->iov[0] = (struct iovec){ .iov_base = copy, .iov_len = s->len };
	req->iov_cnt = 1;
	return req;
}

static ssize_t core_tx_enqueue_cold(struct core_ep *ep, struct core_peer *peer,
				    const struct core_send *s)
{
	/* Without bytes only a silent one is copied, for core_tx_start_flags. */
	bool inject = s->silent || ((s->flags & FI_INJECT) && s->len);
	struct core_tx_req *req;
	int ret;

	if (inject && !core_tx_inject_is_bulk(peer, s) && !core_tx_inject_waits(peer, s))
		return core_tx_inject_later(peer);
	req = inject ? core_tx_req_copy(ep, s) : core_tx_req_new(ep, s);
	if (!req)
		return -FI_EAGAIN;
	ret = core_op_submit(&req->op, &core_tx_op_ops, peer);
	if (ret)
		core_tx_req_free(ep, req);
	return ret;
}

static ssize_t core_tx_send_announced(struct core_ep *ep, const struct core_send *s)
{
	struct core_peer *peer = core_peer_get(ep, s->dest);
	int ret;

	if (UTIL_UNLIKELY(!peer))
		return core_peer_missing(ep, s->dest);
	if (UTIL_UNLIKELY(s->len >= peer->eager_end ||
			  (s->flags & (CORE_TX_REPLY_FLAGS | FI_FENCE))))
		return core_tx_enqueue_cold(ep, peer, s);
	ret = core_tx_send_eager(peer->chan, s);
	if (UTIL_UNLIKELY(ret != 0))
		return ret == -FI_EAGAIN ? core_tx_enqueue_cold(ep, peer, s) : ret;
	core_tx_accepted(peer, s->len, s->context, s->flags, s->tagged, s->silent);
	return 0;
}

ssize_t core_tx_send(struct core_ep *ep, const struct core_send *s)
{
	UTIL_PROBE_OP(send, ep, s->dest, s->context, s->len);
	return core_tx_send_announced(ep, s);
}

ssize_t core_tx_send_buf_cold(struct core_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			      uint64_t tag, uint64_t data, void *context, uint64_t flags,
			      bool tagged, bool silent)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct core_send send = { .dest = dest,
				  .iov = &iov,
				  .iov_cnt = 1,
				  .len = len,
				  .tag = tag,
				  .data = data,
				  .context = context,
				  .flags = flags,
				  .tagged = tagged,
				  .silent = silent };

	return core_tx_send_announced(ep, &send);
}
