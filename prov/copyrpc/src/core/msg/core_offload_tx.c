/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sends by the device's tag matching, and what is due to their senders: see core_offload.h. */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/msg/core_offload.h"
#include "core/msg/core_tx.h"
#include "core/msg/core_tx_bulk.h"
#include "core/msg/core_unexp.h"
#include "util/log.h"
#include "wire/wire_op.h"

/* ---- sender ---- */

/** Returns true if the peer has parsed all tagged messages of this end. */
static bool core_offload_is_parsed(struct core_offload_peer *op)
{
	struct core_chan *chan = op->peer->chan;
	uint64_t sent, parsed;

	chan->ops->positions(chan, &sent, &parsed);
	if (sent != op->seen)
		op->tagged_end = sent;
	op->seen = sent;
	return (int64_t)(parsed - op->tagged_end) >= 0 && util_list_is_empty(&op->peer->tx_stream);
}

uint64_t core_offload_reply_begins(const struct core_peer *peer)
{
	uint64_t sent, parsed;

	peer->chan->ops->positions(peer->chan, &sent, &parsed);
	return sent;
}

void core_offload_reply_ends(const struct core_peer *peer, uint64_t begin)
{
	uint64_t sent, parsed;

	if (begin != peer->offload->seen)
		return;
	peer->chan->ops->positions(peer->chan, &sent, &parsed);
	peer->offload->seen = sent;
}

/** Returns true if a request can carry the message. */
static bool core_offload_fits(const struct core_peer *peer, const struct core_tx_req *req)
{
	return peer->offload && peer->offload->is_ready && peer->offload->is_connected &&
	       !peer->offload->is_down && !(req->tag >> CORE_OFFLOAD_TAG_BITS) &&
	       req->len <= CORE_TAGS_LEN_MAX &&
	       (!(req->flags & FI_REMOTE_CQ_DATA) || req->data <= UINT32_MAX) &&
	       core_tx_is_rndv(peer, req);
}

static int core_offload_send(struct core_tx_req *req)
{
	struct core_offload_peer *op = req->op.peer->offload;
	uint64_t tag = req->tag | (uint64_t)op->own_id << CORE_OFFLOAD_TAG_BITS;
	const uint32_t data = (uint32_t)req->data;
	int ret;

	if (!core_tx_expose(req))
		return CORE_OFFLOAD_BY_RING;
	req->state = CORE_TX_OFFLOADED;
	ret = req->op.peer->ep->offload->list->ops->send(
		op->dev, &req->listed, tag, req->flags & FI_REMOTE_CQ_DATA ? &data : NULL,
		(uintptr_t)req->iov[0].iov_base, req->exposure.key, (uint32_t)req->len);
	if (ret) {
		req->state = CORE_TX_QUEUED;
		return ret == -FI_EAGAIN ? ret : CORE_OFFLOAD_BY_RING;
	}
	req->op.peer->offloads++;
	req->op.peer->chan->stats->tag_requests++;
	core_peer_set_eager(req->op.peer);
	return 0;
}

int core_offload_start(struct core_tx_req *req)
{
	struct core_peer *peer = req->op.peer;
	int ret = CORE_OFFLOAD_BY_RING;

	if (core_offload_fits(peer, req) &&
	    (peer->offloads || core_offload_is_parsed(peer->offload)))
		ret = core_offload_send(req);
	return ret == CORE_OFFLOAD_BY_RING && peer->offloads ? -FI_EAGAIN : ret;
}

/** Lets messages pass that wait behind a request. */
static void core_offload_unblock(struct core_peer *peer)
{
	if (--peer->offloads)
		return;
	core_peer_set_eager(peer);
	core_op_schedule(peer);
}

void core_offload_sent(struct core_tags_send *send)
{
	struct core_tx_req *req = UTIL_CONTAINER_OF(send, struct core_tx_req, listed);
	struct core_peer *peer = req->op.peer;
	bool blocks = req->state == CORE_TX_OFFLOADED;

	core_tx_end(req, 0);
	if (blocks)
		core_offload_unblock(peer);
}

