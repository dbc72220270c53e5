/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of collective operations, both sides. See core_coll_msg.h. */
#include "core/coll/core_coll_msg.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/coll/core_coll_op.h"
#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_peer.h"
#include "util/log.h"

static_assert(sizeof(struct wire_coll_reply) <= sizeof(struct wire_status),
	      "core_handle_call refuses calls that leave no room for the reply");

static struct core_coll_msg *core_coll_msg_of(struct core_op *op)
{
	return UTIL_CONTAINER_OF(op, struct core_coll_msg, op);
}

static void core_coll_msg_free(struct core_coll_msg *msg)
{
	core_op_end(&msg->op);
	util_list_remove(&msg->coll_link);
	free(msg->scratch);
	free(msg);
}

void core_coll_msg_forget(struct core_coll_op *op)
{
	struct util_list *it;

	while ((it = util_list_pop(&op->msgs)))
		UTIL_CONTAINER_OF(it, struct core_coll_msg, coll_link)->coll = NULL;
}

/* Ends a message without open calls. May free the operation. */
static void core_coll_msg_end(struct core_coll_msg *msg)
{
	struct core_coll_move *move = msg->move;
	struct core_coll_op *coll = msg->coll;
	bool reads = msg->head.what == WIRE_COLL_READ;
	int err = msg->err;

	if (coll && !err && reads && msg->received != move->len)
		err = -FI_EIO;
	if (coll && !err && msg->scratch)
		core_coll_deliver(coll, move, msg->scratch);
	/* A long PUT ends when it was read and its announcement has its response. */
	if (coll && !err && !reads) {
		move->announced = false;
		if (move->served != move->len)
			coll = NULL;
	}
	core_coll_msg_free(msg);
	if (coll)
		core_coll_move_end(coll, move, err);
}

static size_t core_coll_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Sends one call. Its response may come before the return. */
static int core_coll_msg_call(struct core_coll_msg *msg, const uint8_t *data, size_t len,
			      size_t resp_len)
{
	struct core_chan *chan = msg->op.peer->chan;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct core_frame frame = {
		.op = WIRE_OP_COLL,
		.ext_len = sizeof(msg->head),
		.iov = &iov,
		.iov_cnt = 1,
		.len = len,
	};
	int ret;

	memcpy(frame.ext, &msg->head, sizeof(msg->head));
	msg->calls++;
	ret = chan->ops->call(chan, &frame, (uint32_t)(sizeof(struct wire_coll_reply) + resp_len),
			      &msg->op, 0);
	if (ret)
		msg->calls--;
	return ret;
}

/* Sends a PUT or ABORT: one call, with the bytes if they are few. */
static int core_coll_msg_announce(struct core_coll_msg *msg)
{
	struct core_coll_move *move = msg->coll ? msg->move : NULL;
	size_t room = msg->op.peer->chan->eager_max - sizeof(msg->head);
	bool whole = move && move->len <= core_coll_min(room, CORE_COLL_SHORT);
	int ret;

	if (move) {
		move->announced = true;
		move->served = whole ? move->len : 0;
	}
	ret = core_coll_msg_call(msg, whole ? move->buf : NULL, whole ? move->len : 0, 0);
	if (ret && move)
		move->announced = false;
	return ret;
}

/* Sends READ requests while there is room. */
static int core_coll_msg_request(struct core_coll_msg *msg)
{
	const struct core_chan *chan = msg->op.peer->chan;
	size_t max =
		core_coll_min(CORE_COLL_PIECE, chan->resp_sure - sizeof(struct wire_coll_reply));
	int ret = 0;

	while (msg->coll && !msg->err && !ret && msg->requested < msg->move->len) {
		size_t off = msg->requested;

		msg->head.off = off;
		msg->head.len = core_coll_min(max, msg->move->len - off);
		msg->requested += msg->head.len;
		ret = core_coll_msg_call(msg, NULL, 0, msg->head.len);
		if (ret)
			msg->requested = off;
	}
	return ret;
}

