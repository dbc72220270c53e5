/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send side of pipelined, rendezvous and delivery-complete messages: see core_tx_bulk.h. */
#include "core/msg/core_tx_bulk.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/msg/core_tx.h"
#include "util/clock.h"
#include "util/copy.h"
#include "wire/wire_op.h"

bool core_tx_is_bulk(const struct core_peer *peer, size_t len, uint64_t flags)
{
	return len > core_peer_eager_max(peer) || (flags & FI_DELIVERY_COMPLETE);
}

/** Returns true if the protocol selector decides: the peer's get is a copy by the kernel. */
static bool core_tx_is_selectable(const struct core_peer *peer, size_t len, uint64_t flags)
{
	return !(flags & FI_DELIVERY_COMPLETE) && (peer->chan->caps & CORE_CHAN_GET) &&
	       !peer->chan->get_min && len >= peer->ep->dom->limits.single_copy_min &&
	       len <= CORE_TX_PIPELINED_MAX;
}

/** Returns true for the rendezvous protocol, false for the pipelined one. */
static bool core_tx_should_rndv(const struct core_peer *peer, const struct core_tx_req *req)
{
	if (req->flags & FI_DELIVERY_COMPLETE)
		return true;
	if (core_tx_is_selectable(peer, req->len, req->flags))
		return !core_tx_selector_is_pipelined(&peer->selector);
	if (peer->chan->caps & CORE_CHAN_GET)
		return req->len >= (peer->chan->get_min ? peer->chan->get_min
							: peer->ep->dom->limits.single_copy_min);
	return req->len > CORE_TX_PIPELINED_MAX;
}

static void core_tx_frame(struct core_frame *frame, const struct core_tx_req *req, uint32_t op)
{
	frame->op = op;
	frame->iov = req->iov;
	frame->iov_cnt = req->iov_cnt;
	frame->iov_off = 0;
	frame->len = 0;
	core_tx_fill_ext(frame, req->tag, req->data, req->flags, req->tagged);
}

static void core_tx_ext_add(struct core_frame *frame, const void *field, uint32_t len)
{
	memcpy((uint8_t *)frame->ext + frame->ext_len, field, len);
	frame->ext_len += len;
}

static int core_tx_name(struct core_tx_req *req)
{
	if (req->send_id != CORE_NO_ID)
		return 0;
	return util_idmap_alloc(&req->op.peer->ep->tx_ids, req, &req->send_id);
}

/** Makes the call of a request. The state is set first: the reply may come before the return. */
static int core_tx_call(struct core_tx_req *req, const struct core_frame *frame)
{
	struct core_chan *chan = req->op.peer->chan;
	int ret;

	req->state = CORE_TX_REPLY;
	ret = chan->ops->call(chan, frame, sizeof(struct wire_status), &req->op, 0);
	if (ret)
		req->state = CORE_TX_QUEUED;
	return ret;
}

static int core_tx_start_deliver(struct core_tx_req *req)
{
	struct core_frame frame;

	core_tx_frame(&frame, req, WIRE_OP_DLVR);
	frame.len = req->len;
	return core_tx_call(req, &frame);
}

void core_tx_unexpose(struct core_tx_req *req)
{
	struct core_chan *chan = req->exposure.chan;

	if (!chan)
		return;
	chan->ops->unexpose(chan, &req->exposure);
	req->exposure.chan = NULL;
}

/**
 * Makes one buffer of several, where the engine copies all bytes anyway (core_chan.eager_min).
 * There CONT frames, each with its own acknowledgement, take 1.6 times as long as a get, and 1.8
 * times where packets are lost (ud_pieces). Returns false if the message stays in pieces.
 */
static bool core_tx_join(struct core_tx_req *req)
{
	if (!req->op.peer->chan->eager_min || req->copy || req->len > CORE_TX_JOIN_MAX)
		return false;
	req->copy = malloc(req->len);
	if (!req->copy)
		return false;
	util_iov_gather(req->copy, req->iov, req->iov_cnt, 0, req->len);
	req->iov[0] = (struct iovec){ .iov_base = req->copy, .iov_len = req->len };
	req->iov_cnt = 1;
	return true;
}

/** Exposes the send buffer, once even if the call is retried. Returns false if that fails. */
static bool core_tx_expose(struct core_tx_req *req)
{
	struct core_chan *chan = req->op.peer->chan;

	if (req->exposure.chan)
		return true;
	if ((req->iov_cnt != 1 && !core_tx_join(req)) || !(chan->caps & CORE_CHAN_GET) ||
	    chan->ops->expose(chan, req->iov[0].iov_base, req->len, &req->exposure))
		return false;
	req->exposure.chan = chan;
	return true;
}

static int core_tx_start_rndv(struct core_tx_req *req)
{
	struct wire_rndv rndv = { .total_len = req->len };
	struct core_frame frame;

	core_tx_frame(&frame, req, WIRE_OP_RNDV);
	/* Address 0 makes the receiver pull CONT frames: only contiguous memory can be exposed. */
	if (core_tx_expose(req)) {
		rndv.addr = (uintptr_t)req->iov[0].iov_base;
		rndv.key = req->exposure.key;
	}
	core_tx_ext_add(&frame, &rndv, sizeof(rndv));
	return core_tx_call(req, &frame);
}

static size_t core_tx_segment_len(const struct core_chan *chan)
{
	return chan->eager_min > CORE_TX_SEGMENT_LEN ? chan->eager_min : CORE_TX_SEGMENT_LEN;
}

