/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory access: fi_rma over core. Called by the application through the op table of the
 * endpoint.
 *
 * The calls differ in their parameters only: each fills in a core_rma and adds up its bytes.
 * cpr_rma_post checks it, takes the domain's lock and passes it to core. No local buffer needs
 * registration; the descriptor of the first one may spare a copy.
 */
#include "ofi/xfer/cpr_rma.h"

#include <assert.h>
#include <rdma/fi_rma.h>

#include "core/rma/core_rma.h"
#include "core/rma/core_rma_simple.h"
#include "ofi/base/cpr_refuse.h"
#include "ofi/xfer/cpr_xfer.h"

static_assert(CPR_IOV_LIMIT == CORE_RMA_IOV_MAX, "equal limits in core");

#define CPR_READMSG_FLAGS                                                                          \
	(FI_COMPLETION | FI_MORE | FI_FENCE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |          \
	 FI_DELIVERY_COMPLETE)
#define CPR_WRITEMSG_FLAGS (CPR_READMSG_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA)

/* Returns true if the remote buffers have `len` bytes together. */
static bool cpr_rma_covers(const struct core_rma *r, size_t len)
{
	for (size_t i = 0; i < r->rma_cnt; i++) {
		if (r->rma_iov[i].len > len)
			return false;
		len -= r->rma_iov[i].len;
	}
	return !len;
}

/* Adds up the local bytes. Returns 0, -FI_EINVAL for too many pieces, or -FI_EMSGSIZE. */
UTIL_INLINE int cpr_rma_measure(struct core_rma *r)
{
	return cpr_xfer_check_iov(&r->iov, &r->iov_cnt, CPR_MSG_MAX, &r->len);
}

/* Returns the descriptor of the first buffer. */
static inline void *cpr_rma_desc(void **desc, size_t count)
{
	return desc && count ? desc[0] : NULL;
}

static ssize_t cpr_rma_post(struct cpr_ep *ep, struct core_rma *r)
{
	ssize_t ret;

	if (UTIL_UNLIKELY(!ep->may_rma[r->write]))
		return cpr_refuse_err(ep);
	if (r->write && (r->flags & FI_INJECT) && r->len > ep->inject_max)
		return -FI_EMSGSIZE;
	if (r->flags & FI_TRIGGER)
		return cpr_trigger_rma(ep, r);
	core_dom_lock(ep->dom);
	ret = core_rma_post(ep->core, r);
	if (!(r->flags & FI_MORE))
		core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}

/* Returns true if it has started the access, as a simple one. */
UTIL_INLINE bool cpr_rma_simple(struct cpr_ep *ep, fi_addr_t peer, struct core_rma_simple *a,
				bool write, bool silent)
{
	bool done;

	if (UTIL_UNLIKELY(!ep->may_rma[write]))
		return false;
	core_dom_lock(ep->dom);
	done = core_rma_simple_post(ep->core, peer, a, write, silent);
	if (done && !(a->flags & FI_MORE))
		core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return done;
}

/* Posts a transfer of one or several local buffers and one remote buffer. */
static ssize_t cpr_rma_one(struct fid_ep *fid, bool write, const struct iovec *iov, void *desc,
			   size_t count, fi_addr_t peer, uint64_t addr, uint64_t key, uint64_t data,
			   uint64_t extra, void *context)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct fi_rma_iov remote = { .addr = addr, .key = key };
	struct core_rma r = { .write = write,
			      .peer = peer,
			      .iov = iov,
			      .iov_cnt = count,
			      .desc = desc,
			      .rma_iov = &remote,
			      .rma_cnt = 1,
			      .data = data,
			      .context = context,
			      .flags = ep->tx_flags | extra };
	int ret = cpr_rma_measure(&r);

	if (UTIL_UNLIKELY(ret))
		return ret;
	remote.len = r.len;
	return cpr_rma_post(ep, &r);
}

/* Posts what is not simple. The arguments lie in memory meanwhile. */
static __attribute__((noinline)) ssize_t cpr_rma_general(struct fid_ep *fid, fi_addr_t peer,
							 const struct core_rma_simple *a,
							 bool write)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)a->args.buf, .iov_len = a->args.len };

	return cpr_rma_one(fid, write, &iov, a->desc, 1, peer, a->addr, a->key, 0, 0, a->context);
}

/* Posts a transfer of one local and one remote buffer, with the default flags. */
UTIL_INLINE ssize_t cpr_rma_buf(struct fid_ep *fid, bool write, const void *buf, size_t len,
				void *desc, fi_addr_t peer, uint64_t addr, uint64_t key,
				void *context)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct core_rma_simple a;

	a.args.buf = buf;
	a.args.len = len;
	a.desc = desc;
	a.addr = addr;
	a.key = key;
	a.context = context;
	a.flags = ep->tx_flags;
	if (UTIL_LIKELY(cpr_rma_simple(ep, peer, &a, write, false)))
		return 0;
	return cpr_rma_general(fid, peer, &a, write);
}

static ssize_t cpr_rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t peer,
			    uint64_t addr, uint64_t key, void *context)
{
	return cpr_rma_buf(fid, false, buf, len, desc, peer, addr, key, context);
}