static int core_coll_msg_start(struct core_op *op)
{
	struct core_coll_msg *msg = core_coll_msg_of(op);
	int ret;

	msg->posting = true;
	if (!msg->coll && msg->head.what != WIRE_COLL_ABORT)
		ret = 0; /* the operation has ended */
	else if (msg->head.what == WIRE_COLL_READ)
		ret = core_coll_msg_request(msg);
	else
		ret = core_coll_msg_announce(msg);
	msg->posting = false;
	if (!ret && !msg->calls)
		core_coll_msg_end(msg);
	return ret;
}

static int core_coll_msg_take(struct core_coll_msg *msg, const uint8_t *data, uint32_t len)
{
	struct wire_coll_reply reply;
	uint8_t *to;

	if (len < sizeof(reply))
		return -FI_EIO;
	memcpy(&reply, data, sizeof(reply));
	len -= (uint32_t)sizeof(reply);
	if (reply.status)
		return reply.status <= INT32_MAX ? -(int)reply.status : -FI_EIO;
	if (!msg->coll || !len)
		return len ? -FI_EIO : 0;
	if (msg->head.what != WIRE_COLL_READ || reply.off > msg->requested ||
	    len > msg->requested - reply.off)
		return -FI_EIO;
	to = msg->scratch ? msg->scratch : msg->move->buf;
	memcpy(to + reply.off, data + sizeof(reply), len);
	msg->received += len;
	return 0;
}

static void core_coll_msg_on_reply(struct core_op *op, int status, const uint8_t *data,
				   uint32_t len)
{
	struct core_coll_msg *msg = core_coll_msg_of(op);

	msg->calls--;
	if (!status)
		status = core_coll_msg_take(msg, data, len);
	if (!msg->err)
		msg->err = status;
	if (!msg->calls && !msg->posting && !op->queued)
		core_coll_msg_end(msg);
}

static void core_coll_msg_fail(struct core_op *op, int err)
{
	struct core_coll_msg *msg = core_coll_msg_of(op);

	msg->err = err;
	core_coll_msg_end(msg);
}

static const struct core_op_ops core_coll_msg_ops = {
	.start = core_coll_msg_start,
	.on_reply = core_coll_msg_on_reply,
	.fail = core_coll_msg_fail,
};

static struct core_coll_msg *core_coll_msg_new(const struct core_coll_group *group, uint32_t seq,
					       enum wire_coll_what what)
{
	struct core_coll_msg *msg = calloc(1, sizeof(*msg));

	if (!msg)
		return NULL;
	util_list_init(&msg->coll_link);
	msg->head.group = group->id;
	msg->head.seq = seq;
	msg->head.from = group->me;
	msg->head.what = what;
	return msg;
}

static int core_coll_msg_submit(struct core_coll_group *group, uint32_t member,
				struct core_coll_msg *msg)
{
	struct core_peer *peer = core_peer_get(group->ep, group->members[member]);
	int ret = peer ? core_op_submit_always(&msg->op, &core_coll_msg_ops, peer) : -FI_EINVAL;

	if (ret) {
		util_list_remove(&msg->coll_link);
		free(msg->scratch);
		free(msg);
	}
	return ret;
}

static int core_coll_msg_post(struct core_coll_op *op, struct core_coll_move *move,
			      enum wire_coll_what what)
{
	struct core_coll_msg *msg = core_coll_msg_new(op->group, op->seq, what);

	if (!msg)
		return -FI_ENOMEM;
	if (what == WIRE_COLL_READ && move->kind == CORE_COLL_REDUCE) {
		msg->scratch = malloc(move->len);
		if (!msg->scratch) {
			free(msg);
			return -FI_ENOMEM;
		}
	}
	msg->head.len = move->len;
	msg->coll = op;
	msg->move = move;
	util_list_push_back(&op->msgs, &msg->coll_link);
	return core_coll_msg_submit(op->group, move->member, msg);
}

int core_coll_msg_put(struct core_coll_op *op, struct core_coll_move *move)
{
	return core_coll_msg_post(op, move, WIRE_COLL_PUT);
}

int core_coll_msg_read(struct core_coll_op *op, struct core_coll_move *move)
{
	move->reading = true;
	return core_coll_msg_post(op, move, WIRE_COLL_READ);
}

static struct core_coll_msg *core_coll_msg_new_abort(const struct core_coll_group *group)
{
	struct core_coll_msg *msg = core_coll_msg_new(group, 0, WIRE_COLL_ABORT);