static int core_tx_start_pipelined(struct core_tx_req *req)
{
	struct core_chan *chan = req->op.peer->chan;
	size_t max = core_peer_eager_max(req->op.peer) - sizeof(struct wire_part);
	struct wire_part part = { .total_len = req->len };
	struct core_frame frame;
	int ret = core_tx_name(req);

	if (ret)
		return ret;
	core_tx_frame(&frame, req, WIRE_OP_PART);
	part.send_id = req->send_id;
	core_tx_ext_add(&frame, &part, sizeof(part));
	frame.len = max < core_tx_segment_len(chan) ? max : core_tx_segment_len(chan);
	ret = chan->ops->send(chan, &frame, 0);
	if (ret)
		return ret;
	req->sent = frame.len;
	req->state = CORE_TX_PIPELINED;
	core_op_stream(&req->op);
	return 0;
}

int core_tx_bulk_start(struct core_tx_req *req)
{
	struct core_peer *peer = req->op.peer;
	bool selectable;
	int ret;

	if (req->len <= core_peer_eager_max(peer))
		return core_tx_start_deliver(req);
	selectable = core_tx_is_selectable(peer, req->len, req->flags);
	ret = core_tx_should_rndv(peer, req) ? core_tx_start_rndv(req)
					     : core_tx_start_pipelined(req);
	if (!ret && selectable) /* req may be freed */
		core_tx_selector_started(&peer->selector);
	return ret;
}

/** Fills a CONT frame for `len` bytes from req->sent on. */
static void core_tx_segment(struct core_frame *frame, const struct core_tx_req *req, bool pulled,
			    size_t len)
{
	struct wire_cont cont = {
		.offset = req->sent,
		.id = pulled ? req->recv_id : req->send_id,
		.kind = pulled ? WIRE_CONT_PULLED : WIRE_CONT_SENT,
	};

	frame->op = WIRE_OP_CONT;
	frame->ext_len = 0;
	core_tx_ext_add(frame, &cont, sizeof(cont));
	frame->iov = req->iov;
	frame->iov_cnt = req->iov_cnt;
	frame->iov_off = req->sent;
	frame->len = len;
}

/**
 * Sends the last part of a pulled message as a call. The reply ends the request, and may come
 * before the call returns: the state is set before, and `req` not used afterwards.
 */
static int core_tx_send_last_pulled(struct core_tx_req *req, const struct core_frame *frame)
{
	struct core_chan *chan = req->op.peer->chan;
	int ret;

	core_op_unstream(&req->op);
	req->state = CORE_TX_CONFIRM;
	ret = chan->ops->call(chan, frame, sizeof(struct wire_status), &req->op, 0);
	if (ret) {
		req->state = CORE_TX_PULLED;
		core_op_restream(&req->op);
	}
	return ret;
}

/** Sends CONT frames of `max` bytes, all but the last one. Returns 0 or the error of send. */
static int core_tx_full_segments(struct core_tx_req *req, bool pulled, size_t max)
{
	struct core_chan *chan = req->op.peer->chan;
	struct core_frame frame;
	int ret;

	while (req->len - req->sent > max) {
		core_tx_segment(&frame, req, pulled, max);
		ret = chan->ops->send(chan, &frame, 0);
		if (ret)
			return ret;
		req->sent += max;
	}
	return 0;
}

/** Sends all but the last CONT frame and adds a sample, unless the ring was full. */
static int core_tx_timed_segments(struct core_tx_req *req, size_t max)
{
	uint64_t start_ns = util_clock_ns();
	size_t before = req->sent;
	int ret = core_tx_full_segments(req, false, max);

	if (!ret && req->sent > before)
		core_tx_selector_add_sample(&req->op.peer->selector, util_clock_ns() - start_ns,
					    req->sent - before);
	return ret;
}

int core_tx_bulk_stream(struct core_op *op)
{
	struct core_tx_req *req = core_tx_req_of(op);
	struct core_chan *chan = op->peer->chan;
	size_t max = chan->eager_max - sizeof(struct wire_cont);
	bool pulled = req->state == CORE_TX_PULLED;
	struct core_frame frame;
	int ret;

	max = max < core_tx_segment_len(chan) ? max : core_tx_segment_len(chan);
	if (!pulled && core_tx_selector_samples(&op->peer->selector) &&
	    core_tx_is_selectable(op->peer, req->len, req->flags))
		ret = core_tx_timed_segments(req, max);
	else
		ret = core_tx_full_segments(req, pulled, max);
	if (ret)
		return ret;
	core_tx_segment(&frame, req, pulled, req->len - req->sent);
	if (pulled)
		return core_tx_send_last_pulled(req, &frame);
	ret = chan->ops->send(chan, &frame, 0);
	if (!ret)
		core_tx_end_accepted(req);
	return ret;
}

/** Continues a rendezvous after the receiver has requested CONT frames. */
static void core_tx_pulled(struct core_tx_req *req, uint32_t recv_id)
{
	core_tx_unexpose(req);
	req->recv_id = recv_id;
	req->sent = 0;
	req->state = CORE_TX_PULLED;
	core_op_stream(&req->op);
}

void core_tx_bulk_on_reply(struct core_op *op, int status, const uint8_t *data, uint32_t len)
{
	struct core_tx_req *req = core_tx_req_of(op);
	struct wire_status reply = { .status = FI_EIO };

	if (len == sizeof(reply))
		memcpy(&reply, data, sizeof(reply));
	if (!status && reply.status == WIRE_STATUS_PULL && req->state == CORE_TX_REPLY) {
		core_tx_pulled(req, reply.recv_id);
		return;
	}
	if (!status && reply.status)
		status = -(int)(reply.status & 0xFFFF);
	core_tx_end(req, status);
}
