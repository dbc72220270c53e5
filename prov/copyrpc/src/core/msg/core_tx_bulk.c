/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send side of messages of several frames and of those that get a reply: see core_tx_bulk.h. */
#include "core/msg/core_tx_bulk.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/msg/core_tx.h"
#include "util/clock.h"
#include "util/copy.h"
#include "util/param.h"
#include "util/stats.h"
#include "wire/wire_op.h"

bool core_tx_is_bulk(const struct core_peer *peer, size_t len, uint64_t flags)
{
	return len > core_peer_eager_max(peer) || (flags & CORE_TX_REPLY_FLAGS);
}

/** Returns true if the peer's get would be a copy by the kernel, and the ring may be faster. */
static bool core_tx_is_selectable(const struct core_peer *peer, const struct core_tx_req *req)
{
	return !(req->flags & CORE_TX_REPLY_FLAGS) && req->iov_cnt == 1 &&
	       (peer->chan->caps & CORE_CHAN_GET) && !peer->chan->get_min &&
	       req->len >= peer->ep->dom->limits.single_copy_min &&
	       req->len >= CORE_TX_SELECTED_MIN && req->len <= CORE_TX_SELECTOR_MAX;
}

/** Returns true if the send buffer is one, or can be made one (core_tx_join). */
static bool core_tx_is_exposable(const struct core_peer *peer, const struct core_tx_req *req)
{
	return req->iov_cnt == 1 || peer->chan->eager_min;
}

