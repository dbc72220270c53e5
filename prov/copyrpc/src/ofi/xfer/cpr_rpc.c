/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls of the RPC extension: see cpr_rpc.h and rdma/fi_ext_copyrpc.h. */
#include "ofi/xfer/cpr_rpc.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_copyrpc.h>
#include <sched.h>
#include <string.h>

#include "core/core_peer.h"
#include "core/rpc/core_rpc_post.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/queue/cpr_cq.h"
#include "ofi/xfer/cpr_xfer.h"
#include "util/bits.h"

#define CPR_RPC_CALL_FLAGS  (FI_MORE | FI_COMPLETION | FI_COPYRPC_RETAIN)
#define CPR_RPC_REPLY_FLAGS (FI_MORE)
#define CPR_RPC_IDLE_TAKES  1024u /* a power of two, and a multiple of CPR_PDOM_IDLE_READS */

static_assert(CORE_RPC_RETAIN == FI_COPYRPC_RETAIN, "core uses the public flag");
static_assert((int)CORE_SHORT_CONNECTION == (int)FI_COPYRPC_SHORT_CONNECTION &&
		      (int)CORE_SHORT_CREDIT == (int)FI_COPYRPC_SHORT_CREDIT &&
		      (int)CORE_SHORT_SPACE == (int)FI_COPYRPC_SHORT_SPACE &&
		      (int)CORE_SHORT_QUEUE == (int)FI_COPYRPC_SHORT_QUEUE &&
		      (int)CORE_SHORT_MEMORY == (int)FI_COPYRPC_SHORT_MEMORY,
	      "core uses the public causes");

static inline unsigned cpr_rpc_flags(uint64_t flags)
{
	return flags & FI_MORE ? CORE_RPC_MORE : 0;
}

static inline uint64_t cpr_rpc_comp_flags(uint64_t flags)
{
	return FI_COPYRPC_CALL | (flags & FI_COPYRPC_RETAIN);
}

/* Locks the domain of an enabled endpoint. Returns 0 or -FI_EOPBADSTATE. */
static inline int cpr_rpc_enter(struct cpr_ep *ep)
{
	if (UTIL_UNLIKELY(!ep->owner->is_enabled))
		return -FI_EOPBADSTATE;
	if (UTIL_UNLIKELY(!core_dom_is_private(ep->dom)))
		core_dom_lock(ep->dom);
	return 0;
}

static __attribute__((noinline)) void cpr_rpc_leave_guarded(struct core_dom *dom, uint64_t flags)
{
	if (!(flags & FI_MORE))
		core_dom_transferred(dom);
	core_dom_unlock(dom);
}

static inline void cpr_rpc_leave(struct cpr_ep *ep, uint64_t flags)
{
	if (UTIL_UNLIKELY(!core_dom_is_private(ep->dom)))
		cpr_rpc_leave_guarded(ep->dom, flags);
}

/* Returns true if the endpoint is enabled and only this thread uses its domain. */
static inline bool cpr_rpc_is_plain(const struct cpr_ep *ep)
{
	return ep->owner->is_enabled && ep->owner->tx_cq && core_dom_is_private(ep->dom);
}

/* Returns true if completions can carry the address of a retained response. */
static bool cpr_rpc_may_retain(const struct cpr_ep *ep)
{
	return ep->owner->tx_cq->has_data;
}

static int cpr_rpc_check(const struct cpr_ep *ep, const void *resp, size_t resp_len, uint64_t flags)
{
	if (flags & ~CPR_RPC_CALL_FLAGS)
		return -FI_EBADFLAGS;
	if (!ep->owner->tx_cq)
		return -FI_ENOCQ;
	if ((flags & FI_COPYRPC_RETAIN) && (resp || !cpr_rpc_may_retain(ep)))
		return -FI_EINVAL;
	return !resp && resp_len && !(flags & FI_COPYRPC_RETAIN) ? -FI_EINVAL : 0;
}

static __attribute__((noinline)) ssize_t cpr_rpc_call_cold(struct cpr_ep *ep, const void *buf,
							   size_t len, void *resp, size_t resp_len,
							   fi_addr_t dest, void *context,
							   uint64_t flags)
{
	ssize_t ret = cpr_rpc_check(ep, resp, resp_len, flags);

	if (!ret)
		ret = cpr_rpc_enter(ep);
	if (ret)
		return ret;
	ret = core_rpc_call_buf(ep->core, buf, len, resp, resp_len, dest, context,
				cpr_rpc_comp_flags(flags), cpr_rpc_flags(flags));
	cpr_rpc_leave(ep, flags);
	return ret;
}

static ssize_t cpr_rpc_call(struct fid_ep *fid, const void *buf, size_t len, void *resp,
			    size_t resp_len, fi_addr_t dest, void *context, uint64_t flags)
{
	struct cpr_ep *ep = cpr_ep_of(fid);

	if (UTIL_UNLIKELY((flags & ~(FI_MORE | FI_COMPLETION)) || !resp || !cpr_rpc_is_plain(ep)))
		return cpr_rpc_call_cold(ep, buf, len, resp, resp_len, dest, context, flags);
	return core_rpc_call_buf(ep->core, buf, len, resp, resp_len, dest, context, FI_COPYRPC_CALL,
				 cpr_rpc_flags(flags));
}

