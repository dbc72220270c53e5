/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An endpoint's life: open, bind, enable, alias, close. See cpr_ep.h. */
#include "ofi/ep/cpr_ep.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/coll/core_coll.h"
#include "core/rpc/core_rpc.h"
#include "core/msg/core_rx.h"
#include "ofi/base/cpr_addr.h"
#include "ofi/xfer/cpr_atomic.h"
#include "ofi/domain/cpr_av.h"
#include "ofi/queue/cpr_cntr.h"
#include "ofi/xfer/cpr_coll.h"
#include "ofi/conn/cpr_conn.h"
#include "ofi/queue/cpr_cq.h"
#include "ofi/dgram/cpr_dgram.h"
#include "ofi/domain/cpr_domain.h"
#include "ofi/base/cpr_nosys.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/xfer/cpr_rpc.h"
#include "ofi/ep/cpr_srx.h"
#include "ofi/ep/cpr_stx.h"
#include "ofi/xfer/cpr_rma.h"
#include "ofi/xfer/cpr_trigger.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/param.h"

#define CPR_EP_CQ_FLAGS (FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)
/* Counters of what this endpoint does not do stay at zero. */
static const uint64_t cpr_ep_cntr_flags[CPR_EP_CNTR_CNT] = { FI_SEND,        FI_RECV,
							     FI_READ,        FI_WRITE,
							     FI_REMOTE_READ, FI_REMOTE_WRITE };
#define CPR_EP_CNTR_FLAGS                                                                          \
	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

void cpr_ep_set_tx_flags(struct cpr_ep *ep, uint64_t flags)
{
	ep->tx_flags = flags;
	ep->send_max = flags & FI_INJECT ? ep->inject_max : CPR_MSG_MAX;
}

static int cpr_ep_bind_av(struct cpr_ep *ep, struct cpr_av *av)
{
	if (av->domain != ep->domain)
		return -FI_EDOMAIN;
	if (ep->av || ep->core_ep.conn)
		return -FI_EINVAL;
	ep->av = av;
	cpr_ref_get(&av->refs);
	cpr_group_lock_all(ep->domain);
	util_list_push_back(&av->eps, &ep->av_link);
	cpr_group_unlock_all(ep->domain);
	return 0;
}

static int cpr_ep_bind_cq(struct cpr_ep *ep, struct cpr_cq *cq, uint64_t flags)
{
	bool selective = flags & FI_SELECTIVE_COMPLETION;

	if (cq->domain != ep->domain)
		return -FI_EDOMAIN;
	if (!(flags & (FI_TRANSMIT | FI_RECV)))
		return -FI_EINVAL;
	if (flags & ~CPR_EP_CQ_FLAGS)
		return -FI_EBADFLAGS;
	if (((flags & FI_TRANSMIT) && ep->tx_cq) || ((flags & FI_RECV) && ep->rx_cq))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->core_ep.tx.cq = &cq->core;
		ep->core_ep.tx.selective = selective;
		cpr_ref_get(&cq->refs);
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->core_ep.rx.cq = &cq->core;
		ep->core_ep.rx.selective = selective;
		cpr_ref_get(&cq->refs);
	}
	return 0;
}

/* Where core counts operations of kind `i` of cpr_ep_cntr_flags. */
static struct core_cntr **cpr_ep_cntr_slot(struct cpr_ep *ep, unsigned i)
{
	if (i < 2)
		return i ? &ep->core_ep.rx.cntr : &ep->core_ep.tx.cntr;
	return &ep->core_ep.rma_cntr[i - 2];
}

/* One counter per kind of operation; one counter may count several kinds. */
static int cpr_ep_bind_cntr(struct cpr_ep *ep, struct cpr_cntr *cntr, uint64_t flags)
{
	unsigned i;

	if (cntr->domain != ep->domain)
		return -FI_EDOMAIN;
	if (!flags)
		return -FI_EINVAL;
	if (flags & ~CPR_EP_CNTR_FLAGS)
		return -FI_EBADFLAGS;
	for (i = 0; i < CPR_EP_CNTR_CNT; i++)
		if ((flags & cpr_ep_cntr_flags[i]) && ep->cntr[i])
			return -FI_EINVAL;
	for (i = 0; i < CPR_EP_CNTR_CNT; i++) {
		if (!(flags & cpr_ep_cntr_flags[i]))
			continue;
		ep->cntr[i] = cntr;
		*cpr_ep_cntr_slot(ep, i) = &cntr->core;
		cpr_ref_get(&cntr->refs);
	}
	return 0;
}

static int cpr_ep_bind_stx(struct cpr_ep *ep, struct cpr_stx *stx)
{
	if (stx->domain != ep->domain)
		return -FI_EDOMAIN;
	if (ep->stx)
		return -FI_EINVAL;
	ep->stx = stx;
	cpr_ref_get(&stx->refs);
	return 0;
}