static ssize_t cpr_rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			     fi_addr_t peer, uint64_t addr, uint64_t key, void *context)
{
	return cpr_rma_one(fid, false, iov, cpr_rma_desc(desc, count), count, peer, addr, key, 0, 0,
			   context);
}

/* Returns true if it has started the access, as a simple one. */
static bool cpr_rma_simple_msg(struct cpr_ep *ep, const struct fi_msg_rma *msg, uint64_t flags,
			       bool write)
{
	struct core_rma_simple a = { .context = msg->context, .flags = flags };

	if (msg->iov_count != 1 || msg->rma_iov_count != 1 ||
	    msg->rma_iov[0].len != msg->msg_iov[0].iov_len)
		return false;
	a.args.buf = msg->msg_iov[0].iov_base;
	a.args.len = msg->msg_iov[0].iov_len;
	a.desc = cpr_rma_desc(msg->desc, 1);
	a.addr = msg->rma_iov[0].addr;
	a.key = msg->rma_iov[0].key;
	return cpr_rma_simple(ep, msg->addr, &a, write, false);
}

static ssize_t cpr_rma_msg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags,
			   bool write)
{
	struct core_rma r = { .write = write,
			      .peer = msg->addr,
			      .iov = msg->msg_iov,
			      .iov_cnt = msg->iov_count,
			      .desc = cpr_rma_desc(msg->desc, msg->iov_count),
			      .rma_iov = msg->rma_iov,
			      .rma_cnt = msg->rma_iov_count,
			      .data = msg->data,
			      .context = msg->context,
			      .flags = flags };
	int ret;

	if (cpr_rma_simple_msg(cpr_ep_of(fid), msg, flags, write))
		return 0;
	ret = cpr_rma_measure(&r);
	if (ret)
		return ret;
	if (r.rma_cnt > CPR_IOV_LIMIT || !cpr_rma_covers(&r, r.len))
		return -FI_EINVAL;
	return cpr_rma_post(cpr_ep_of(fid), &r);
}

static ssize_t cpr_rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	if (!cpr_xfer_accepts(cpr_ep_of(fid), flags, CPR_READMSG_FLAGS))
		return -FI_EBADFLAGS;
	return cpr_rma_msg(fid, msg, flags, false);
}

static ssize_t cpr_rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     fi_addr_t peer, uint64_t addr, uint64_t key, void *context)
{
	return cpr_rma_buf(fid, true, buf, len, desc, peer, addr, key, context);
}

static ssize_t cpr_rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc,
			      size_t count, fi_addr_t peer, uint64_t addr, uint64_t key,
			      void *context)
{
	return cpr_rma_one(fid, true, iov, cpr_rma_desc(desc, count), count, peer, addr, key, 0, 0,
			   context);
}

static ssize_t cpr_rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	if (!cpr_xfer_accepts(cpr_ep_of(fid), flags, CPR_WRITEMSG_FLAGS))
		return -FI_EBADFLAGS;
	return cpr_rma_msg(fid, msg, flags, true);
}

static ssize_t cpr_rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
				 uint64_t data, fi_addr_t peer, uint64_t addr, uint64_t key,
				 void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return cpr_rma_one(fid, true, &iov, desc, 1, peer, addr, key, data, FI_REMOTE_CQ_DATA,
			   context);
}

/* Posts an injected write. The default flags do not apply: there is no completion. */
static ssize_t cpr_rma_inject_any(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				  fi_addr_t peer, uint64_t addr, uint64_t key, uint64_t flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct fi_rma_iov remote = { .addr = addr, .len = len, .key = key };
	struct core_rma r = { .write = true,
			      .silent = true,
			      .peer = peer,
			      .iov = &iov,
			      .iov_cnt = 1,
			      .len = len,
			      .rma_iov = &remote,
			      .rma_cnt = 1,
			      .data = data,
			      .flags = FI_INJECT | flags };
	struct core_rma_simple a = {
		.args = { .buf = buf, .len = len }, .addr = addr, .key = key, .flags = r.flags
	};

	if (len <= cpr_ep_of(fid)->inject_max &&
	    cpr_rma_simple(cpr_ep_of(fid), peer, &a, true, true))
		return 0;
	return cpr_rma_post(cpr_ep_of(fid), &r);
}

static ssize_t cpr_rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t peer,
			      uint64_t addr, uint64_t key)
{
	return cpr_rma_inject_any(fid, buf, len, 0, peer, addr, key, 0);
}

static ssize_t cpr_rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				  fi_addr_t peer, uint64_t addr, uint64_t key)
{
	return cpr_rma_inject_any(fid, buf, len, data, peer, addr, key, FI_REMOTE_CQ_DATA);
}

struct fi_ops_rma cpr_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = cpr_rma_read,
	.readv = cpr_rma_readv,
	.readmsg = cpr_rma_readmsg,
	.write = cpr_rma_write,
	.writev = cpr_rma_writev,
	.writemsg = cpr_rma_writemsg,
	.inject = cpr_rma_inject,
	.writedata = cpr_rma_writedata,
	.injectdata = cpr_rma_injectdata,
};

void cpr_rma_pick(struct cpr_ep *ep)
{
	ep->may_rma[0] = (ep->caps & FI_RMA) && (ep->caps & FI_READ);
	ep->may_rma[1] = (ep->caps & FI_RMA) && (ep->caps & FI_WRITE);
}
