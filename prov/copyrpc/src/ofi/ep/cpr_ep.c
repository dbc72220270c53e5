/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoints: open, enable, close. See cpr_ep.h. */
#include "ofi/base/cpr_ep.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/coll/core_coll.h"
#include "core/msg/core_rx.h"
#include "core/rpc/core_rpc.h"
#include "ofi/base/cpr_addr.h"
#include "ofi/base/cpr_av.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_exposed.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/base/cpr_refuse.h"
#include "ofi/conn/cpr_conn.h"
#include "ofi/dgram/cpr_dgram.h"
#include "ofi/ep/cpr_ep_alias.h"
#include "ofi/ep/cpr_ep_bind.h"
#include "ofi/ep/cpr_srx.h"
#include "ofi/xfer/cpr_atomic.h"
#include "ofi/xfer/cpr_coll.h"
#include "ofi/xfer/cpr_rma.h"
#include "ofi/xfer/cpr_rpc.h"
#include "ofi/xfer/cpr_silent.h"
#include "ofi/xfer/cpr_trigger.h"
#include "util/bits.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/param.h"

void cpr_ep_pick_ops(struct cpr_ep *ep)
{
	ep->msg_ops = ep->core->conn    ? cpr_conn_msg_ops
		      : ep->dom->locked ? cpr_msg_guarded_ops
					: cpr_msg_ops;
	ep->tagged_ops = ep->core->conn    ? cpr_conn_tagged_ops
			 : ep->dom->locked ? cpr_tagged_guarded_ops
					   : cpr_tagged_ops;
	if (!(ep->caps & FI_MSG))
		ep->msg_ops = cpr_refuse_msg_ops;
	if (!(ep->caps & FI_TAGGED))
		ep->tagged_ops = cpr_refuse_tagged_ops;
	cpr_silent_pick(ep);
	if (!(ep->caps & FI_SEND))
		cpr_refuse_sends(ep);
	if (!(ep->caps & FI_RECV) || ep->owner->srx)
		cpr_refuse_recvs(ep);
	cpr_rma_pick(ep);
	cpr_atomic_pick(ep);
	if (ep->tx_flags & FI_TRIGGER)
		cpr_trigger_pick(ep);
}

static int cpr_ep_start(struct cpr_ep *ep)
{
	int ret = ep->caps & FI_COLLECTIVE ? core_coll_init(&ep->core_ep) : 0;
	struct sockaddr_storage src = ep->src;

	if (ret)
		return ret;
	if (!src.ss_family)
		src.ss_family = (sa_family_t)cpr_addr_family(ep->domain->addr_format);
	ep->core_ep.av = ep->av ? ep->av->core : NULL;
	ret = core_ep_open(&ep->core_ep, ep->dom, (struct sockaddr *)&src);
	if (ret)
		core_coll_fini(&ep->core_ep);
	else
		cpr_srx_join(ep);
	return ret;
}

static bool cpr_ep_is_busy(struct cpr_ep *ep)
{
	return core_ep_is_busy(&ep->core_ep);
}

static void cpr_ep_stop(struct cpr_ep *ep)
{
	core_ep_close(&ep->core_ep);
}

static size_t cpr_ep_addr(struct cpr_ep *ep, struct sockaddr_storage *addr)
{
	core_ep_addr(ep->core, addr);
	return cpr_addr_len(cpr_addr_format(addr->ss_family));
}

/* Cancels a receive or a call. Sends cannot be cancelled. */
static int cpr_ep_cancel(struct cpr_ep *ep, void *context)
{
	int ret = core_rx_cancel(ep->core, context);

	return ret == -FI_ENOENT ? core_rpc_cancel(ep->core, context) : ret;
}

static int cpr_ep_av_inserted(struct cpr_ep *ep, uint64_t number)
{
	return core_ep_av_inserted(ep->core, number);
}

static bool cpr_ep_av_is_busy(struct cpr_ep *ep, uint64_t number)
{
	return core_ep_av_is_busy(ep->core, number);
}

static void cpr_ep_av_removed(struct cpr_ep *ep, uint64_t number)
{
	core_ep_av_removed(ep->core, number);
}

