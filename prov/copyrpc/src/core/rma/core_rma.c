/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* RMA reads and writes, initiator side: see core_rma.h. */
#include "core/rma/core_rma.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/rma/core_atomic.h"
#include "core/rma/core_rma_bulk.h"
#include "core/rma/core_rma_direct.h"
#include "util/copy.h"
#include "wire/wire_rma.h"

static struct core_rma_req *core_rma_req_of(struct core_op *op)
{
	return UTIL_CONTAINER_OF(core_access_of(op), struct core_rma_req, access);
}

static void core_rma_end(struct core_rma_req *req)
{
	core_rma_bulk_unexpose(req);
	core_access_end(&req->access, &req->access.op.peer->ep->rma_reqs);
}

static void core_rma_end_if_done(struct core_rma_req *req)
{
	if (!req->fetching && !req->returning && core_access_is_over(&req->access))
		core_rma_end(req);
}

static void core_rma_wire(const struct core_rma_req *req, size_t len, struct wire_rma *rma)
{
	const struct fi_rma_iov *remote = &req->access.rma[req->access.rma_idx];
	bool none = req->access.rma_idx == req->access.rma_cnt; /* an access of no bytes */

	rma->addr = none ? 0 : remote->addr + req->access.rma_off;
	rma->key = none ? 0 : remote->key;
	rma->len = len;
	rma->offset = req->access.sent;
	rma->total = req->access.len;
}

/** Fills operation word and extension of a call for `len` bytes. */
void core_rma_frame(const struct core_rma_req *req, uint32_t op, size_t len,
		    struct core_frame *frame)
{
	struct wire_rma rma;

	*frame = (struct core_frame){ .iov = req->iov, .iov_cnt = req->iov_cnt };
	core_rma_wire(req, len, &rma);
	core_access_ext(&req->access, frame, op, len, &rma, sizeof(rma));
}

static size_t core_rma_write_max(const struct core_chan *chan)
{
	size_t max = chan->eager_max - sizeof(struct wire_rma) - sizeof(uint64_t);

	return max < CORE_RMA_WRITE_LEN ? max : CORE_RMA_WRITE_LEN;
}

/** Returns the bytes of a read for which credit always arrives. Any grant suffices for a word. */
static size_t core_rma_read_max(const struct core_chan *chan)
{
	size_t least = sizeof(struct wire_rma_reply) + sizeof(uint32_t);
	size_t sure = chan->resp_sure > least ? chan->resp_sure : least;
	size_t max = sure - sizeof(struct wire_rma_reply);

	return max < CORE_RMA_READ_LEN ? max : CORE_RMA_READ_LEN;
}

static int core_rma_write(struct core_rma_req *req)
{
	size_t len = core_access_next(&req->access, core_rma_write_max(req->access.op.peer->chan));
	struct core_frame frame;

	core_rma_frame(req, WIRE_OP_WRITE, len, &frame);
	frame.iov_off = req->access.sent;
	frame.len = len;
	return core_access_call(&req->access, &frame, len, sizeof(struct wire_rma_reply));
}

static int core_rma_read(struct core_rma_req *req)
{
	size_t len = core_access_next(&req->access, core_rma_read_max(req->access.op.peer->chan));
	struct core_frame frame;

	core_rma_frame(req, WIRE_OP_READ, len, &frame);
	return core_access_call(&req->access, &frame, len,
				(uint32_t)(sizeof(struct wire_rma_reply) + len));
}

static int core_rma_step(struct core_rma_req *req)
{
	if (core_rma_is_bulk(req))
		return core_rma_bulk_start(req);
	return req->write ? core_rma_write(req) : core_rma_read(req);
}

/** Makes all calls that can be made now. Returns 0, or -FI_EAGAIN if some are left. */
static int core_rma_run(struct core_rma_req *req)
{
	int ret = 0;

	req->access.posting = true;
	do {
		if (req->returning && !req->fetching)
			ret = core_rma_bulk_return(req);
		else if (!req->access.issued && !req->access.err)
			ret = core_rma_step(req);
		else
			break;
	} while (!ret);
	req->access.posting = false;
	if (!ret)
		req->access.issued = true;
	return ret;
}

/**
 * Makes the calls of an access that the devices do not do. On an ordered endpoint a bulk access
 * stays first in the queue to its end.
 */
static int core_rma_start_calls(struct core_rma_req *req)
{
	struct core_op *op = &req->access.op;
	int ret;

	req->by_calls = true;
	ret = core_rma_run(req);
	if (ret)
		return ret;
	if (op->peer->ep->rma_ordered && req->bulk && (req->access.calls || req->fetching))
		return -FI_EAGAIN;
	core_rma_end_if_done(req);
	return 0;
}

static int core_rma_start(struct core_op *op)
{
	struct core_rma_req *req = core_rma_req_of(op);
	int ret = CORE_RMA_BY_CALLS;

	if (!req->by_calls)
		ret = core_rma_direct_start(req);
	return ret == CORE_RMA_BY_CALLS ? core_rma_start_calls(req) : ret;
}

