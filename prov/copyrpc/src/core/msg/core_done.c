/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Notices of the end of kept messages: see core_done.h. */
#include "core/msg/core_done.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_ep.h"
#include "core/core_peer.h"

struct core_done *core_done_new(struct core_ep *ep, uint32_t send_id)
{
	struct core_done *done = util_pool_alloc(&ep->dones);

	if (done)
		done->wire = (struct wire_done){ .send_id = send_id };
	return done;
}

void core_done_free(struct core_ep *ep, struct core_done *done)
{
	util_pool_release(&ep->dones, done);
}

static struct core_done *core_done_of(struct core_op *op)
{
	return UTIL_CONTAINER_OF(op, struct core_done, op);
}

static int core_done_post(const struct core_done *done, struct core_chan *chan)
{
	struct core_frame frame = { .op = WIRE_OP_DONE, .ext_len = sizeof(done->wire) };

	memcpy(frame.ext, &done->wire, sizeof(done->wire));
	return chan->ops->send(chan, &frame, 0);
}

static void core_done_end(struct core_op *op)
{
	struct core_ep *ep = op->peer->ep;

	core_op_end(op);
	core_done_free(ep, core_done_of(op));
}

static int core_done_stream(struct core_op *op)
{
	int ret = core_done_post(core_done_of(op), op->peer->chan);

	if (!ret)
		core_done_end(op);
	return ret;
}

static void core_done_fail(struct core_op *op, int err)
{
	(void)err; /* the sender's operation ends with the channel, too */
	core_done_end(op);
}

/*
 * A stream, and the first one: operations of the queue, and streams without credit, may wait for
 * what this message permits the peer to do.
 */
static const struct core_op_ops core_done_ops = {
	.stream = core_done_stream,
	.fail = core_done_fail,
};

void core_done_send(struct core_done *done, struct core_peer *peer, uint32_t status,
		    uint32_t recv_id)
{
	int ret;

	done->wire.status = status;
	done->wire.recv_id = recv_id;
	ret = core_done_post(done, peer->chan);
	if (ret != -FI_EAGAIN) {
		core_done_free(peer->ep, done);
		return;
	}
	core_op_adopt(&done->op, &core_done_ops, peer);
	core_op_restream(&done->op);
	core_op_schedule(peer);
}
