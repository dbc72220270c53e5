/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transfers of datagram endpoints: fi_msg over dgram/. Called by the application through the op
 * table of the endpoint. Checks flags and counts and takes the domain's lock. Memory descriptors
 * are ignored: users register no memory.
 */
#include <assert.h>
#include <rdma/fi_errno.h>

#include "dgram/dgram_ep.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/dgram/cpr_dgram.h"
#include "util/copy.h"

static_assert(CPR_IOV_LIMIT == DGRAM_IOV_MAX, "equal limits in dgram");

#define CPR_DGRAM_SEND_FLAGS (CPR_DGRAM_TX_OP_FLAGS | FI_MORE)
#define CPR_DGRAM_RECV_FLAGS                                                                       \
	(FI_COMPLETION | FI_MORE | FI_MULTI_RECV | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE)

static ssize_t cpr_dgram_tx(struct cpr_ep *ep, struct dgram_send *s)
{
	int ret;

	if (UTIL_UNLIKELY(s->iov_cnt > DGRAM_IOV_MAX))
		return -FI_EINVAL;
	if (UTIL_UNLIKELY(!util_iov_sum(s->iov, s->iov_cnt, CPR_MSG_MAX, &s->len)))
		return -FI_EMSGSIZE;
	if (UTIL_UNLIKELY((s->flags & FI_INJECT) && s->len > ep->inject_max))
		return -FI_EMSGSIZE;
	core_dom_lock(ep->dom);
	ret = dgram_tx_send(ep->dgram, s);
	if (!(s->flags & FI_MORE))
		core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}

static ssize_t cpr_dgram_tx_buf(struct cpr_ep *ep, const void *buf, size_t len, fi_addr_t dest,
				void *context, uint64_t flags, bool silent)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct dgram_send s = { .dest = dest,
				.iov = &iov,
				.iov_cnt = 1,
				.context = context,
				.flags = flags,
				.silent = silent };

	return cpr_dgram_tx(ep, &s);
}

static ssize_t cpr_dgram_rx(struct cpr_ep *ep, const struct dgram_post *p)
{
	int ret;

	/* A buffer for many messages is one piece of memory. */
	if (UTIL_UNLIKELY(p->iov_cnt > DGRAM_IOV_MAX ||
			  ((p->flags & FI_MULTI_RECV) && p->iov_cnt != 1)))
		return -FI_EINVAL;
	core_dom_lock(ep->dom);
	ret = dgram_rx_post(ep->dgram, p);
	core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}

static ssize_t cpr_dgram_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
			      fi_addr_t src_addr, void *context)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct dgram_post p = {
		.iov = &iov, .iov_cnt = 1, .context = context, .flags = ep->rx_flags
	};

	return cpr_dgram_rx(ep, &p);
}

static ssize_t cpr_dgram_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			       size_t count, fi_addr_t src_addr, void *context)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct dgram_post p = {
		.iov = iov, .iov_cnt = count, .context = context, .flags = ep->rx_flags
	};

	return cpr_dgram_rx(ep, &p);
}

static ssize_t cpr_dgram_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct dgram_post p = { .iov = msg->msg_iov,
				.iov_cnt = msg->iov_count,
				.context = msg->context,
				.flags = flags };

	if (UTIL_UNLIKELY(flags & ~CPR_DGRAM_RECV_FLAGS))
		return -FI_EBADFLAGS;
	return cpr_dgram_rx(cpr_ep_of(fid), &p);
}

static ssize_t cpr_dgram_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			      fi_addr_t dest_addr, void *context)
{
	struct cpr_ep *ep = cpr_ep_of(fid);

	return cpr_dgram_tx_buf(ep, buf, len, dest_addr, context, ep->tx_flags, false);
}

static ssize_t cpr_dgram_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			       size_t count, fi_addr_t dest_addr, void *context)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct dgram_send s = { .dest = dest_addr,
				.iov = iov,
				.iov_cnt = count,
				.context = context,
				.flags = ep->tx_flags };

	return cpr_dgram_tx(ep, &s);
}

static ssize_t cpr_dgram_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct dgram_send s = { .dest = msg->addr,
				.iov = msg->msg_iov,
				.iov_cnt = msg->iov_count,
				.context = msg->context,
				.flags = flags };

	if (UTIL_UNLIKELY(flags & ~CPR_DGRAM_SEND_FLAGS))
		return -FI_EBADFLAGS;
	return cpr_dgram_tx(cpr_ep_of(fid), &s);
}

static ssize_t cpr_dgram_inject(struct fid_ep *fid, const void *buf, size_t len,
				fi_addr_t dest_addr)
{
	return cpr_dgram_tx_buf(cpr_ep_of(fid), buf, len, dest_addr, NULL, FI_INJECT, true);
}

const struct fi_ops_msg cpr_dgram_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = cpr_dgram_recv,
	.recvv = cpr_dgram_recvv,
	.recvmsg = cpr_dgram_recvmsg,
	.send = cpr_dgram_send,
	.sendv = cpr_dgram_sendv,
	.sendmsg = cpr_dgram_sendmsg,
	.inject = cpr_dgram_inject,
};
