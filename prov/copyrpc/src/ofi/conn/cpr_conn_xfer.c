/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transfers of connected endpoints: those of cpr_msg.c and cpr_tagged.c to the one peer, whatever
 * the address argument. A receive posted after the connection ended completes at once.
 */
#include "core/core_conn.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/conn/cpr_conn.h"
#include "util/bits.h"

#define CPR_CONN_PEER 0 /* index of the peer */

static inline ssize_t cpr_conn_posted(struct fid_ep *fid, ssize_t ret)
{
	struct cpr_ep *ep = cpr_ep_of(fid)->owner;

	if (UTIL_LIKELY(ep->conn.state != CORE_CONN_CLOSED))
		return ret;
	cpr_domain_lock(ep->domain);
	core_conn_posted(&ep->conn);
	cpr_domain_unlock(ep->domain);
	return ret;
}

static ssize_t cpr_conn_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			     void *context)
{
	return cpr_conn_posted(fid, cpr_msg_ops.recv(fid, buf, len, desc, src, context));
}

static ssize_t cpr_conn_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			      size_t count, fi_addr_t src, void *context)
{
	return cpr_conn_posted(fid, cpr_msg_ops.recvv(fid, iov, desc, count, src, context));
}

static ssize_t cpr_conn_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	return cpr_conn_posted(fid, cpr_msg_ops.recvmsg(fid, msg, flags));
}

static ssize_t cpr_conn_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     fi_addr_t dest, void *context)
{
	return cpr_msg_ops.send(fid, buf, len, desc, CPR_CONN_PEER, context);
}

static ssize_t cpr_conn_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			      size_t count, fi_addr_t dest, void *context)
{
	return cpr_msg_ops.sendv(fid, iov, desc, count, CPR_CONN_PEER, context);
}

static ssize_t cpr_conn_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct fi_msg there = *msg;

	there.addr = CPR_CONN_PEER;
	return cpr_msg_ops.sendmsg(fid, &there, flags);
}

static ssize_t cpr_conn_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
	return cpr_msg_ops.inject(fid, buf, len, CPR_CONN_PEER);
}

static ssize_t cpr_conn_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
				 uint64_t data, fi_addr_t dest, void *context)
{
	return cpr_msg_ops.senddata(fid, buf, len, desc, data, CPR_CONN_PEER, context);
}

static ssize_t cpr_conn_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				   fi_addr_t dest)
{
	return cpr_msg_ops.injectdata(fid, buf, len, data, CPR_CONN_PEER);
}

const struct fi_ops_msg cpr_conn_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = cpr_conn_recv,
	.recvv = cpr_conn_recvv,
	.recvmsg = cpr_conn_recvmsg,
	.send = cpr_conn_send,
	.sendv = cpr_conn_sendv,
	.sendmsg = cpr_conn_sendmsg,
	.inject = cpr_conn_inject,
	.senddata = cpr_conn_senddata,
	.injectdata = cpr_conn_injectdata,
};

static ssize_t cpr_conn_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			      uint64_t tag, uint64_t ignore, void *context)
{
	return cpr_conn_posted(fid,
			       cpr_tagged_ops.recv(fid, buf, len, desc, src, tag, ignore, context));
}

static ssize_t cpr_conn_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			       size_t count, fi_addr_t src, uint64_t tag, uint64_t ignore,
			       void *context)
{
	return cpr_conn_posted(
		fid, cpr_tagged_ops.recvv(fid, iov, desc, count, src, tag, ignore, context));
}

static ssize_t cpr_conn_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
				 uint64_t flags)
{
	return cpr_conn_posted(fid, cpr_tagged_ops.recvmsg(fid, msg, flags));
}

static ssize_t cpr_conn_tsend(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			      fi_addr_t dest, uint64_t tag, void *context)
{
	return cpr_tagged_ops.send(fid, buf, len, desc, CPR_CONN_PEER, tag, context);
}

static ssize_t cpr_conn_tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			       size_t count, fi_addr_t dest, uint64_t tag, void *context)
{
	return cpr_tagged_ops.sendv(fid, iov, desc, count, CPR_CONN_PEER, tag, context);
}

static ssize_t cpr_conn_tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
				 uint64_t flags)
{
	struct fi_msg_tagged there = *msg;

	there.addr = CPR_CONN_PEER;
	return cpr_tagged_ops.sendmsg(fid, &there, flags);
}

static ssize_t cpr_conn_tinject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
				uint64_t tag)
{
	return cpr_tagged_ops.inject(fid, buf, len, CPR_CONN_PEER, tag);
}

static ssize_t cpr_conn_tsenddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
				  uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	return cpr_tagged_ops.senddata(fid, buf, len, desc, data, CPR_CONN_PEER, tag, context);
}

static ssize_t cpr_conn_tinjectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				    fi_addr_t dest, uint64_t tag)
{
	return cpr_tagged_ops.injectdata(fid, buf, len, data, CPR_CONN_PEER, tag);
}

const struct fi_ops_tagged cpr_conn_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = cpr_conn_trecv,
	.recvv = cpr_conn_trecvv,
	.recvmsg = cpr_conn_trecvmsg,
	.send = cpr_conn_tsend,
	.sendv = cpr_conn_tsendv,
	.sendmsg = cpr_conn_tsendmsg,
	.inject = cpr_conn_tinject,
	.senddata = cpr_conn_tsenddata,
	.injectdata = cpr_conn_tinjectdata,
};