	if (msg)
		msg->head.status = (uint32_t)-group->err;
	return msg;
}

void core_coll_msg_abort(struct core_coll_group *group, uint32_t member)
{
	const struct core_peer *peer = core_peer_get(group->ep, group->members[member]);
	struct core_coll_msg *msg;

	/* A member that has shut down needs no abort. */
	if (!peer || peer->state == CORE_PEER_DEAD ||
	    (peer->state == CORE_PEER_IDLE && peer->incarnation))
		return;
	msg = core_coll_msg_new_abort(group);
	if (msg)
		core_coll_msg_submit(group, member, msg);
}

void core_coll_msg_abort_later(struct core_coll_group *group, struct core_peer *peer)
{
	struct core_coll_msg *msg = core_coll_msg_new_abort(group);

	if (msg)
		core_op_submit_later(&msg->op, &core_coll_msg_ops, peer);
}

/* --- receive side -------------------------------------------------------------------------- */

/* Keeps a message of `size` bytes with its record. Returns 0 or -FI_ENOMEM. */
static int core_coll_unexp_add(struct core_peer *peer, const struct wire_coll *head,
			       const uint8_t *data, size_t len, size_t size)
{
	struct core_coll_unexp *unexp = malloc(size);

	if (!unexp)
		return -FI_ENOMEM;
	*unexp = (struct core_coll_unexp){
		.peer = peer,
		.incarnation = peer->incarnation,
		.group = head->group,
		.seq = head->seq,
		.from = head->from,
		.abort = head->what == WIRE_COLL_ABORT ? -(int)head->status : 0,
		.len = head->len,
		.whole = len == head->len,
	};
	if (len)
		memcpy(unexp->data, data, len);
	util_list_push_back(&peer->ep->coll->unexp, &unexp->link);
	return 0;
}

/* Keeps a PUT until its operation is posted. Returns 0 or -FI_ENOMEM. */
static int core_coll_keep_put(struct core_peer *peer, const struct wire_coll *head,
			      const uint8_t *data, size_t len)
{
	struct core_dom *dom = peer->ep->dom;
	size_t size = sizeof(struct core_coll_unexp) + len;
	int ret;

	if (size > core_dom_unexpected_left(dom))
		return -FI_ENOMEM;
	ret = core_coll_unexp_add(peer, head, data, len, size);
	if (!ret)
		dom->unexpected_used += size;
	return ret;
}

/* Keeps an abort until its group is joined, one per peer and group. Returns 0 or -FI_ENOMEM. */
static int core_coll_keep_abort(struct core_peer *peer, const struct wire_coll *head)
{
	struct core_coll_unexp *unexp, *oldest = NULL;
	struct util_list *it, *tmp;
	unsigned cnt = 0;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &peer->ep->coll->unexp) {
		unexp = UTIL_CONTAINER_OF(it, struct core_coll_unexp, link);
		if (unexp->peer != peer || !unexp->abort)
			continue;
		if (unexp->group == head->group)
			return 0;
		if (!cnt++)
			oldest = unexp;
	}
	if (cnt >= CORE_COLL_ABORTS_MAX)
		core_coll_unexp_free(peer->ep, oldest);
	return core_coll_unexp_add(peer, head, NULL, 0, sizeof(struct core_coll_unexp));
}

/* Handles a PUT: delivers it to its move, or keeps it. Returns 0 or -FI_E* for the response. */
static int core_coll_on_put(struct core_coll_group *group, struct core_peer *peer,
			    const struct wire_coll *head, const uint8_t *data, size_t len)
{
	struct core_coll_move *move = NULL;
	struct core_coll_op *op;
	int ret;

	if (group)
		move = core_coll_open_move(group, head->seq, head->from, false, &op);
	if (!move || move->reading)
		return core_coll_keep_put(peer, head, data, len);
	if (!core_coll_len_matches(move, head->len)) {
		core_coll_move_end(op, move, -FI_EINVAL);
		return -FI_EINVAL;
	}
	if (len == head->len) {
		core_coll_deliver(op, move, data);
		core_coll_move_end(op, move, 0);
		return 0;
	}
	ret = core_coll_msg_read(op, move);
	if (ret)
		core_coll_move_end(op, move, ret);
	return 0;
}

