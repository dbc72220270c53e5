/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomic operations, initiator side: see core_atomic.h. */
#include "core/rma/core_atomic.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_peer.h"
#include "util/copy.h"
#include "wire/wire_atomic.h"

static struct core_atomic_req *core_atomic_req_of(struct core_op *op)
{
	return UTIL_CONTAINER_OF(core_access_of(op), struct core_atomic_req, access);
}

static void core_atomic_end(struct core_atomic_req *req)
{
	core_access_end(&req->access, &req->access.op.peer->ep->atomic_reqs);
}

static void core_atomic_end_if_done(struct core_atomic_req *req)
{
	if (core_access_is_over(&req->access))
		core_atomic_end(req);
}

static size_t core_atomic_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static unsigned core_atomic_lists_out(const struct core_atomic_req *req)
{
	return !!req->operand.cnt + !!req->compare.cnt;
}

/** Returns the bytes per list that fit in `room` after `head` bytes, at most `max`. */
static size_t core_atomic_part(size_t room, size_t head, unsigned lists, size_t max)
{
	if (!lists)
		return max;
	return room > head ? core_atomic_min(max, (room - head) / lists) : 0;
}

/** Returns the bytes of whole elements, at least one, that a call and its response can carry. */
static size_t core_atomic_call_max(const struct core_atomic_req *req)
{
	const struct core_chan *chan = req->access.op.peer->chan;
	size_t max =
		core_atomic_part(chan->eager_max, sizeof(struct wire_atomic) + sizeof(uint64_t),
				 core_atomic_lists_out(req), WIRE_ATOMIC_LEN_MAX);

	max = core_atomic_part(chan->resp_sure, sizeof(struct wire_atomic_reply), !!req->result.cnt,
			       max);
	max -= max % req->size;
	return max ? max : req->size;
}

/** Returns the maximum response size of a call for `len` bytes of elements. */
static uint32_t core_atomic_resp_max(const struct core_atomic_req *req, size_t len)
{
	size_t need = sizeof(struct wire_atomic_reply) + (req->result.cnt ? len : 0);

	return (uint32_t)(need < sizeof(struct wire_status) ? sizeof(struct wire_status) : need);
}

/** Copies the next `len` bytes of operand and compare list to `out`. Returns the bytes copied. */
static size_t core_atomic_gather(const struct core_atomic_req *req, uint8_t *out, size_t len)
{
	const struct core_atomic_list *lists[] = { &req->operand, &req->compare };
	size_t done = 0;

	for (size_t i = 0; i < 2; i++) {
		if (!lists[i]->cnt)
			continue;
		util_iov_gather(out + done, lists[i]->iov, lists[i]->cnt, req->access.sent, len);
		done += len;
	}
	return done;
}

static void core_atomic_frame(const struct core_atomic_req *req, size_t len,
			      struct core_frame *frame)
{
	const struct fi_rma_iov *remote = &req->access.rma[req->access.rma_idx];
	struct wire_atomic atomic = {
		.addr = remote->addr + req->access.rma_off,
		.key = remote->key,
		.first = (uint32_t)(req->access.sent / req->size),
		.total = (uint32_t)(req->access.len / req->size),
		.count = (uint16_t)(len / req->size),
		.kind = (uint8_t)req->kind,
		.type = req->type,
		.op = req->code,
	};

	core_access_ext(&req->access, frame, WIRE_OP_ATOMIC, len, &atomic, sizeof(atomic));
}

static int core_atomic_call(struct core_atomic_req *req, size_t len)
{
	uint8_t lists[2 * WIRE_ATOMIC_LEN_MAX];
	struct iovec iov = { .iov_base = lists };
	struct core_frame frame = { .iov = &iov, .iov_cnt = 1 };

	core_atomic_frame(req, len, &frame);
	frame.len = iov.iov_len = core_atomic_gather(req, lists, len);
	return core_access_call(&req->access, &frame, len, core_atomic_resp_max(req, len));
}

static int core_atomic_start(struct core_op *op)
{
	struct core_atomic_req *req = core_atomic_req_of(op);
	size_t max = core_atomic_call_max(req);
	int ret = 0;

	if (core_atomic_resp_max(req, max) > op->peer->chan->resp_lim)
		req->access.err = -FI_EMSGSIZE; /* the ring is too small for the response */
	req->access.posting = true;
	while (req->access.sent < req->access.len && !req->access.err && !ret)
		ret = core_atomic_call(req, core_access_next(&req->access, max));
	req->access.posting = false;
	if (ret)
		return ret;
	req->access.issued = true;
	core_atomic_end_if_done(req);
	return 0;
}