const struct cpr_ep_kind cpr_ep_kind_msg = {
	.start = cpr_ep_start,
	.is_busy = cpr_ep_is_busy,
	.stop = cpr_ep_stop,
	.pick_ops = cpr_ep_pick_ops,
	.addr = cpr_ep_addr,
	.cancel = cpr_ep_cancel,
	.av_inserted = cpr_ep_av_inserted,
	.av_is_busy = cpr_ep_av_is_busy,
	.av_removed = cpr_ep_av_removed,
	.tx_op_flags = CPR_TX_OP_FLAGS,
};

/* Returns what the user can do about an error of fi_enable, as the end of a log line. */
static const char *cpr_ep_enable_remedy(int err)
{
	switch (err) {
	case -FI_EADDRINUSE:
	case -FI_EADDRNOTAVAIL: return "; choose another source address or port";
	case -FI_EMFILE:
	case -ENFILE: return "; raise the limit on open files (ulimit -n)";
	case -FI_EBADF:
		return "; the endpoint belongs to the parent of this forked process, which has to "
		       "open its own";
	default: return "";
	}
}

static int cpr_ep_enable_fail(int err)
{
	UTIL_WARN(EP_CTRL, "fi_enable: %s%s\n", fi_strerror(-err), cpr_ep_enable_remedy(err));
	return err;
}

int cpr_ep_enable(struct cpr_ep *ep)
{
	int ret;

	if (ep->owner != ep || ep->is_enabled)
		return -FI_EOPBADSTATE;
	if (ep->domain->main.is_inherited)
		return cpr_ep_enable_fail(-FI_EBADF);
	ret = cpr_ep_check_bound(ep);
	if (ret)
		return ret;
	cpr_pdom_enter(ep);
	core_dom_lock(ep->dom);
	ret = ep->kind->start(ep);
	ep->is_enabled = !ret;
	core_dom_unlock(ep->dom);
	if (ret) {
		cpr_pdom_leave(ep);
		return cpr_ep_enable_fail(ret);
	}
	ep->kind->pick_ops(ep);
	cpr_exposed_check(ep->domain);
	return 0;
}

static int cpr_ep_control(struct fid *fid, int command, void *arg)
{
	struct cpr_ep *ep = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);

	if (command == FI_ENABLE)
		return cpr_ep_enable(ep);
	if (!arg)
		return -FI_EINVAL;
	switch (command) {
	case FI_GETOPSFLAG: return cpr_ep_get_flags(ep, arg);
	case FI_SETOPSFLAG: return cpr_ep_set_flags(ep, *(uint64_t *)arg);
	case FI_ALIAS: return cpr_ep_alias(ep, arg);
	default: return -FI_ENOSYS;
	}
}

bool cpr_drain_again(struct cpr_drain *drain)
{
	if (++drain->looks < 1000)
		return true;
	if (!drain->deadline_ns)
		drain->deadline_ns =
			util_clock_ns() + (uint64_t)util_params.peer_timeout_ms * UTIL_NS_PER_MS;
	else if (util_clock_ns() >= drain->deadline_ns)
		return false;
	poll(NULL, 0, 1);
	return true;
}

/*
 * Makes progress until operations accepted before fi_close have reached the peer. Other threads may
 * use the domain meanwhile.
 */
static void cpr_ep_drain(struct cpr_ep *ep)
{
	struct cpr_drain drain = { 0 };
	bool busy;

	do {
		cpr_pdom_progress_all(ep->domain);
		core_dom_lock(ep->dom);
		busy = ep->kind->is_busy(ep);
		core_dom_unlock(ep->dom);
	} while (busy && cpr_drain_again(&drain));
}

static int cpr_ep_close(struct fid *fid)
{
	struct cpr_ep *ep = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);
	struct cpr_domain *domain = ep->domain;

	if (ep->owner != ep)
		return cpr_ep_close_alias(ep);
	if (cpr_ref_is_busy(&ep->refs) || cpr_domain_is_inherited(domain))
		return -FI_EBUSY;
	if (ep->is_enabled) {
		cpr_ep_drain(ep);
		core_dom_lock(ep->dom);
		cpr_trigger_drop_all(ep);
		ep->kind->stop(ep);
		ep->is_enabled = false;
		core_dom_unlock(ep->dom);
		cpr_pdom_leave(ep);
	}
	cpr_conn_fini(ep);
	cpr_ep_unbind_all(ep);
	if (ep->core_ep.conn)
		cpr_conn_defer_free(ep);
	else
		free(ep);
	cpr_ref_put(&domain->refs);
	return 0;
}

