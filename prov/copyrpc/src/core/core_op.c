/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations to a peer, and their order. See core_op.h. */
#include "core/core_op.h"

#include <rdma/fi_errno.h>

#include "core/core_dom.h"
#include "core/core_peer.h"
#include "util/stats.h"

static struct core_op *core_op_first(const struct util_list *list)
{
	return UTIL_CONTAINER_OF(list->next, struct core_op, wait_link);
}

static void core_op_queue(struct core_op *op, bool front)
{
	if (front)
		util_list_push_front(&op->peer->tx_queue, &op->wait_link);
	else
		util_list_push_back(&op->peer->tx_queue, &op->wait_link);
	op->queued = true;
	op->peer->ep->tx_queued++;
}

void core_op_unqueue(struct core_op *op)
{
	util_list_remove(&op->wait_link);
	op->queued = false;
	op->peer->ep->tx_queued--;
}

/**
 * Returns true while earlier operations have not ended. The device reports the end of silent ones
 * when the channel is asked whether it is busy.
 */
static bool core_op_must_wait(const struct core_op *op)
{
	struct core_chan *chan = op->peer->chan;

	if (!core_op_is_oldest(op))
		return true;
	if (!core_simple_is_awaited(&op->peer->simple))
		return false;
	if (chan)
		chan->ops->is_busy(chan);
	return true;
}

/** Starts the first operation of the queue. On error it is first again. */
static int core_op_start(struct core_op *op)
{
	int ret;

	if ((op->fence && core_op_must_wait(op)) || (op->peer->direct_reads && !op->reads) ||
	    (op->peer->holds && !op->tried))
		return -FI_EAGAIN;
	core_op_unqueue(op);
	ret = op->ops->start(op);
	if (ret) {
		op->tried = true;
		core_op_queue(op, true);
	}
	return ret;
}

/**
 * Starts queued operations in order and counts them. Returns 0 if the queue is empty, or the error
 * of the first one.
 */
static int core_op_run_queue(struct core_peer *peer, unsigned *cnt)
{
	int ret;

	while (peer->chan && !util_list_is_empty(&peer->tx_queue)) {
		ret = core_op_start(core_op_first(&peer->tx_queue));
		if (ret)
			return ret;
		++*cnt;
	}
	return 0;
}

/**
 * Sends more of the streams and counts those that sent all. Returns 0 if none is left, or the error
 * of the first one.
 */
static int core_op_run_streams(struct core_peer *peer, unsigned *cnt)
{
	struct core_op *op;
	int ret;

	while (!util_list_is_empty(&peer->tx_stream)) {
		op = core_op_first(&peer->tx_stream);
		ret = op->ops->stream(op);
		if (ret)
			return ret;
		++*cnt;
	}
	return 0;
}

/**
 * Runs queue and streams, and queues the peer for progress while something is left. The end of a
 * stream may let the queue go on. Returns true if nothing was done for lack of room.
 */
static bool core_op_run(struct core_peer *peer)
{
	unsigned cnt = 0, before;
	int queue, streams;

	do {
		before = cnt;
		queue = core_op_run_queue(peer, &cnt);
		streams = core_op_run_streams(peer, &cnt);
	} while (queue == -FI_EAGAIN && !streams && cnt != before);
	core_peer_set_eager(peer);
	if (queue || streams)
		core_op_schedule(peer);
	else
		util_list_remove(&peer->work.link);
	return !cnt && (!queue || queue == -FI_EAGAIN) && (!streams || streams == -FI_EAGAIN);
}

void core_op_adopt(struct core_op *op, const struct core_op_ops *ops, struct core_peer *peer)
{
	op->ops = ops;
	op->peer = peer;
	op->queued = false;
	op->tried = false;
	op->watched = false;
	util_list_init(&op->wait_link);
	util_list_push_back(&peer->tx, &op->peer_link);
	peer->ep->tx_open++;
}

int core_op_submit(struct core_op *op, const struct core_op_ops *ops, struct core_peer *peer)
{
	return peer->ep->tx_queued < CORE_OP_QUEUE_MAX ? core_op_submit_always(op, ops, peer)
						       : -FI_EAGAIN;
}

int core_op_submit_always(struct core_op *op, const struct core_op_ops *ops, struct core_peer *peer)
{
	int ret = core_peer_connect(peer);

	if (ret)
		return ret;
	core_op_adopt(op, ops, peer);
	core_op_queue(op, false);
	core_peer_set_eager(peer);
	if (peer->state != CORE_PEER_UP) {
		peer->ep->stats->waited_connection++;
		return 0;
	}
	core_op_run(peer);
	peer->ep->stats->waited_peer += !util_list_is_empty(&peer->tx_queue);
	return 0;
}

void core_op_submit_later(struct core_op *op, const struct core_op_ops *ops, struct core_peer *peer)
{
	core_op_adopt(op, ops, peer);
	core_op_queue(op, false);
	core_peer_set_eager(peer);
	core_op_schedule(peer);
}

void core_op_end(struct core_op *op)
{
	if (op->queued)
		op->peer->ep->tx_queued--;
	util_list_remove(&op->peer_link);
	util_list_remove(&op->wait_link);
	op->peer->ep->tx_open--;
}

void core_op_stream(struct core_op *op)
{
	util_list_push_back(&op->peer->tx_stream, &op->wait_link);
	core_op_schedule(op->peer);
}

void core_op_unstream(struct core_op *op)
{
	util_list_remove(&op->wait_link);
}

void core_op_restream(struct core_op *op)
{
	util_list_push_front(&op->peer->tx_stream, &op->wait_link);
}

void core_op_schedule(struct core_peer *peer)
{
	if (peer->state == CORE_PEER_UP)
		core_dom_work(peer->ep->dom, &peer->work);
}

void core_op_resume(struct core_work *work)
{
	core_op_run(UTIL_CONTAINER_OF(work, struct core_peer, work));
}

bool core_op_retry(struct core_work *work)
{
	return !core_op_run(UTIL_CONTAINER_OF(work, struct core_peer, work));
}

bool core_op_is_oldest(const struct core_op *op)
{
	return op->peer->tx.next == &op->peer_link;
}

void core_op_fail_peer(struct core_peer *peer, int err)
{
	struct util_list *first;
	struct core_op *op;

	while ((first = util_list_first(&peer->tx))) {
		op = UTIL_CONTAINER_OF(first, struct core_op, peer_link);
		op->ops->fail(op, err);
	}
}

void core_op_on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		      uint32_t len)
{
	struct core_op *op = context;

	op->ops->on_reply(op, status, data, len);
}
