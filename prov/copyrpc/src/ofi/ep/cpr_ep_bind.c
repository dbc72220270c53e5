/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bindings of an endpoint: see cpr_ep_bind.h. */
#include "ofi/ep/cpr_ep_bind.h"

#include <rdma/fi_errno.h>

#include "ofi/base/cpr_av.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/ep/cpr_srx.h"
#include "ofi/ep/cpr_stx.h"
#include "ofi/queue/cpr_cntr.h"
#include "ofi/queue/cpr_cq.h"
#include "ofi/queue/cpr_eq.h"
#include "util/bits.h"
#include "util/log.h"

#define CPR_EP_CQ_FLAGS (FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)
/* Flags of the counters. Counters of operations that the endpoint does not do stay at zero. */
static const uint64_t cpr_ep_cntr_flags[CPR_EP_CNTR_CNT] = { FI_SEND,        FI_RECV,
							     FI_READ,        FI_WRITE,
							     FI_REMOTE_READ, FI_REMOTE_WRITE };
#define CPR_EP_CNTR_FLAGS                                                                          \
	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static int cpr_ep_bind_av(struct cpr_ep *ep, struct cpr_av *av)
{
	if (av->domain != ep->domain)
		return -FI_EDOMAIN;
	if (ep->av || ep->core_ep.conn)
		return -FI_EINVAL;
	ep->av = av;
	cpr_ref_get(&av->refs);
	cpr_pdom_lock_all(ep->domain);
	util_list_push_back(&av->eps, &ep->av_link);
	cpr_pdom_unlock_all(ep->domain);
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

/* Returns core's counter of operations of kind `i` of cpr_ep_cntr_flags. */
static struct core_cntr **cpr_ep_cntr_slot(struct cpr_ep *ep, unsigned i)
{
	if (i < 2)
		return i ? &ep->core_ep.rx.cntr : &ep->core_ep.tx.cntr;
	return &ep->core_ep.rma_cntr[i - 2];
}

/* Binds one counter per kind of operation; one counter may count several kinds. */
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
		cpr_pdom_assign_eq(ep);
	return ret;
}

int cpr_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct cpr_ep *ep = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);

	if (ep->owner != ep)
		return -FI_EINVAL;
	if (bfid->fclass == FI_CLASS_EQ)
		return flags ? -FI_EBADFLAGS : cpr_ep_bind_eq(ep, cpr_eq_of(bfid));
	if (ep->is_enabled)
		return -FI_EOPBADSTATE;
	switch (bfid->fclass) {
	case FI_CLASS_AV:
		return flags ? -FI_EBADFLAGS
			     : cpr_ep_bind_av(ep, UTIL_CONTAINER_OF(bfid, struct cpr_av, fid.fid));
	case FI_CLASS_CQ:
		return cpr_ep_bind_cq(ep, UTIL_CONTAINER_OF(bfid, struct cpr_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return cpr_ep_bind_cntr(ep, UTIL_CONTAINER_OF(bfid, struct cpr_cntr, fid.fid),
					flags);
	case FI_CLASS_SRX_CTX: return flags ? -FI_EBADFLAGS : cpr_srx_bind(ep, bfid);
	case FI_CLASS_STX_CTX:
		return flags ? -FI_EBADFLAGS
			     : cpr_ep_bind_stx(ep,
					       UTIL_CONTAINER_OF(bfid, struct cpr_stx, fid.fid));
	default: return -FI_ENOSYS;
	}
}

void cpr_ep_unbind_all(struct cpr_ep *ep)
{
	cpr_eq_detach(&ep->eq_user);
	if (ep->av) {
		cpr_pdom_lock_all(ep->domain);
		util_list_remove(&ep->av_link);
		cpr_pdom_unlock_all(ep->domain);
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

static int cpr_ep_check_shared(const struct cpr_ep *ep)
{
	if ((ep->needs_srx && !ep->srx) || (ep->needs_stx && !ep->stx)) {
		UTIL_WARN(EP_CTRL,
			  "fi_enable: the endpoint was opened with FI_SHARED_CONTEXT: bind "
			  "the context first\n");
		return -FI_EOPBADSTATE;
	}
	return cpr_srx_check(ep);
}

int cpr_ep_check_bound(const struct cpr_ep *ep)
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