/** Returns true for rendezvous, false for the pipelined protocol, where nothing is timed. */
static bool core_tx_should_rndv(const struct core_peer *peer, const struct core_tx_req *req)
{
	if (req->flags & CORE_TX_REPLY_FLAGS)
		return true;
	if (peer->chan->caps & CORE_CHAN_GET && core_tx_is_exposable(peer, req))
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
	int ret = 0;

	if (req->send_id == CORE_NO_ID)
		ret = util_idmap_alloc(&req->op.peer->ep->tx_ids, req, &req->send_id);
	return ret ? core_chan_refuse(req->op.peer->chan, CORE_SHORT_MEMORY, ret) : 0;
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

static int core_tx_start_sync(struct core_tx_req *req)
{
	struct core_frame frame;
	int ret = core_tx_name(req);

	if (ret)
		return ret;
	core_tx_frame(&frame, req, WIRE_OP_SYNC);
	core_tx_ext_add(&frame, &(struct wire_sync){ .send_id = req->send_id },
			sizeof(struct wire_sync));
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

bool core_tx_expose(struct core_tx_req *req)
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
	int ret = core_tx_name(req);

	if (ret)
		return ret;
	req->announced = true;
	rndv.send_id = req->send_id;
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

static_assert(UTIL_PARAM_EAGER_MIN > sizeof(struct wire_part), "a first part has bytes");

/**
 * Starts with a part of an eager message's length, of which its head takes some. The receiver
 * refuses one without bytes.
 */
static int core_tx_start_pipelined(struct core_tx_req *req)
{
	struct core_chan *chan = req->op.peer->chan;
	size_t max = core_peer_eager_max(req->op.peer) - sizeof(struct wire_part);
	struct wire_part part = { .total_len = req->len };
	struct core_frame frame;
	int ret = core_tx_name(req);

	assert(core_peer_eager_max(req->op.peer) > sizeof(part));
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
	req->op.peer->pipelined++;
	core_op_stream(&req->op);
	return 0;
}

/** Starts a message by the protocol that the selector chooses, and notes when if it is timed. */
static int core_tx_start_selected(struct core_tx_req *req)
{
	struct core_peer *peer = req->op.peer;
	size_t len = req->len;
	struct core_tx_choice choice =
		core_tx_selector_choose(&peer->selector, len, core_op_is_only(&req->op));
	int ret;

	req->start_ns = choice.timed ? util_clock_ns() : 0;
	ret = choice.protocol == CORE_TX_PARTS ? core_tx_start_pipelined(req)
					       : core_tx_start_rndv(req);
	if (!ret) /* req may be freed */
		core_tx_selector_started(&peer->selector, len, choice);
	return ret;
}

/**
 * Starts a message of a process that shares its processor. A rendezvous waits for two ends that
 * take turns there, and its times are those of the scheduler.
 */
static int core_tx_start_shared(struct core_tx_req *req)
{
	return req->len <= CORE_TX_PIPELINED_MAX ? core_tx_start_pipelined(req)
						 : core_tx_start_rndv(req);
}

/** Returns true if SYNC can carry the message. Its id comes on top of tag and data. */
static bool core_tx_fits_sync(const struct core_peer *peer, size_t len)
{
	return len + sizeof(struct wire_sync) <= core_peer_eager_max(peer);
}

bool core_tx_is_rndv(const struct core_peer *peer, const struct core_tx_req *req)
{
	return req->iov_cnt == 1 && (peer->chan->caps & CORE_CHAN_GET) &&
	       req->len > core_peer_eager_max(peer) && !core_tx_fits_sync(peer, req->len) &&
	       core_tx_should_rndv(peer, req);
}

int core_tx_bulk_start(struct core_tx_req *req)
{
	struct core_peer *peer = req->op.peer;

	req->start_ns = 0;
	if (req->len <= core_peer_eager_max(peer) && !(req->flags & FI_MATCH_COMPLETE))
		return core_tx_start_deliver(req);
	if (core_tx_fits_sync(peer, req->len))
		return core_tx_start_sync(req);
	if (core_tx_is_selectable(peer, req))
		return util_switches_event(&peer->ep->dom->switches) ? core_tx_start_shared(req)
								     : core_tx_start_selected(req);
	return core_tx_should_rndv(peer, req) ? core_tx_start_rndv(req)
					      : core_tx_start_pipelined(req);
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
 * Sends the last part of a pulled or timed message as a call. The reply ends the request, and may
 * come before the call returns: the state is set before, and `req` not used afterwards.
 */
static int core_tx_call_last(struct core_tx_req *req, const struct core_frame *frame)
{
	struct core_peer *peer = req->op.peer;
	struct core_chan *chan = peer->chan;
	enum core_tx_state state = req->state;
	int ret;

	core_op_unstream(&req->op);
	req->state = CORE_TX_CONFIRM;
	peer->pipelined--;
	ret = chan->ops->call(chan, frame, sizeof(struct wire_status), &req->op, 0);
	if (ret) {
		req->state = state;
		peer->pipelined++;
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

int core_tx_bulk_stream(struct core_op *op)
{
	struct core_tx_req *req = core_tx_req_of(op);
	struct core_chan *chan = op->peer->chan;
	size_t max = chan->eager_max - sizeof(struct wire_cont);
	bool pulled = req->state == CORE_TX_PULLED;
	struct core_frame frame;
	int ret;

	max = max < core_tx_segment_len(chan) ? max : core_tx_segment_len(chan);
	ret = core_tx_full_segments(req, pulled, max);
	if (ret)
		return ret;
	core_tx_segment(&frame, req, pulled, req->len - req->sent);
	if (pulled || req->start_ns)
		return core_tx_call_last(req, &frame);
	ret = chan->ops->send(chan, &frame, 0);
	if (ret)
		return ret;
	op->peer->pipelined--;
	core_tx_end_accepted(req);
	return 0;
}

/** Continues a rendezvous after the receiver has requested CONT frames. */
static void core_tx_pulled(struct core_tx_req *req, uint32_t recv_id)
{
	core_tx_unexpose(req);
	req->recv_id = recv_id;
	req->start_ns = 0;
	req->sent = 0;
	req->state = CORE_TX_PULLED;
	req->op.peer->pipelined++;
	core_peer_set_eager(req->op.peer);
	core_op_stream(&req->op);
}

/** Adds the time of a message that was alone. `late`: its receive was posted after it arrived. */
static void core_tx_timed(struct core_tx_req *req, bool late)
{
	struct core_tx_selector *sel = &req->op.peer->selector;
	enum core_tx_protocol protocol =
		req->state == CORE_TX_CONFIRM ? CORE_TX_PARTS : CORE_TX_GET;

	if (late)
		core_tx_selector_add_late(sel, req->len, protocol);
	else
		core_tx_selector_add(sel, req->len, protocol, util_clock_ns() - req->start_ns);
}

/** Returns the error of a status that is 0 or FI_E*, and -FI_EIO for any other. */
static int core_tx_status_err(uint32_t status)
{
	return status < FI_ERRNO_MAX ? -(int)status : -FI_EIO;
}

/** Ends a request with the status of its message, or continues it with CONT frames. */
static void core_tx_bulk_done(struct core_tx_req *req, uint32_t status, uint32_t recv_id)
{
	if (status == WIRE_STATUS_PULL && req->announced && req->state != CORE_TX_CONFIRM) {
		core_tx_pulled(req, recv_id);
		return;
	}
	if (!status && req->exposure.chan)
		util_stats_given(req->exposure.chan->stats, req->len);
	if (!status && req->start_ns && core_op_is_only(&req->op))
		core_tx_timed(req, recv_id == WIRE_HINT_LATE);
	core_tx_end(req, core_tx_status_err(status));
}

/** Returns true while the reply to a RNDV or SYNC has not come. */
static bool core_tx_may_be_kept(const struct core_tx_req *req)
{
	return (req->state == CORE_TX_REPLY || req->state == CORE_TX_DONE) &&
	       req->send_id != CORE_NO_ID;
}

/** Waits for DONE, or takes the one that has come before. */
static void core_tx_kept(struct core_tx_req *req)
{
	bool is_done = req->state == CORE_TX_DONE;

	req->state = CORE_TX_KEPT;
	if (is_done)
		core_tx_bulk_done(req, req->status, req->recv_id);
}

/** Takes DONE. Over sessions it may overtake the reply, which ends the request then. */
static bool core_tx_take_done(struct core_tx_req *req, const struct wire_done *done)
{
	if (req->state == CORE_TX_KEPT) {
		core_tx_bulk_done(req, done->status, done->recv_id);
		return true;
	}
	if (req->state != CORE_TX_REPLY)
		return false;
	req->state = CORE_TX_DONE;
	req->status = done->status;
	req->recv_id = done->recv_id;
	return true;
}

void core_tx_bulk_on_reply(struct core_op *op, int status, const uint8_t *data, uint32_t len)
{
	struct core_tx_req *req = core_tx_req_of(op);
	struct wire_status reply = { .status = FI_EIO };

	if (len == sizeof(reply))
		memcpy(&reply, data, sizeof(reply));
	if (status)
		core_tx_end(req, status);
	else if (reply.status == WIRE_STATUS_KEPT && core_tx_may_be_kept(req))
		core_tx_kept(req);
	else
		core_tx_bulk_done(req, req->state == CORE_TX_DONE ? FI_EIO : reply.status,
				  reply.recv_id);
}

enum core_rx_verdict core_tx_bulk_on_done(struct core_chan *chan, struct core_head *head,
					  core_retain_t retain)
{
	struct core_tx_req *req;
	struct wire_done done;

	(void)retain; /* no bytes */
	if (head->body_len != sizeof(done) || head->tagged || head->has_data)
		return CORE_RX_BAD;
	memcpy(&done, head->body, sizeof(done));
	req = util_idmap_lookup(&chan->peer->ep->tx_ids, done.send_id);
	if (done.zero || done.status == WIRE_STATUS_KEPT || !req || req->op.peer != chan->peer)
		return CORE_RX_BAD;
	return core_tx_take_done(req, &done) ? CORE_RX_DONE : CORE_RX_BAD;
}