static int core_atomic_response(struct core_atomic_req *req, const uint8_t *data, uint32_t len)
{
	struct wire_atomic_reply reply;

	if (len < sizeof(reply))
		return -FI_EIO;
	memcpy(&reply, data, sizeof(reply));
	if (reply.status)
		return core_access_status(reply.status);
	return core_access_take(&req->access, req->result.iov, req->result.cnt,
				(uint64_t)reply.first * req->size, data + sizeof(reply),
				len - (uint32_t)sizeof(reply));
}

static void core_atomic_on_reply(struct core_op *op, int status, const uint8_t *data, uint32_t len)
{
	struct core_atomic_req *req = core_atomic_req_of(op);

	core_access_responded(&req->access);
	if (!status)
		status = core_atomic_response(req, data, len);
	if (!req->access.err)
		req->access.err = status;
	core_atomic_end_if_done(req);
}

static void core_atomic_fail(struct core_op *op, int err)
{
	struct core_atomic_req *req = core_atomic_req_of(op);

	req->access.err = err;
	core_atomic_end(req);
}

static const struct core_op_ops core_atomic_op_ops = {
	.start = core_atomic_start,
	.on_reply = core_atomic_on_reply,
	.fail = core_atomic_fail,
};

static void core_atomic_list_set(struct core_atomic_list *list, const struct iovec *iov, size_t cnt)
{
	list->cnt = cnt;
	if (cnt)
		memcpy(list->iov, iov, cnt * sizeof(*iov));
}

/** Copies a list to `to`, and makes it refer to the copy. Returns the end of the copy. */
static uint8_t *core_atomic_list_copy(struct core_atomic_list *list, uint8_t *to, size_t len)
{
	if (!list->cnt)
		return to;
	util_iov_gather(to, list->iov, list->cnt, 0, len);
	list->iov[0] = (struct iovec){ .iov_base = to, .iov_len = len };
	list->cnt = 1;
	return to + len;
}

/** Copies the lists of an injected operation. Returns 0 or -FI_EAGAIN. */
static int core_atomic_inject(struct core_atomic_req *req)
{
	size_t len = req->access.len * core_atomic_lists_out(req);
	uint8_t *to = req->inlined;

	if (len > CORE_ATOMIC_INLINE)
		to = req->access.copy = malloc(len);
	if (!to)
		return -FI_EAGAIN;
	to = core_atomic_list_copy(&req->operand, to, req->access.len);
	core_atomic_list_copy(&req->compare, to, req->access.len);
	return 0;
}

static struct core_atomic_req *core_atomic_new(struct core_ep *ep, const struct core_atomic *a)
{
	struct core_atomic_req *req = util_pool_alloc(&ep->atomic_reqs);

	if (!req)
		return NULL;
	memset(req, 0, offsetof(struct core_atomic_req, operand));
	req->access.op.fence = a->flags & FI_FENCE;
	req->access.kind = FI_ATOMIC | (a->kind == CORE_ATOMIC_BASE ? FI_WRITE : FI_READ);
	req->access.fetches = a->result_cnt;
	req->kind = a->kind;
	req->type = (uint8_t)a->type;
	req->code = (uint8_t)a->op;
	req->access.silent = a->silent;
	req->size = core_atomic_size(a->type);
	req->access.len = a->len;
	req->access.data = a->data;
	req->access.flags = a->flags;
	req->access.context = a->context;
	req->access.rma_cnt = a->rma_cnt;
	memcpy(req->access.rma, a->rma, a->rma_cnt * sizeof(req->access.rma[0]));
	core_atomic_list_set(&req->operand, a->operand, a->operand_cnt);
	core_atomic_list_set(&req->compare, a->compare, a->compare_cnt);
	core_atomic_list_set(&req->result, a->result, a->result_cnt);
	if ((a->flags & FI_INJECT) && core_atomic_inject(req)) {
		util_pool_release(&ep->atomic_reqs, req);
		return NULL;
	}
	return req;
}

ssize_t core_atomic_post(struct core_ep *ep, const struct core_atomic *a)
{
	struct core_peer *peer = core_peer_get(ep, a->peer);
	struct core_atomic_req *req;
	int ret;

	if (!peer)
		return core_peer_missing(ep, a->peer);
	req = core_atomic_new(ep, a);
	if (!req)
		return -FI_EAGAIN;
	ret = core_op_submit(&req->access.op, &core_atomic_op_ops, peer);
	if (ret)
		core_access_free(&req->access, &ep->atomic_reqs);
	return ret;
}
