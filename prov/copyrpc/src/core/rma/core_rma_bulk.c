/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bulk accesses, initiator side: see core_rma_bulk.h. */
#include "core/rma/core_rma_bulk.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_peer.h"
#include "util/stats.h"

/** Response to EXPOSE. A peer that grants less (FI_COPYRPC_GRANT_MAX) never gives credit for it. */
#define CORE_RMA_EXPOSE_RESP (sizeof(struct wire_rma_reply) + sizeof(struct wire_rma_exposure))

bool core_rma_is_bulk(const struct core_rma_req *req)
{
	const struct core_peer *peer = req->access.op.peer;
	size_t min =
		peer->chan->get_min ? peer->chan->get_min : peer->ep->dom->limits.single_copy_min;

	return !req->no_bulk && !req->access.sent && req->access.len >= min &&
	       req->access.rma_cnt == 1 && (peer->chan->caps & CORE_CHAN_GET) &&
	       (req->write ? req->iov_cnt == 1 : peer->chan->resp_lim >= CORE_RMA_EXPOSE_RESP);
}

static bool core_rma_bulk_expose(struct core_rma_req *req)
{
	struct core_chan *chan = req->access.op.peer->chan;

	if (req->exposure.chan)
		return true;
	if (chan->ops->expose(chan, req->iov[0].iov_base, req->access.len, &req->exposure))
		return false;
	req->exposure.chan = chan;
	return true;
}

void core_rma_bulk_unexpose(struct core_rma_req *req)
{
	if (req->exposure.chan)
		req->exposure.chan->ops->unexpose(req->exposure.chan, &req->exposure);
	req->exposure.chan = NULL;
}

static int core_rma_bulk_call_write(struct core_rma_req *req)
{
	struct wire_rma_source source = { .addr = (uintptr_t)req->iov[0].iov_base,
					  .key = req->exposure.key };
	struct iovec iov = { .iov_base = &source, .iov_len = sizeof(source) };
	struct core_frame frame;

	core_rma_frame(req, WIRE_OP_FETCH, req->access.len, &frame);
	frame.iov = &iov;
	frame.iov_cnt = 1;
	frame.len = sizeof(source);
	return core_access_call(&req->access, &frame, req->access.len,
				sizeof(struct wire_rma_reply));
}

static int core_rma_bulk_call_read(struct core_rma_req *req)
{
	struct core_frame frame;

	core_rma_frame(req, WIRE_OP_EXPOSE, req->access.len, &frame);
	return core_access_call(&req->access, &frame, req->access.len, CORE_RMA_EXPOSE_RESP);
}

int core_rma_bulk_start(struct core_rma_req *req)
{
	int ret;

	if (req->write && !core_rma_bulk_expose(req)) {
		req->no_bulk = true;
		return 0;
	}
	req->bulk = true;
	ret = req->write ? core_rma_bulk_call_write(req) : core_rma_bulk_call_read(req);
	if (ret)
		req->bulk = false;
	return ret;
}

/** Restarts an access with calls that carry the bytes. */
static void core_rma_bulk_refused(struct core_rma_req *req)
{
	core_rma_bulk_unexpose(req);
	req->bulk = false;
	req->no_bulk = true;
	req->access.issued = false;
	req->access.sent = 0;
	req->access.got = 0;
	req->access.rma_idx = 0;
	req->access.rma_off = 0;
}

/** Ends the get of a read with 0 or -FI_E*. The return of the exposure carries the status. */
static void core_rma_bulk_end_get(struct core_rma_req *req, int status)
{
	req->fetching = false;
	req->back.status = (uint32_t)-status;
	if (status)
		core_rma_bulk_refused(req);
	else
		req->access.got = req->access.len;
}

static void core_rma_bulk_got(struct core_get *get)
{
	struct core_rma_req *req = UTIL_CONTAINER_OF(get, struct core_rma_req, get);

	core_rma_bulk_end_get(req, get->status);
	core_rma_resume(req);
}

static void core_rma_bulk_get(struct core_rma_req *req, const struct wire_rma_exposure *exposure)
{
	struct core_chan *chan = req->access.op.peer->chan;
	int ret;

	req->returning = true;
	req->back.exposure_id = exposure->exposure_id;
	req->get.remote_addr = exposure->addr;
	req->get.remote_key = exposure->key;
	req->get.iov = req->iov;
	req->get.iov_cnt = req->iov_cnt;
	req->get.len = req->access.len;
	req->get.done = core_rma_bulk_got;
	req->fetching = true;
	ret = chan->ops->get(chan, &req->get);
	if (ret)
		core_rma_bulk_end_get(req, ret < 0 ? ret : req->get.status);
}

int core_rma_bulk_response(struct core_rma_req *req, uint32_t status, const uint8_t *data,
			   uint32_t len)
{
	struct wire_rma_exposure exposure;

	if (status == WIRE_RMA_REFUSED) {
		core_rma_bulk_refused(req);
		return 0;
	}
	if (req->write) {
		if (status || len)
			return -FI_EIO;
		util_stats_given(req->access.op.peer->chan->stats, req->access.len);
		return 0;
	}
	if (status != WIRE_RMA_EXPOSED || len != sizeof(exposure))
		return -FI_EIO;
	memcpy(&exposure, data, sizeof(exposure));
	core_rma_bulk_get(req, &exposure);
	return 0;
}

int core_rma_bulk_return(struct core_rma_req *req)
{
	struct core_chan *chan = req->access.op.peer->chan;
	struct iovec iov = { .iov_base = &req->back, .iov_len = sizeof(req->back) };
	struct core_frame frame = {
		.op = WIRE_OP_EXPOSE, .iov = &iov, .iov_cnt = 1, .len = sizeof(req->back)
	};
	int ret = chan->ops->send(chan, &frame, 0);

	if (!ret)
		req->returning = false;
	return ret;
}