static int core_rma_stream(struct core_op *op)
{
	struct core_rma_req *req = core_rma_req_of(op);
	int ret = core_rma_run(req);

	if (ret)
		return ret;
	core_op_unstream(op);
	core_rma_end_if_done(req);
	return 0;
}

void core_rma_resume(struct core_rma_req *req)
{
	bool more = (req->returning && !req->fetching) || (!req->access.issued && !req->access.err);

	/* core_rma_run is on the stack, or core_op will start the access again. */
	if (req->access.posting || req->access.op.queued)
		return;
	if (more && util_list_is_empty(&req->access.op.wait_link) && core_rma_run(req))
		core_op_stream(&req->access.op);
	core_rma_end_if_done(req);
}

static int core_rma_response(struct core_rma_req *req, const uint8_t *data, uint32_t len)
{
	struct wire_rma_reply reply;

	if (len < sizeof(reply))
		return -FI_EIO;
	memcpy(&reply, data, sizeof(reply));
	if (req->bulk && (!reply.status || reply.status > INT32_MAX))
		return core_rma_bulk_response(req, reply.status, data + sizeof(reply),
					      len - (uint32_t)sizeof(reply));
	if (reply.status)
		return core_access_status(reply.status);
	return core_access_take(&req->access, req->iov, req->iov_cnt, reply.offset,
				data + sizeof(reply), len - (uint32_t)sizeof(reply));
}

static void core_rma_on_reply(struct core_op *op, int status, const uint8_t *data, uint32_t len)
{
	struct core_rma_req *req = core_rma_req_of(op);

	core_access_responded(&req->access);
	if (!status)
		status = core_rma_response(req, data, len);
	if (!req->access.err)
		req->access.err = status;
	core_rma_resume(req);
}

static void core_rma_fail(struct core_op *op, int err)
{
	struct core_rma_req *req = core_rma_req_of(op);

	if (req->direct)
		core_rma_direct_drop(req);
	req->access.err = err;
	core_rma_end(req);
}

static const struct core_op_ops core_rma_op_ops = {
	.start = core_rma_start,
	.stream = core_rma_stream,
	.on_reply = core_rma_on_reply,
	.fail = core_rma_fail,
};

/** Copies the bytes of an injected write. Returns 0 or -FI_EAGAIN. */
static int core_rma_inject(struct core_rma_req *req, const struct core_rma *r)
{
	void *to = req->inlined;

	if (r->len > CORE_RMA_INLINE)
		to = req->access.copy = malloc(r->len);
	if (!to)
		return -FI_EAGAIN;
	util_iov_gather(to, r->iov, r->iov_cnt, 0, r->len);
	req->iov[0] = (struct iovec){ .iov_base = to, .iov_len = r->len };
	req->iov_cnt = 1;
	req->desc = NULL;
	return 0;
}

static struct core_rma_req *core_rma_new(struct core_ep *ep, const struct core_rma *r)
{
	struct core_rma_req *req = util_pool_alloc(&ep->rma_reqs);

	if (!req)
		return NULL;
	memset(req, 0, offsetof(struct core_rma_req, iov));
	req->access.op.fence = r->flags & FI_FENCE;
	req->access.kind = FI_RMA | (r->write ? FI_WRITE : FI_READ);
	req->access.op.reads = !r->write;
	req->access.fetches = !r->write;
	req->desc = r->desc;
	req->write = r->write;
	req->access.silent = r->silent;
	req->access.len = r->len;
	req->access.data = r->data;
	req->access.flags = r->flags;
	req->access.context = r->context;
	req->iov_cnt = r->iov_cnt;
	req->access.rma_cnt = r->rma_cnt;
	memcpy(req->iov, r->iov, r->iov_cnt * sizeof(req->iov[0]));
	memcpy(req->access.rma, r->rma_iov, r->rma_cnt * sizeof(req->access.rma[0]));
	if (r->write && (r->flags & FI_INJECT) && core_rma_inject(req, r)) {
		util_pool_release(&ep->rma_reqs, req);
		return NULL;
	}
	return req;
}

ssize_t core_rma_post(struct core_ep *ep, const struct core_rma *r)
{
	struct core_peer *peer = core_peer_get(ep, r->peer);
	struct core_rma_req *req;
	int ret;

	if (!peer)
		return core_peer_missing(ep, r->peer);
	req = core_rma_new(ep, r);
	if (!req)
		return -FI_EAGAIN;
	ret = core_op_submit(&req->access.op, &core_rma_op_ops, peer);
	if (ret) {
		core_rma_bulk_unexpose(req);
		core_access_free(&req->access, &ep->rma_reqs);
	}
	return ret;
}

int core_rma_ep_open(struct core_ep *ep)
{
	util_pool_init(&ep->atomic_reqs, sizeof(struct core_atomic_req), CORE_EP_POOL_CHUNK, 0);
	util_pool_init(&ep->rma_reqs, sizeof(struct core_rma_req), CORE_EP_POOL_CHUNK, 0);
	util_idmap_init(&ep->exposure_ids);
	return 0;
}

void core_rma_ep_close(struct core_ep *ep)
{
	util_pool_fini(&ep->atomic_reqs);
	util_pool_fini(&ep->rma_reqs);
	util_idmap_fini(&ep->exposure_ids);
}
