/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Untagged messages: fi_msg over core. The calls fill in parameters for cpr_xfer.h. */
#include "ofi/xfer/cpr_xfer.h"

CPR_XFER_CALL(cpr_msg_recv, cpr_msg_recv_guarded,
	      (struct fid_ep * fid, void *buf, size_t len, void *desc, fi_addr_t src_addr,
	       void *context),
	      cpr_xfer_recv_buf(cpr_ep_of(fid), buf, len, src_addr, 0, 0, context,
				cpr_ep_of(fid)->rx_flags, false, guarded))

static ssize_t cpr_msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			     fi_addr_t src_addr, void *context)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct core_recv recv = { .src = src_addr,
				  .iov = iov,
				  .iov_cnt = count,
				  .context = context,
				  .flags = ep->rx_flags };

	return cpr_xfer_recv_iov(ep, &recv);
}

static ssize_t cpr_msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct core_recv recv = { .src = msg->addr,
				  .iov = msg->msg_iov,
				  .iov_cnt = msg->iov_count,
				  .context = msg->context,
				  .flags = flags };

	if (UTIL_UNLIKELY(flags & ~(CPR_RECVMSG_FLAGS | FI_MULTI_RECV)))
		return -FI_EBADFLAGS;
	return cpr_xfer_recv_iov(cpr_ep_of(fid), &recv);
}

CPR_XFER_CALL(cpr_msg_send, cpr_msg_send_guarded,
	      (struct fid_ep * fid, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,
	       void *context),
	      cpr_xfer_send_buf(cpr_ep_of(fid), buf, len, dest_addr, 0, 0, context, 0, false,
				guarded))

static ssize_t cpr_msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			     fi_addr_t dest_addr, void *context)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct core_send send = { .dest = dest_addr,
				  .iov = iov,
				  .iov_cnt = count,
				  .context = context,
				  .flags = ep->tx_flags };

	return cpr_xfer_send_iov(ep, &send);
}

/** Implements fi_sendmsg for what cpr_xfer_is_plain excludes. */
static __attribute__((noinline)) ssize_t cpr_msg_sendmsg_cold(struct fid_ep *fid,
							      const struct fi_msg *msg,
							      uint64_t flags)
{
	struct core_send send = { .dest = msg->addr,
				  .iov = msg->msg_iov,
				  .iov_cnt = msg->iov_count,
				  .data = msg->data,
				  .context = msg->context,
				  .flags = flags };

	if (!cpr_xfer_accepts(cpr_ep_of(fid), flags, CPR_SENDMSG_FLAGS))
		return -FI_EBADFLAGS;
	return cpr_xfer_send_iov(cpr_ep_of(fid), &send);
}

static ssize_t cpr_msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct cpr_ep *ep = cpr_ep_of(fid);

	if (UTIL_UNLIKELY(!cpr_xfer_is_plain(ep, msg->iov_count, flags)))
		return cpr_msg_sendmsg_cold(fid, msg, flags);
	return cpr_xfer_send_plain(ep, msg->msg_iov, msg->addr, 0, msg->data, msg->context, flags,
				   false);
}

CPR_XFER_CALL(cpr_msg_inject, cpr_msg_inject_guarded,
	      (struct fid_ep * fid, const void *buf, size_t len, fi_addr_t dest_addr),
	      cpr_xfer_inject(cpr_ep_of(fid), buf, len, dest_addr, 0, 0, 0, false, guarded))

CPR_XFER_CALL(cpr_msg_senddata, cpr_msg_senddata_guarded,
	      (struct fid_ep * fid, const void *buf, size_t len, void *desc, uint64_t data,
	       fi_addr_t dest_addr, void *context),
	      cpr_xfer_send_buf(cpr_ep_of(fid), buf, len, dest_addr, 0, data, context,
				FI_REMOTE_CQ_DATA, false, guarded))

CPR_XFER_CALL(cpr_msg_injectdata, cpr_msg_injectdata_guarded,
	      (struct fid_ep * fid, const void *buf, size_t len, uint64_t data,
	       fi_addr_t dest_addr),
	      cpr_xfer_inject(cpr_ep_of(fid), buf, len, dest_addr, 0, data, FI_REMOTE_CQ_DATA,
			      false, guarded))

const struct fi_ops_msg cpr_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = cpr_msg_recv,
	.recvv = cpr_msg_recvv,
	.recvmsg = cpr_msg_recvmsg,
	.send = cpr_msg_send,
	.sendv = cpr_msg_sendv,
	.sendmsg = cpr_msg_sendmsg,
	.inject = cpr_msg_inject,
	.senddata = cpr_msg_senddata,
	.injectdata = cpr_msg_injectdata,
};

const struct fi_ops_msg cpr_msg_guarded_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = cpr_msg_recv_guarded,
	.recvv = cpr_msg_recvv,
	.recvmsg = cpr_msg_recvmsg,
	.send = cpr_msg_send_guarded,
	.sendv = cpr_msg_sendv,
	.sendmsg = cpr_msg_sendmsg,
	.inject = cpr_msg_inject_guarded,
	.senddata = cpr_msg_senddata_guarded,
	.injectdata = cpr_msg_injectdata_guarded,
};
