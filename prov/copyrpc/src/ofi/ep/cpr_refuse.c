/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Refused transfers: see cpr_refuse.h. One function serves all entries of a signature. */
#include "ofi/base/cpr_refuse.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "ofi/base/cpr_ep.h"

int cpr_refuse_err(const struct cpr_ep *ep)
{
	return ep->owner->is_enabled ? -FI_ENOSYS : -FI_EOPBADSTATE;
}

#define CPR_REFUSE(name, ...)                                                                      \
	static ssize_t name(struct fid_ep *fid, __VA_ARGS__)                                       \
	{                                                                                          \
		return cpr_refuse_err(cpr_ep_of(fid));                                             \
	}

CPR_REFUSE(cpr_refuse_recv, void *buf, size_t len, void *desc, fi_addr_t src, void *context)
CPR_REFUSE(cpr_refuse_send, const void *buf, size_t len, void *desc, fi_addr_t dest, void *context)
CPR_REFUSE(cpr_refuse_iov, const struct iovec *iov, void **desc, size_t count, fi_addr_t addr,
	   void *context)
CPR_REFUSE(cpr_refuse_msg, const struct fi_msg *msg, uint64_t flags)
CPR_REFUSE(cpr_refuse_inject, const void *buf, size_t len, fi_addr_t dest)
CPR_REFUSE(cpr_refuse_senddata, const void *buf, size_t len, void *desc, uint64_t data_or_dest,
	   uint64_t dest_or_tag, void *context)
CPR_REFUSE(cpr_refuse_injectdata, const void *buf, size_t len, uint64_t data_or_dest,
	   uint64_t dest_or_tag)
CPR_REFUSE(cpr_refuse_trecv, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t tag,
	   uint64_t ignore, void *context)
CPR_REFUSE(cpr_refuse_trecvv, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
	   uint64_t tag, uint64_t ignore, void *context)
CPR_REFUSE(cpr_refuse_tsendv, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
	   uint64_t tag, void *context)
CPR_REFUSE(cpr_refuse_tmsg, const struct fi_msg_tagged *msg, uint64_t flags)
CPR_REFUSE(cpr_refuse_tsenddata, const void *buf, size_t len, void *desc, uint64_t data,
	   fi_addr_t dest, uint64_t tag, void *context)
CPR_REFUSE(cpr_refuse_tinjectdata, const void *buf, size_t len, uint64_t data, fi_addr_t dest,
	   uint64_t tag)

const struct fi_ops_msg cpr_refuse_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = cpr_refuse_recv,
	.recvv = cpr_refuse_iov,
	.recvmsg = cpr_refuse_msg,
	.send = cpr_refuse_send,
	.sendv = cpr_refuse_iov,
	.sendmsg = cpr_refuse_msg,
	.inject = cpr_refuse_inject,
	.senddata = cpr_refuse_senddata,
	.injectdata = cpr_refuse_injectdata,
};

const struct fi_ops_tagged cpr_refuse_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = cpr_refuse_trecv,
	.recvv = cpr_refuse_trecvv,
	.recvmsg = cpr_refuse_tmsg,
	.send = cpr_refuse_senddata,
	.sendv = cpr_refuse_tsendv,
	.sendmsg = cpr_refuse_tmsg,
	.inject = cpr_refuse_injectdata,
	.senddata = cpr_refuse_tsenddata,
	.injectdata = cpr_refuse_tinjectdata,
};

void cpr_refuse_all(struct cpr_ep *ep)
{
	ep->msg_ops = cpr_refuse_msg_ops;
	ep->tagged_ops = cpr_refuse_tagged_ops;
	memset(ep->may_rma, 0, sizeof(ep->may_rma));
	memset(ep->may_atomic, 0, sizeof(ep->may_atomic));
}

void cpr_refuse_sends(struct cpr_ep *ep)
{
	ep->msg_ops.send = cpr_refuse_send;
	ep->msg_ops.sendv = cpr_refuse_iov;
	ep->msg_ops.sendmsg = cpr_refuse_msg;
	ep->msg_ops.inject = cpr_refuse_inject;
	ep->msg_ops.senddata = cpr_refuse_senddata;
	ep->msg_ops.injectdata = cpr_refuse_injectdata;
	ep->tagged_ops.send = cpr_refuse_senddata;
	ep->tagged_ops.sendv = cpr_refuse_tsendv;
	ep->tagged_ops.sendmsg = cpr_refuse_tmsg;
	ep->tagged_ops.inject = cpr_refuse_injectdata;
	ep->tagged_ops.senddata = cpr_refuse_tsenddata;
	ep->tagged_ops.injectdata = cpr_refuse_tinjectdata;
}

void cpr_refuse_recvs(struct cpr_ep *ep)
{
	ep->msg_ops.recv = cpr_refuse_recv;
	ep->msg_ops.recvv = cpr_refuse_iov;
	ep->msg_ops.recvmsg = cpr_refuse_msg;
	ep->tagged_ops.recv = cpr_refuse_trecv;
	ep->tagged_ops.recvv = cpr_refuse_trecvv;
	ep->tagged_ops.recvmsg = cpr_refuse_tmsg;
}
