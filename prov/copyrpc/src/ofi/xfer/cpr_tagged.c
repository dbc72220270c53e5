/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tagged messages: fi_tagged over core. The calls fill in parameters for cpr_xfer.h; FI_PEEK,
 * FI_CLAIM and FI_DISCARD are handled here.
 */
#include "ofi/base/cpr_domain.h"
#include "ofi/xfer/cpr_xfer.h"

#define CPR_TAGGED_PROBE_FLAGS (FI_PEEK | FI_CLAIM | FI_DISCARD)

CPR_XFER_CALL(cpr_tagged_recv, cpr_tagged_recv_guarded,
	      (struct fid_ep * fid, void *buf, size_t len, void *desc, fi_addr_t src_addr,
	       uint64_t tag, uint64_t ignore, void *context),
	      cpr_xfer_recv_buf(cpr_ep_of(fid), buf, len, src_addr, tag, ignore, context,
				cpr_ep_of(fid)->rx_flags, true, guarded))

static ssize_t cpr_tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
				size_t count, fi_addr_t src_addr, uint64_t tag, uint64_t ignore,
				void *context)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct core_recv recv = { .src = src_addr,
				  .iov = iov,
				  .iov_cnt = count,
				  .tag = tag,
				  .ignore = ignore,
				  .context = context,
				  .flags = ep->rx_flags & FI_COMPLETION,
				  .tagged = true };

	return cpr_xfer_recv_iov(ep, &recv);
}

/* Peeks or claims. A claimed message is found by its context; address and tag do not count. */
static ssize_t cpr_tagged_probe(struct cpr_ep *ep, struct core_recv *recv)
{
	ssize_t ret = cpr_xfer_check_recv(recv);

	if (ret)
		return ret;
	if (!(recv->flags & (FI_PEEK | FI_CLAIM)))
		return -FI_EINVAL;
	core_dom_lock(ep->dom);
	if (recv->flags & FI_PEEK)
		ret = core_rx_peek(ep->core, recv);
	else
		ret = core_rx_claim(ep->core, recv);
	core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}

static ssize_t cpr_tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
				  uint64_t flags)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct core_recv recv = { .src = msg->addr,
				  .iov = msg->msg_iov,
				  .iov_cnt = msg->iov_count,
				  .tag = msg->tag,
				  .ignore = msg->ignore,
				  .context = msg->context,
				  .flags = flags,
				  .tagged = true };

	if (UTIL_UNLIKELY(flags & ~CPR_RECVMSG_FLAGS)) {
		if (flags & ~(CPR_RECVMSG_FLAGS | CPR_TAGGED_PROBE_FLAGS))
			return -FI_EBADFLAGS;
		return cpr_tagged_probe(ep, &recv);
	}
	return cpr_xfer_recv_iov(ep, &recv);
}

CPR_XFER_CALL(cpr_tagged_send, cpr_tagged_send_guarded,
	      (struct fid_ep * fid, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,
	       uint64_t tag, void *context),
	      cpr_xfer_send_buf(cpr_ep_of(fid), buf, len, dest_addr, tag, 0, context, 0, true,
				guarded))

static ssize_t cpr_tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
				size_t count, fi_addr_t dest_addr, uint64_t tag, void *context)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct core_send send = { .dest = dest_addr,
				  .iov = iov,
				  .iov_cnt = count,
				  .tag = tag,
				  .context = context,
				  .flags = ep->tx_flags,
				  .tagged = true };

	return cpr_xfer_send_iov(ep, &send);
}

/** Implements fi_tsendmsg for what cpr_xfer_is_plain excludes. */
static __attribute__((noinline)) ssize_t cpr_tagged_sendmsg_cold(struct fid_ep *fid,
								 const struct fi_msg_tagged *msg,
								 uint64_t flags)
{
	struct core_send send = { .dest = msg->addr,
				  .iov = msg->msg_iov,
				  .iov_cnt = msg->iov_count,
				  .tag = msg->tag,
				  .data = msg->data,
				  .context = msg->context,
				  .flags = flags,
				  .tagged = true };

	if (!cpr_xfer_accepts(cpr_ep_of(fid), flags, CPR_SENDMSG_FLAGS))
		return -FI_EBADFLAGS;
	return cpr_xfer_send_iov(cpr_ep_of(fid), &send);
}

static ssize_t cpr_tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
				  uint64_t flags)
{
	struct cpr_ep *ep = cpr_ep_of(fid);

	if (UTIL_UNLIKELY(!cpr_xfer_is_plain(ep, msg->iov_count, flags)))
		return cpr_tagged_sendmsg_cold(fid, msg, flags);
	return cpr_xfer_send_plain(ep, msg->msg_iov, msg->addr, msg->tag, msg->data, msg->context,
				   flags, true);
}

CPR_XFER_CALL(cpr_tagged_inject, cpr_tagged_inject_guarded,
	      (struct fid_ep * fid, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t tag),
	      cpr_xfer_inject(cpr_ep_of(fid), buf, len, dest_addr, tag, 0, 0, true, guarded))

CPR_XFER_CALL(cpr_tagged_senddata, cpr_tagged_senddata_guarded,
	      (struct fid_ep * fid, const void *buf, size_t len, void *desc, uint64_t data,
	       fi_addr_t dest_addr, uint64_t tag, void *context),
	      cpr_xfer_send_buf(cpr_ep_of(fid), buf, len, dest_addr, tag, data, context,
				FI_REMOTE_CQ_DATA, true, guarded))

CPR_XFER_CALL(cpr_tagged_injectdata, cpr_tagged_injectdata_guarded,
	      (struct fid_ep * fid, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr,
	       uint64_t tag),
	      cpr_xfer_inject(cpr_ep_of(fid), buf, len, dest_addr, tag, data, FI_REMOTE_CQ_DATA,
			      true, guarded))

const struct fi_ops_tagged cpr_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = cpr_tagged_recv,
	.recvv = cpr_tagged_recvv,
	.recvmsg = cpr_tagged_recvmsg,
	.send = cpr_tagged_send,
	.sendv = cpr_tagged_sendv,
	.sendmsg = cpr_tagged_sendmsg,
	.inject = cpr_tagged_inject,
	.senddata = cpr_tagged_senddata,
	.injectdata = cpr_tagged_injectdata,
};

const struct fi_ops_tagged cpr_tagged_guarded_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = cpr_tagged_recv_guarded,
	.recvv = cpr_tagged_recvv,
	.recvmsg = cpr_tagged_recvmsg,
	.send = cpr_tagged_send_guarded,
	.sendv = cpr_tagged_sendv,
	.sendmsg = cpr_tagged_sendmsg,
	.inject = cpr_tagged_inject_guarded,
	.senddata = cpr_tagged_senddata_guarded,
	.injectdata = cpr_tagged_injectdata_guarded,
};