static void core_coll_reply(struct core_chan *chan, struct core_call_ref ref, int err, uint64_t off,
			    const uint8_t *data, size_t len)
{
	struct wire_coll_reply reply = { .status = (uint32_t)-err, .off = off };
	struct iovec iov[2] = { { .iov_base = &reply, .iov_len = sizeof(reply) },
				{ .iov_base = (void *)(uintptr_t)data, .iov_len = len } };

	chan->ops->reply(chan, ref, iov, len ? 2 : 1, sizeof(reply) + len, 0);
}

/* Handles a READ: replies with a piece of a move's bytes. */
static enum core_rx_verdict core_coll_on_read(struct core_coll_group *group, struct core_chan *chan,
					      struct core_call_ref ref,
					      const struct wire_coll *head)
{
	struct core_coll_move *move = NULL;
	struct core_coll_op *op;

	if (ref.resp_max - sizeof(struct wire_coll_reply) < head->len)
		return CORE_RX_BAD;
	if (group)
		move = core_coll_open_move(group, head->seq, head->from, true, &op);
	if (!move) { /* the operation has ended */
		core_coll_reply(chan, ref, -FI_ECANCELED, head->off, NULL, 0);
		return CORE_RX_DONE;
	}
	if (!head->len || head->off > move->len || head->len > move->len - head->off ||
	    head->len > move->len - move->served)
		return CORE_RX_BAD;
	core_coll_reply(chan, ref, 0, head->off, move->buf + head->off, head->len);
	move->served += head->len;
	if (move->served == move->len && !move->announced)
		core_coll_move_end(op, move, 0);
	return CORE_RX_DONE;
}

/* Handles an ABORT: aborts the group, or the later join. Returns 0 or -FI_ENOMEM. */
static int core_coll_on_abort(struct core_coll_group *group, struct core_peer *peer,
			      const struct wire_coll *head)
{
	if (!group)
		return core_coll_keep_abort(peer, head);
	core_coll_abort(group, -(int)head->status, false);
	return 0;
}

static bool core_coll_parse(const struct core_head *head, struct wire_coll *coll, size_t *len)
{
	if (head->tagged || head->has_data || head->body_len < sizeof(*coll))
		return false;
	memcpy(coll, head->body, sizeof(*coll));
	*len = head->body_len - sizeof(*coll);
	switch (coll->what) {
	case WIRE_COLL_PUT:
		return (!*len || *len == coll->len) && coll->len <= SIZE_MAX / 2 && !coll->off &&
		       !coll->status;
	case WIRE_COLL_READ: return !*len && !coll->status;
	case WIRE_COLL_ABORT:
		return !*len && !coll->len && !coll->off && coll->status &&
		       coll->status <= INT32_MAX;
	default: return false;
	}
}

enum core_rx_verdict core_coll_on_call(struct core_chan *chan, struct core_call_ref ref,
				       struct core_head *head, core_retain_t retain)
{
	struct core_peer *peer = chan->peer;
	struct core_coll_group *group;
	struct wire_coll coll;
	size_t len;
	int ret = 0;

	if (!core_coll_parse(head, &coll, &len))
		return CORE_RX_BAD;
	if (!peer->ep->coll) {
		core_coll_reply(chan, ref, -FI_EOPNOTSUPP, 0, NULL, 0);
		return CORE_RX_DONE;
	}
	group = core_coll_find(peer->ep, coll.group);
	if (group && (coll.from == group->me || !core_coll_is_member(group, peer, coll.from)))
		return CORE_RX_BAD;
	if (coll.what == WIRE_COLL_READ)
		return core_coll_on_read(group, chan, ref, &coll);
	if (coll.what == WIRE_COLL_ABORT)
		ret = core_coll_on_abort(group, peer, &coll);
	else if (group && group->err)
		ret = group->err; /* the sender aborts its group, too */
	else
		ret = core_coll_on_put(group, peer, &coll, head->body + sizeof(coll), len);
	core_coll_reply(chan, ref, ret, 0, NULL, 0);
	return CORE_RX_DONE;
}