static ssize_t cpr_rpc_callmsg(struct fid_ep *fid, const struct fi_copyrpc_msg *msg, uint64_t flags)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct core_rpc_request request = {
		.iov = msg->msg_iov,
		.iov_cnt = msg->iov_count,
		.resp = msg->resp,
		.resp_max = msg->resp_len,
		.context = msg->context,
		.comp_flags = cpr_rpc_comp_flags(flags),
		.flags = cpr_rpc_flags(flags),
	};
	ssize_t ret = cpr_rpc_check(ep, msg->resp, msg->resp_len, flags);

	if (!ret)
		ret = cpr_xfer_check_iov(&request.iov, &request.iov_cnt, CPR_MSG_MAX, &request.len);
	if (!ret)
		ret = cpr_rpc_enter(ep);
	if (ret)
		return ret;
	ret = core_rpc_call(ep->core, msg->addr, &request);
	cpr_rpc_leave(ep, flags);
	return ret;
}

static inline void cpr_rpc_fill_request(struct fi_copyrpc_request *req,
					struct core_rpc_handle *handle)
{
	req->data = handle->data;
	req->len = handle->len;
	req->resp_max = handle->resp_max;
	req->src_addr = handle->chan->peer->fi_addr;
	req->handle[0] = (uintptr_t)handle;
	req->handle[1] = handle->seq;
}

static inline size_t cpr_rpc_take(struct core_ep *ep, struct fi_copyrpc_request *reqs, size_t count)
{
	struct util_list *head = &ep->rpc.intake, *at = head->next;
	size_t n = 0;

	for (; n < count && at != head; at = at->next)
		cpr_rpc_fill_request(&reqs[n++],
				     UTIL_CONTAINER_OF(at, struct core_rpc_handle, link));
	core_rpc_pop_intake(ep, at, n);
	return n;
}

/* Makes progress for others and yields the processor after many receives without a request. */
static __attribute__((noinline)) void cpr_rpc_idle(struct cpr_ep *ep, struct cpr_pdom *pdom,
						   uint32_t takes)
{
	cpr_pdom_progress_others(ep->domain, pdom);
	if (takes % CPR_RPC_IDLE_TAKES == 0)
		sched_yield();
}

static ssize_t cpr_rpc_recv(struct fid_ep *fid, struct fi_copyrpc_request *reqs, size_t count,
			    uint64_t flags)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct cpr_pdom *pdom = UTIL_CONTAINER_OF(ep->dom, struct cpr_pdom, core);
	uint32_t idle = 0;
	int ret = flags ? -FI_EBADFLAGS : cpr_rpc_enter(ep);
	size_t n;

	if (UTIL_UNLIKELY(ret))
		return ret;
	if (UTIL_UNLIKELY(!ep->core->rpc.listens))
		core_rpc_listen(ep->core);
	cpr_pdom_progress(pdom);
	n = cpr_rpc_take(ep->core, reqs, count);
	if (UTIL_LIKELY(n))
		ep->core->rpc.idle = 0;
	else
		idle = ++ep->core->rpc.idle;
	if (UTIL_UNLIKELY(!core_dom_is_private(ep->dom)))
		core_dom_unlock(ep->dom);
	if (UTIL_UNLIKELY(idle && idle % CPR_PDOM_IDLE_READS == 0))
		cpr_rpc_idle(ep, pdom, idle);
	return n || !count ? (ssize_t)n : -FI_EAGAIN;
}

static inline struct core_rpc_handle *cpr_rpc_handle_of(const struct fi_copyrpc_request *req)
{
	return (struct core_rpc_handle *)(uintptr_t)req->handle[0];
}

static __attribute__((noinline)) ssize_t cpr_rpc_reply_cold(struct cpr_ep *ep,
							    const struct fi_copyrpc_request *req,
							    const void *buf, size_t len,
							    uint64_t flags)
{
	ssize_t ret;

	if (flags & ~CPR_RPC_REPLY_FLAGS)
		return -FI_EBADFLAGS;
	ret = cpr_rpc_enter(ep);
	if (ret)
		return ret;
	ret = core_rpc_reply_buf(ep->core, cpr_rpc_handle_of(req), req->handle[1], buf, len,
				 cpr_rpc_flags(flags));
	cpr_rpc_leave(ep, flags);
	return ret;
}

static ssize_t cpr_rpc_reply(struct fid_ep *fid, const struct fi_copyrpc_request *req,
			     const void *buf, size_t len, uint64_t flags)
{
	struct cpr_ep *ep = cpr_ep_of(fid);

	if (UTIL_UNLIKELY((flags & ~CPR_RPC_REPLY_FLAGS) || !ep->owner->is_enabled ||
			  !core_dom_is_private(ep->dom)))
		return cpr_rpc_reply_cold(ep, req, buf, len, flags);
	return core_rpc_reply_buf(ep->core, cpr_rpc_handle_of(req), req->handle[1], buf, len,
				  cpr_rpc_flags(flags));
}