void core_offload_kept(struct core_tags_send *send)
{
	struct core_tx_req *req = UTIL_CONTAINER_OF(send, struct core_tx_req, listed);

	if (req->state != CORE_TX_OFFLOADED) {
		UTIL_WARN(EP_DATA,
			  "a peer reports twice that it keeps a message: connection ended; "
			  "use the same copyrpc in all processes, or FI_COPYRPC_TAG_OFFLOAD=0\n");
		core_offload_end_peer(req->op.peer->offload);
		return;
	}
	req->state = CORE_TX_UNMATCHED;
	core_offload_unblock(req->op.peer);
}

/* ---- receiver of a request ---- */

/** Notifies the sender, or returns -FI_EAGAIN, or gives the connection up. */
static int core_offload_try_notify(struct core_offload_peer *op,
				   const struct core_tags_request *request, bool is_kept)
{
	const struct core_tags_ops *ops = op->peer->ep->offload->list->ops;
	int ret = 0;

	if (!op->is_down)
		ret = is_kept ? ops->keep(op->dev, request) : ops->finish(op->dev, request);
	if (!ret || ret == -FI_EAGAIN)
		return ret;
	core_offload_end_peer(op);
	return 0;
}

static void core_offload_notify_due(struct core_offload_peer *op)
{
	struct util_list *first;

	while ((first = util_list_first(&op->due))) {
		struct core_offload_due *due =
			UTIL_CONTAINER_OF(first, struct core_offload_due, link);

		if (core_offload_try_notify(op, &due->request, due->is_kept))
			return;
		util_list_remove(&due->link);
		free(due);
	}
}

void core_offload_get_later(struct core_unexp *in)
{
	util_list_push_back(&in->peer->offload->gets, &in->claim_link);
}

/** Starts gets until one finds no room, and is the last in the list again. */
static void core_offload_get_due(struct core_offload_peer *op)
{
	struct util_list *first;

	while ((first = util_list_pop(&op->gets))) {
		core_unexp_get(UTIL_CONTAINER_OF(first, struct core_unexp, claim_link));
		if (op->gets.prev == first)
			return;
	}
}

void core_offload_retry(struct core_offload_peer *op)
{
	if (UTIL_UNLIKELY(!util_list_is_empty(&op->gets)))
		core_offload_get_due(op);
	if (UTIL_UNLIKELY(!util_list_is_empty(&op->due)))
		core_offload_notify_due(op);
}

/** Notifies the sender later, when the device has room. */
static void core_offload_notify_later(struct core_offload_peer *op,
				      const struct core_tags_request *request, bool is_kept)
{
	struct core_offload_due *due = malloc(sizeof(*due));

	if (due) {
		due->request = *request;
		due->is_kept = is_kept;
		util_list_push_back(&op->due, &due->link);
		return;
	}
	core_offload_end_peer(op); /* the sender would wait for ever */
}

/** Notifies the sender of a message that came by a request. */
static void core_offload_notify(struct core_offload_peer *op, const struct core_unexp *in,
				bool is_kept)
{
	const struct core_tags_request request = {
		.tag = in->tag | (uint64_t)op->id << CORE_OFFLOAD_TAG_BITS,
		.addr = in->addr,
		.key = in->key,
		.len = (uint32_t)in->total,
		.id = in->send_id,
		.data = (uint32_t)in->data,
		.has_data = in->op & WIRE_F_DATA64,
	};

	if (!util_list_is_empty(&op->due) || core_offload_try_notify(op, &request, is_kept))
		core_offload_notify_later(op, &request, is_kept);
}

void core_offload_keep(struct core_unexp *in)
{
	core_offload_notify(in->peer->offload, in, true);
}

void core_offload_finish(struct core_unexp *in, uint32_t code)
{
	struct core_offload_peer *op = in->peer ? in->peer->offload : NULL;

	if (op && code)
		core_offload_end_peer(op);
	else if (op)
		core_offload_notify(op, in, false);
}