static int cpr_ep_bind_eq(struct cpr_ep *ep, struct cpr_eq *eq)
{
	int ret = cpr_eq_attach(eq, ep->domain, &ep->eq_user);

	if (!ret)
		cpr_group_tie_eq(ep);
	return ret;
}

static int cpr_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct cpr_ep *ep = container_of(fid, struct cpr_ep, fid.fid);

	if (ep->owner != ep)
		return -FI_EINVAL;
	if (bfid->fclass == FI_CLASS_EQ)
		return flags ? -FI_EBADFLAGS : cpr_ep_bind_eq(ep, cpr_eq_of(bfid));
	if (ep->is_enabled)
		return -FI_EOPBADSTATE;
	switch (bfid->fclass) {
	case FI_CLASS_AV:
		return flags ? -FI_EBADFLAGS
			     : cpr_ep_bind_av(ep, container_of(bfid, struct cpr_av, fid.fid));
	case FI_CLASS_CQ:
		return cpr_ep_bind_cq(ep, container_of(bfid, struct cpr_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return cpr_ep_bind_cntr(ep, container_of(bfid, struct cpr_cntr, fid.fid), flags);
	case FI_CLASS_SRX_CTX: return flags ? -FI_EBADFLAGS : cpr_srx_bind(ep, bfid);
	case FI_CLASS_STX_CTX:
		return flags ? -FI_EBADFLAGS
			     : cpr_ep_bind_stx(ep, container_of(bfid, struct cpr_stx, fid.fid));
	default: return -FI_ENOSYS;
	}
}

static void cpr_ep_unbind_all(struct cpr_ep *ep)
{
	cpr_eq_detach(&ep->eq_user);
	if (ep->av) {
		cpr_group_lock_all(ep->domain);
		util_list_remove(&ep->av_link);
		cpr_group_unlock_all(ep->domain);
		cpr_ref_put(&ep->av->refs);
	}
	if (ep->tx_cq)
		cpr_ref_put(&ep->tx_cq->refs);
	if (ep->rx_cq)
		cpr_ref_put(&ep->rx_cq->refs);
	for (unsigned i = 0; i < CPR_EP_CNTR_CNT; i++)
		if (ep->cntr[i])
			cpr_ref_put(&ep->cntr[i]->refs);
	if (ep->stx)
		cpr_ref_put(&ep->stx->refs);
	cpr_srx_unbind(ep);
}

/* Transfers that the capabilities do not cover stay refused. */
static void cpr_ep_pick_msg(struct cpr_ep *ep)
{
	ep->msg_ops = ep->core->conn ? cpr_conn_msg_ops : cpr_msg_ops;
	if (!(ep->caps & FI_MSG))
		ep->msg_ops = cpr_no_msg_ops;
	if (!(ep->caps & FI_SEND)) {
		ep->msg_ops.send = cpr_no_msg_ops.send;
		ep->msg_ops.sendv = cpr_no_msg_ops.sendv;
		ep->msg_ops.sendmsg = cpr_no_msg_ops.sendmsg;
		ep->msg_ops.inject = cpr_no_msg_ops.inject;
		ep->msg_ops.senddata = cpr_no_msg_ops.senddata;
		ep->msg_ops.injectdata = cpr_no_msg_ops.injectdata;
	}
	if (!(ep->caps & FI_RECV) || ep->owner->srx) {
		ep->msg_ops.recv = cpr_no_msg_ops.recv;
		ep->msg_ops.recvv = cpr_no_msg_ops.recvv;
		ep->msg_ops.recvmsg = cpr_no_msg_ops.recvmsg;
	}
}

static void cpr_ep_pick_tagged(struct cpr_ep *ep)
{
	ep->tagged_ops = ep->core->conn ? cpr_conn_tagged_ops : cpr_tagged_ops;
	if (!(ep->caps & FI_TAGGED))
		ep->tagged_ops = cpr_no_tagged_ops;
	if (!(ep->caps & FI_SEND)) {
		ep->tagged_ops.send = cpr_no_tagged_ops.send;
		ep->tagged_ops.sendv = cpr_no_tagged_ops.sendv;
		ep->tagged_ops.sendmsg = cpr_no_tagged_ops.sendmsg;
		ep->tagged_ops.inject = cpr_no_tagged_ops.inject;
		ep->tagged_ops.senddata = cpr_no_tagged_ops.senddata;
		ep->tagged_ops.injectdata = cpr_no_tagged_ops.injectdata;
	}
	if (!(ep->caps & FI_RECV) || ep->owner->srx) {
		ep->tagged_ops.recv = cpr_no_tagged_ops.recv;
		ep->tagged_ops.recvv = cpr_no_tagged_ops.recvv;
		ep->tagged_ops.recvmsg = cpr_no_tagged_ops.recvmsg;
	}
}

void cpr_ep_pick_ops(struct cpr_ep *ep)
{
	cpr_ep_pick_msg(ep);
	cpr_ep_pick_tagged(ep);
	cpr_rma_pick(&ep->rma_ops, ep->caps);
	cpr_atomic_pick(&ep->atomic_ops, ep->caps);
	if (ep->caps & FI_COLLECTIVE)
		ep->fid.collective = &cpr_coll_ops;
	if (ep->tx_flags & FI_TRIGGER)
		cpr_trigger_pick(ep);
}

static int cpr_ep_check_shared(const struct cpr_ep *ep)
{
	if ((ep->wants_srx && !ep->srx) || (ep->wants_stx && !ep->stx)) {
		UTIL_WARN(EP_CTRL, "fi_enable: the endpoint was opened for FI_SHARED_CONTEXT: bind "
				   "the context first\n");
		return -FI_EOPBADSTATE;
	}
	return cpr_srx_check(ep);
}

static int cpr_ep_check_bound(const struct cpr_ep *ep)
{
	if (ep->core_ep.conn && !ep->eq_user.eq) {
		UTIL_WARN(EP_CTRL, "fi_enable: bind an event queue first\n");
		return -FI_ENOEQ;
	}
	if (!ep->core_ep.conn && !ep->av) {
		UTIL_WARN(EP_CTRL, "fi_enable: bind an address vector first\n");
		return -FI_ENOAV;
	}
	if (((ep->caps & (FI_SEND | FI_READ | FI_WRITE)) && !ep->tx_cq) ||
	    ((ep->caps & FI_RECV) && !ep->rx_cq)) {
		UTIL_WARN(EP_CTRL, "fi_enable: bind a completion queue for each direction first "
				   "(errors are reported there)\n");
		return -FI_ENOCQ;
	}
	return cpr_ep_check_shared(ep);
}

static int cpr_ep_start(struct cpr_ep *ep)
{
	int ret = ep->caps & FI_COLLECTIVE ? core_coll_init(&ep->core_ep) : 0;

	if (ret)
		return ret;
	ep->core_ep.av = ep->av ? ep->av->core : NULL;
	ret = core_ep_open(&ep->core_ep, ep->dom,
			   ep->src.ss_family ? (struct sockaddr *)&ep->src : NULL);
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

/* Sends are on their way at once and cannot be called back. */
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
};

int cpr_ep_enable(struct cpr_ep *ep)
{
	int ret;

	if (ep->owner != ep || ep->is_enabled)
		return -FI_EOPBADSTATE;
	ret = cpr_ep_check_bound(ep);
	if (ret)
		return ret;
	cpr_group_enter(ep);
	core_dom_lock(ep->dom);
	ret = ep->kind->start(ep);
	ep->is_enabled = !ret;
	core_dom_unlock(ep->dom);
	if (ret) {
		cpr_group_leave(ep);
		UTIL_WARN(EP_CTRL, "fi_enable: %s; choose another source address or port\n",
			  fi_strerror(-ret));
		return ret;
	}
	ep->kind->pick_ops(ep);
	return 0;
}

/* The flags word says which direction is meant; exactly one. */
static int cpr_ep_flags_direction(uint64_t flags, uint64_t *direction)
{
	*direction = flags & (FI_TRANSMIT | FI_RECV);
	return *direction == FI_TRANSMIT || *direction == FI_RECV ? 0 : -FI_EINVAL;
}

static int cpr_ep_get_flags(const struct cpr_ep *ep, uint64_t *flags)
{
	uint64_t direction;
	int ret = cpr_ep_flags_direction(*flags, &direction);

	if (!ret)
		*flags = direction == FI_TRANSMIT ? ep->tx_flags : ep->rx_flags;
	return ret;
}

static int cpr_ep_set_flags(struct cpr_ep *ep, uint64_t flags)
{
	uint64_t direction, allowed;
	int ret = cpr_ep_flags_direction(flags, &direction);

	if (ret)
		return ret;
	flags &= ~direction;
	allowed = direction == FI_TRANSMIT ? CPR_TX_OP_FLAGS | (ep->caps & FI_TRIGGER)
					   : CPR_RX_OP_FLAGS;
	if (flags & ~allowed)
		return -FI_EBADFLAGS;
	if (direction == FI_TRANSMIT)
		cpr_ep_set_tx_flags(ep, flags);
	else
		ep->rx_flags = flags;
	if (ep->owner->is_enabled)
		ep->kind->pick_ops(ep);
	return 0;
}

static void cpr_ep_init_fid(struct cpr_ep *ep, void *context);

static int cpr_ep_alias(struct cpr_ep *ep, const struct fi_alias *arg)
{
	struct cpr_ep *alias;
	int ret = 0;

	if (!ep->owner->is_enabled)
		return -FI_EOPBADSTATE;
	alias = calloc(1, sizeof(*alias));
	if (!alias)
		return -FI_ENOMEM;
	cpr_ep_init_fid(alias, ep->fid.fid.context);
	alias->owner = ep->owner;
	alias->domain = ep->domain;
	alias->kind = ep->kind;
	alias->dgram = ep->dgram;
	alias->core = ep->core;
	alias->dom = ep->dom;
	alias->caps = ep->caps;
	alias->inject_max = ep->inject_max;
	alias->rx_flags = ep->rx_flags;
	cpr_ep_set_tx_flags(alias, ep->tx_flags);
	alias->kind->pick_ops(alias);
	if (arg->flags)
		ret = cpr_ep_set_flags(alias, arg->flags);
	if (ret) {
		free(alias);
		return ret;
	}
	cpr_ref_get(&ep->owner->refs);
	*arg->fid = &alias->fid.fid;
	return 0;
}

static int cpr_ep_control(struct fid *fid, int command, void *arg)
{
	struct cpr_ep *ep = container_of(fid, struct cpr_ep, fid.fid);

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
 * What was accepted before fi_close reaches the peer: progress until nothing is on its way. Others may use
 * the domain meanwhile.
 */
static void cpr_ep_drain(struct cpr_ep *ep)
{
	struct cpr_drain drain = { 0 };
	bool busy;

	do {
		cpr_group_progress_all(ep->domain);
		core_dom_lock(ep->dom);
		busy = ep->kind->is_busy(ep);
		core_dom_unlock(ep->dom);
	} while (busy && cpr_drain_again(&drain));
}

static int cpr_ep_close_alias(struct cpr_ep *alias)
{
	cpr_ref_put(&alias->owner->refs);
	free(alias);
	return 0;
}

static int cpr_ep_close(struct fid *fid)
{
	struct cpr_ep *ep = container_of(fid, struct cpr_ep, fid.fid);
	struct cpr_domain *domain = ep->domain;

	if (ep->owner != ep)
		return cpr_ep_close_alias(ep);
	if (cpr_ref_is_busy(&ep->refs))
		return -FI_EBUSY;
	if (ep->is_enabled) {
		cpr_ep_drain(ep);
		core_dom_lock(ep->dom);
		cpr_trigger_drop_all(ep);
		ep->kind->stop(ep);
		ep->is_enabled = false;
		core_dom_unlock(ep->dom);
		cpr_group_leave(ep);
	}
	cpr_conn_fini(ep);
	cpr_ep_unbind_all(ep);
	if (ep->core_ep.conn)
		cpr_conn_bury(ep);
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
	.tostr = cpr_no_tostr,
	.ops_set = cpr_no_ops_set,
};

static void cpr_ep_init_fid(struct cpr_ep *ep, void *context)
{
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &cpr_ep_fi_ops;
	ep->fid.ops = &cpr_ep_ops;
	ep->fid.cm = &cpr_ep_cm_ops;
	ep->fid.msg = &ep->msg_ops;
	ep->fid.rma = &ep->rma_ops;
	ep->fid.tagged = &ep->tagged_ops;
	ep->fid.atomic = &ep->atomic_ops;
	ep->fid.collective = &cpr_no_collective_ops; /* see cpr_ep_pick_ops */
}

void cpr_ep_init(struct cpr_ep *ep, struct cpr_domain *domain, const struct fi_info *info,
		 void *context)
{
	cpr_ep_init_fid(ep, context);
	ep->msg_ops = cpr_early_msg_ops;
	ep->tagged_ops = cpr_early_tagged_ops;
	ep->rma_ops = cpr_early_rma_ops;
	ep->atomic_ops = cpr_early_atomic_ops;
	ep->owner = ep;
	ep->domain = domain;
	ep->dom = &domain->main.core;
	ep->core = &ep->core_ep;
	ep->inject_max = info->tx_attr && info->tx_attr->inject_size ? info->tx_attr->inject_size
								     : util_params.eager_max;
	ep->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	cpr_ep_set_tx_flags(ep, info->tx_attr ? info->tx_attr->op_flags : 0);
	ep->wants_stx = info->ep_attr && info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->wants_srx = info->ep_attr && info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->core_ep.directed = ep->caps & FI_DIRECTED_RECV;
	ep->core_ep.source = ep->caps & FI_SOURCE;
	if (ep->caps & (FI_RMA | FI_ATOMIC))
		ep->core_ep.rma_ordered =
			info->tx_attr && (info->tx_attr->msg_order & CPR_RMA_ORDER);
	if (ep->caps & (FI_RMA | FI_ATOMIC))
		ep->core_ep.remote_access = ep->caps & (FI_REMOTE_READ | FI_REMOTE_WRITE);
	ep->core_ep.min_multi_recv = CPR_MULTI_RECV_MIN;
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