static ssize_t cpr_rpc_replyv(struct fid_ep *fid, const struct fi_copyrpc_request *req,
			      const struct iovec *iov, size_t count, uint64_t flags)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	ssize_t ret;
	size_t len;

	if (flags & ~CPR_RPC_REPLY_FLAGS)
		return -FI_EBADFLAGS;
	ret = cpr_xfer_check_iov(&iov, &count, CPR_MSG_MAX, &len);
	if (!ret)
		ret = cpr_rpc_enter(ep);
	if (ret)
		return ret;
	ret = core_rpc_reply(ep->core, cpr_rpc_handle_of(req), req->handle[1], iov, count, len,
			     cpr_rpc_flags(flags));
	cpr_rpc_leave(ep, flags);
	return ret;
}

static int cpr_rpc_release(struct fid_ep *fid, const struct fi_copyrpc_request *req)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	int ret = cpr_rpc_enter(ep);

	if (ret)
		return ret;
	ret = core_rpc_release(ep->core, cpr_rpc_handle_of(req), req->handle[1]);
	cpr_rpc_leave(ep, 0);
	return ret;
}

static int cpr_rpc_release_response(struct fid_ep *fid, uint64_t data)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	int ret = cpr_rpc_enter(ep);

	if (ret)
		return ret;
	ret = core_rpc_release_resp(ep->core, data);
	cpr_rpc_leave(ep, 0);
	return ret;
}

static int cpr_rpc_flush(struct fid_ep *fid, fi_addr_t dest)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	int ret = cpr_rpc_enter(ep);

	if (ret)
		return ret;
	ret = core_rpc_flush(ep->core, dest);
	cpr_rpc_leave(ep, 0);
	return ret;
}

static int cpr_rpc_query(struct fid_ep *fid, fi_addr_t dest, struct fi_copyrpc_limits *limits)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	int ret = cpr_rpc_enter(ep);

	if (ret)
		return ret;
	ret = core_rpc_limits(ep->core, dest, &limits->max_request, &limits->max_response);
	cpr_rpc_leave(ep, 0);
	return ret;
}

static ssize_t cpr_rpc_room(struct fid_ep *fid, fi_addr_t dest, size_t len, size_t resp_len)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	ssize_t ret = cpr_rpc_enter(ep);

	if (ret)
		return ret;
	ret = core_rpc_room(ep->core, dest, len, resp_len);
	cpr_rpc_leave(ep, 0);
	return ret;
}

static int cpr_rpc_shortage(struct fid_ep *fid, fi_addr_t dest, size_t len, size_t resp_len)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	int ret = cpr_rpc_enter(ep);

	if (ret)
		return ret;
	ret = core_rpc_shortage(ep->core, dest, len, resp_len);
	cpr_rpc_leave(ep, 0);
	return ret;
}

static int cpr_rpc_refused(struct fid_ep *fid, uint64_t *counts, size_t cnt)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	int ret = cpr_rpc_enter(ep);

	if (ret)
		return ret;
	memset(counts, 0, cnt * sizeof(*counts));
	memcpy(counts, ep->core->rpc.refused,
	       (cnt < CORE_SHORT_CNT ? cnt : CORE_SHORT_CNT) * sizeof(*counts));
	cpr_rpc_leave(ep, 0);
	return 0;
}

static struct fi_copyrpc_ops cpr_rpc_ops = {
	.size = sizeof(struct fi_copyrpc_ops),
	.call = cpr_rpc_call,
	.callmsg = cpr_rpc_callmsg,
	.recv = cpr_rpc_recv,
	.reply = cpr_rpc_reply,
	.replyv = cpr_rpc_replyv,
	.release = cpr_rpc_release,
	.release_response = cpr_rpc_release_response,
	.flush = cpr_rpc_flush,
	.query = cpr_rpc_query,
	.room = cpr_rpc_room,
	.shortage = cpr_rpc_shortage,
	.refused = cpr_rpc_refused,
};

/* Returns the table for objects of a domain. Datagram endpoints make no calls. */
static int cpr_rpc_ops_open(const struct cpr_domain *domain, const char *name, uint64_t flags,
			    void **ops)
{
	if (!name || strcmp(name, FI_COPYRPC_RPC_OPS_1) || domain->dgram)
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	*ops = &cpr_rpc_ops;
	return 0;
}

int cpr_rpc_domain_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
			    void *context)
{
	return cpr_rpc_ops_open(UTIL_CONTAINER_OF(fid, struct cpr_domain, fid.fid), name, flags,
				ops);
}

int cpr_rpc_ep_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
			void *context)
{
	struct cpr_ep *ep = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);
	int ret = cpr_rpc_ops_open(ep->domain, name, flags, ops);

	if (ret)
		return ret;
	core_dom_lock(ep->dom);
	core_rpc_listen(ep->core);
	core_dom_unlock(ep->dom);
	return 0;
}