static struct fi_ops cpr_ep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = cpr_ep_close,
	.bind = cpr_ep_bind,
	.control = cpr_ep_control,
	.ops_open = cpr_rpc_ep_ops_open,
};

void cpr_ep_init_fid(struct cpr_ep *ep, void *context)
{
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &cpr_ep_fi_ops;
	ep->fid.ops = &cpr_ep_ops;
	ep->fid.cm = &cpr_ep_cm_ops;
	ep->fid.msg = &ep->msg_ops;
	ep->fid.rma = &cpr_rma_ops;
	ep->fid.tagged = &ep->tagged_ops;
	ep->fid.atomic = &cpr_atomic_ops;
	ep->fid.collective = &cpr_coll_ops;
}

void cpr_ep_init(struct cpr_ep *ep, struct cpr_domain *domain, const struct fi_info *info,
		 void *context)
{
	cpr_ep_init_fid(ep, context);
	cpr_refuse_all(ep);
	ep->owner = ep;
	ep->domain = domain;
	ep->dom = &domain->main.core;
	ep->core = &ep->core_ep;
	ep->inject_max = info->tx_attr && info->tx_attr->inject_size ? info->tx_attr->inject_size
								     : util_params.eager_max;
	ep->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	cpr_ep_set_tx_flags(ep, info->tx_attr ? info->tx_attr->op_flags : 0);
	ep->needs_stx = info->ep_attr && info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->needs_srx = info->ep_attr && info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->core_ep.directed = ep->caps & FI_DIRECTED_RECV;
	ep->core_ep.source = ep->caps & FI_SOURCE;
	if (ep->caps & (FI_RMA | FI_ATOMIC))
		ep->core_ep.rma_ordered =
			info->tx_attr && (info->tx_attr->msg_order & CPR_RMA_ORDER);
	if (ep->caps & (FI_RMA | FI_ATOMIC))
		ep->core_ep.remote_access = ep->caps & (FI_REMOTE_READ | FI_REMOTE_WRITE);
	ep->core_ep.min_multi_recv = CPR_MULTI_RECV_MIN;
	util_list_init(&ep->domain_link);
	util_list_init(&ep->av_link);
	util_list_init(&ep->triggers);
	if (info->src_addr && info->src_addrlen >= cpr_addr_len(domain->addr_format))
		memcpy(&ep->src, info->src_addr, cpr_addr_len(domain->addr_format));
}

static int cpr_ep_check(const struct cpr_domain *domain, const struct fi_info *info)
{
	const struct sockaddr *src;

	if (!info || (info->caps & ~CPR_CAPS))
		return -FI_EINVAL;
	if (info->ep_attr && info->ep_attr->type && info->ep_attr->type != FI_EP_RDM &&
	    (info->ep_attr->type != FI_EP_MSG || domain->kind != CPR_RC))
		return -FI_EINVAL;
	if (info->tx_attr && ((info->tx_attr->op_flags & ~CPR_TX_OP_FLAGS) ||
			      info->tx_attr->inject_size > util_params.eager_max))
		return -FI_EINVAL;
	if (info->rx_attr && (info->rx_attr->op_flags & ~CPR_RX_OP_FLAGS))
		return -FI_EINVAL;
	src = info->src_addr;
	if (src && (info->src_addrlen < cpr_addr_len(domain->addr_format) ||
		    cpr_addr_format(src->sa_family) != domain->addr_format))
		return -FI_EINVAL;
	return 0;
}

int cpr_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct cpr_domain *domain = cpr_domain_of(fid);
	struct cpr_ep *ep;
	int ret;

	if (domain->dgram)
		return cpr_dgram_open(domain, info, out, context);
	ret = cpr_ep_check(domain, info);
	if (ret)
		return ret;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->kind = &cpr_ep_kind_msg;
	ep->caps = cpr_offer_caps(info->caps) &
		   cpr_offer_all(cpr_conn_is_type(info) ? FI_EP_MSG : FI_EP_RDM);
	cpr_ep_init(ep, domain, info, context);
	ret = cpr_conn_is_type(info) ? cpr_conn_init(ep, info) : 0;
	if (ret) {
		cpr_conn_fini(ep);
		free(ep);
		return ret;
	}
	cpr_ref_get(&domain->refs);
	*out = &ep->fid;
	return 0;
}

int cpr_ep_open2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		 uint64_t flags, void *context)
{
	return flags ? -FI_ENOSYS : cpr_ep_open(domain, info, ep, context);
}
