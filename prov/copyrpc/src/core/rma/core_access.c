/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Common part of remote accesses: see core_access.h. */
#include "core/rma/core_access.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_peer.h"
#include "util/copy.h"
#include "util/pool.h"

size_t core_access_next(struct core_access *access, size_t max)
{
	uint64_t left;

	while (access->rma_idx < access->rma_cnt &&
	       access->rma_off == access->rma[access->rma_idx].len) {
		access->rma_idx++;
		access->rma_off = 0;
	}
	if (access->rma_idx == access->rma_cnt)
		return 0;
	left = access->rma[access->rma_idx].len - access->rma_off;
	return left < max ? left : max;
}

void core_access_ext(const struct core_access *access, struct core_frame *frame, uint32_t op,
		     size_t len, const void *head, size_t size)
{
	frame->op = op;
	frame->ext_len = 0;
	if ((access->flags & FI_REMOTE_CQ_DATA) && access->sent + len == access->len) {
		frame->op |= WIRE_F_DATA64;
		frame->ext[0] = access->data;
		frame->ext_len = sizeof(access->data);
	}
	memcpy((uint8_t *)frame->ext + frame->ext_len, head, size);
	frame->ext_len += (uint32_t)size;
}

int core_access_call(struct core_access *access, const struct core_frame *frame, size_t len,
		     uint32_t resp_max)
{
	struct core_chan *chan = access->op.peer->chan;
	int ret;

	access->calls++;
	access->op.peer->access_calls++;
	access->sent += len;
	access->rma_off += len;
	ret = chan->ops->call(chan, frame, resp_max, &access->op, 0);
	if (ret) {
		core_access_responded(access);
		access->sent -= len;
		access->rma_off -= len;
		return ret;
	}
	access->issued = access->sent == access->len;
	return 0;
}

void core_access_responded(struct core_access *access)
{
	access->calls--;
	access->op.peer->access_calls--;
}

int core_access_status(uint32_t status)
{
	return status <= INT32_MAX ? -(int)status : -FI_EIO;
}

int core_access_take(struct core_access *access, const struct iovec *iov, size_t cnt, uint64_t off,
		     const uint8_t *data, uint32_t len)
{
	if (!access->fetches)
		return len ? -FI_EIO : 0;
	if (off > access->sent || len > access->sent - off)
		return -FI_EIO;
	util_iov_scatter(iov, cnt, off, data, len);
	access->got += len;
	return 0;
}

bool core_access_is_over(struct core_access *access)
{
	if (!access->issued || access->calls || access->posting)
		return false;
	if (!access->err && access->fetches && access->got != access->len)
		access->err = -FI_EIO;
	return true;
}

static void core_access_complete(struct core_ep *ep, const struct core_access *access)
{
	bool write = access->kind & FI_WRITE;
	struct fi_cq_err_entry entry = {
		.op_context = access->context,
		.flags = access->kind,
		.err = -access->err,
		.prov_errno = -access->err,
	};

	core_cntr_count(ep->rma_cntr[write ? CORE_CNTR_WRITE : CORE_CNTR_READ], access->err);
	if (!ep->tx.cq)
		return;
	if (access->err)
		core_cq_write_err(ep->tx.cq, &entry, FI_ADDR_NOTAVAIL);
	else if (!access->silent && (!ep->tx.selective || (access->flags & FI_COMPLETION)))
		core_cq_write(ep->tx.cq, access->context, access->kind, 0, NULL, 0, 0,
			      FI_ADDR_NOTAVAIL);
}

void core_access_free(struct core_access *access, struct util_pool *pool)
{
	free(access->copy);
	util_pool_release(pool, access);
}

void core_access_end(struct core_access *access, struct util_pool *pool)
{
	access->op.peer->access_calls -= access->calls; /* not 0: the peer has failed */
	core_access_complete(access->op.peer->ep, access);
	core_op_end(&access->op);
	core_access_free(access, pool);
}

int core_access_reach(const struct core_peer *peer, uint64_t key, uint64_t addr, size_t len,
		      uint64_t rights, struct core_access_target *target)
{
	const struct core_ep *ep = peer->ep;

	if ((ep->remote_access & rights) != rights)
		return -FI_EACCES;
	if (!len)
		return 0;
	return core_mr_reach_iov(ep->dom, key, addr, len, rights, target->iov, &target->iov_cnt,
				 &target->mr);
}

static void core_access_count_region(const struct core_mr *mr, uint64_t rights)
{
	struct core_cntr *read = rights & FI_REMOTE_READ ? mr->remote_read : NULL;
	struct core_cntr *write = rights & FI_REMOTE_WRITE ? mr->remote_write : NULL;

	core_cntr_count(read, 0);
	if (write != read)
		core_cntr_count(write, 0);
}

void core_access_notify(const struct core_peer *peer, const struct core_mr *mr, uint64_t kind,
			uint64_t rights, size_t len, const struct core_head *head)
{
	bool reads = rights & FI_REMOTE_READ;
	struct core_ep *ep = peer->ep;

	core_cntr_count(ep->rma_cntr[reads ? CORE_CNTR_REMOTE_READ : CORE_CNTR_REMOTE_WRITE], 0);
	if (mr)
		core_access_count_region(mr, rights);
	if (head->has_data && ep->rx.cq)
		core_cq_write(ep->rx.cq, NULL, kind | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, len,
			      NULL, head->data, 0, peer->fi_addr);
}
