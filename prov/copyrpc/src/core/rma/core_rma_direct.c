/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Direct accesses: see core_rma_direct.h. */
#include "core/rma/core_rma_direct.h"

#include <rdma/fi_errno.h>

#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/rma/core_rma_lease.h"

/** Returns the registration that covers the local buffers, or NULL. */
static struct core_reg *core_rma_direct_reg(const struct core_rma_req *req, struct core_chan *chan)
{
	struct core_mr *mr = core_mr_of_desc(req->access.op.peer->ep->dom->mrs, req->desc);

	if (!mr || !mr->fixed)
		return NULL;
	for (size_t i = 0; i < req->iov_cnt; i++) {
		uint64_t off = (uintptr_t)req->iov[i].iov_base - (uintptr_t)mr->iov[0].iov_base;

		if ((uintptr_t)req->iov[i].iov_base < (uintptr_t)mr->iov[0].iov_base ||
		    off > mr->len || req->iov[i].iov_len > mr->len - off)
			return NULL;
	}
	return core_mr_reg(mr, chan, 0);
}

/** Ends the use of lease and registration. */
static void core_rma_direct_put(struct core_rma_req *req)
{
	struct core_peer *peer = req->access.op.peer;

	req->direct = NULL;
	if (req->get.reg)
		req->get.reg->users--;
	core_rma_lease_put(peer, req->lease);
	if (!peer->ep->rma_ordered || req->write || --peer->direct_reads)
		return;
	core_peer_set_eager(peer);
	if (!util_list_is_empty(&peer->tx_queue))
		core_op_schedule(peer);
}

static void core_rma_direct_done(struct core_get *get)
{
	struct core_rma_req *req = UTIL_CONTAINER_OF(get, struct core_rma_req, get);

	core_rma_direct_put(req);
	req->access.err = get->status;
	core_access_end(&req->access, &req->access.op.peer->ep->rma_reqs);
}

static unsigned core_rma_direct_flags(const struct core_rma_req *req)
{
	uint64_t flags = req->access.flags;
	/* Messages that were accepted before a fenced access are no operations any more. */
	bool ordered = req->access.op.peer->ep->rma_ordered || req->access.op.fence;

	return (req->write ? CORE_DIRECT_WRITE : 0) | (flags & FI_MORE ? CORE_DIRECT_MORE : 0) |
	       (req->write && (flags & CORE_RMA_PLACED_FLAGS) ? CORE_DIRECT_PLACED : 0) |
	       (ordered ? CORE_DIRECT_ORDERED : 0);
}

/** Posts the access. Returns 0 or the error of the channel. */
static int core_rma_direct_post(struct core_rma_req *req, struct core_rma_lease *lease)
{
	struct core_peer *peer = req->access.op.peer;
	int ret;

	req->get.remote_addr = req->access.rma[0].addr + lease->shift;
	req->get.remote_key = lease->rkey;
	req->get.iov = req->iov;
	req->get.iov_cnt = req->iov_cnt;
	req->get.len = req->access.len;
	req->get.reg = core_rma_direct_reg(req, peer->chan);
	req->get.done = core_rma_direct_done;
	ret = peer->chan->ops->direct(peer->chan, &req->get, core_rma_direct_flags(req));
	if (ret)
		return ret;
	req->direct = peer->chan;
	req->lease = lease;
	lease->users++;
	if (req->get.reg)
		req->get.reg->users++;
	if (peer->ep->rma_ordered && !req->write)
		peer->direct_reads++;
	return 0;
}

/** Returns true if nothing of the access is for the target's processor, and it is not split. */
static bool core_rma_direct_suits(const struct core_rma_req *req)
{
	return req->access.rma_cnt == 1 && req->access.len &&
	       !(req->access.flags & FI_REMOTE_CQ_DATA) && !req->by_calls;
}

int core_rma_direct_start(struct core_rma_req *req)
{
	struct core_peer *peer = req->access.op.peer;
	struct core_rma_lease *lease = NULL;
	int ret;

	if (peer->chan->reg_dev && core_rma_direct_suits(req))
		lease = core_rma_lease_find(peer, &req->access.rma[0],
					    req->write ? FI_REMOTE_WRITE : FI_REMOTE_READ);
	if (!lease) {
		/* Calls may overtake direct reads. */
		return peer->direct_reads ? -FI_EAGAIN : CORE_RMA_BY_CALLS;
	}
	if (peer->ep->rma_ordered && peer->access_calls)
		return -FI_EAGAIN;
	ret = core_rma_direct_post(req, lease);
	if (!ret || ret == -FI_EAGAIN)
		return ret;
	req->by_calls = true; /* cannot be done by the device, or the channel is broken */
	return peer->direct_reads ? -FI_EAGAIN : CORE_RMA_BY_CALLS;
}

void core_rma_direct_drop(struct core_rma_req *req)
{
	struct core_chan *chan = req->direct;

	chan->ops->undirect(chan, &req->get);
	core_rma_direct_put(req);
}
