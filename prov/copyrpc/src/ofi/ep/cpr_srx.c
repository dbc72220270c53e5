/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive contexts: see cpr_srx.h. */
#include "ofi/ep/cpr_srx.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "core/msg/core_srx.h"
#include "ofi/base/cpr_av.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/queue/cpr_cntr.h"
#include "ofi/queue/cpr_cq.h"
#include "util/bits.h"
#include "util/log.h"

#define CPR_SRX_CAPS                                                                               \
	(FI_MSG | FI_TAGGED | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE |             \
	 CPR_DOMAIN_CAPS)

/* Binds the queue of completions that belong to no endpoint (core_srx.h). Users need none. */
static int cpr_srx_bind_cq(struct cpr_ep *srx, struct cpr_cq *cq, uint64_t flags)
{
	if (cq->domain != srx->domain)
		return -FI_EDOMAIN;
	if (srx->rx_cq)
		return -FI_EINVAL;
	if (flags != FI_RECV)
		return -FI_EBADFLAGS;
	srx->rx_cq = cq;
	srx->core_ep.rx.cq = &cq->core;
	cpr_ref_get(&cq->refs);
	cpr_pdom_assign_main(srx->domain, &cq->member);
	return 0;
}

static int cpr_srx_bind_fid(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct cpr_ep *srx = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);

	if (cpr_ref_is_busy(&srx->refs))
		return -FI_EOPBADSTATE;
	if (bfid->fclass == FI_CLASS_CQ)
		return cpr_srx_bind_cq(srx, UTIL_CONTAINER_OF(bfid, struct cpr_cq, fid.fid), flags);
	return -FI_ENOSYS;
}

static int cpr_srx_control(struct fid *fid, int command, void *arg)
{
	struct cpr_ep *srx = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);

	switch (command) {
	case FI_ENABLE: return 0; /* enabled when opened */
	case FI_GETOPSFLAG:
		if (!arg)
			return -FI_EINVAL;
		*(uint64_t *)arg = srx->rx_flags;
		return 0;
	default: return -FI_ENOSYS;
	}
}

static int cpr_srx_close(struct fid *fid)
{
	struct cpr_ep *srx = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);

	if (cpr_ref_is_busy(&srx->refs))
		return -FI_EBUSY;
	cpr_domain_lock(srx->domain);
	core_srx_close(&srx->core_ep);
	cpr_domain_unlock(srx->domain);
	if (srx->rx_cq)
		cpr_ref_put(&srx->rx_cq->refs);
	cpr_ref_put(&srx->domain->refs);
	free(srx);
	return 0;
}

static struct fi_ops cpr_srx_fi_ops = CPR_FID_OPS(cpr_srx_close, cpr_srx_bind_fid, cpr_srx_control);

static void cpr_srx_init(struct cpr_ep *srx, struct cpr_domain *domain,
			 const struct fi_rx_attr *attr, void *context)
{
	cpr_ep_init_fid(srx, context);
	srx->fid.fid.fclass = FI_CLASS_SRX_CTX;
	srx->fid.fid.ops = &cpr_srx_fi_ops;
	srx->owner = srx;
	srx->kind = &cpr_ep_kind_msg;
	srx->domain = domain;
	srx->dom = &domain->main.core;
	srx->core = &srx->core_ep;
	util_list_init(&srx->triggers);
	srx->is_enabled = true;
	srx->caps = cpr_offer_caps(attr ? attr->caps : 0) & CPR_SRX_CAPS;
	srx->rx_flags = attr ? attr->op_flags : 0;
	srx->core_ep.directed = srx->caps & FI_DIRECTED_RECV;
	srx->core_ep.source = srx->caps & FI_SOURCE;
	srx->core_ep.min_multi_recv = CPR_MULTI_RECV_MIN;
	cpr_ep_pick_ops(srx);
}

int cpr_srx_open(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		 void *context)
{
	struct cpr_domain *domain = cpr_domain_of(fid);
	struct cpr_ep *srx;
	int ret;

	if (domain->dgram)
		return -FI_ENOSYS;
	if (attr && ((attr->caps & ~CPR_CAPS) || (attr->op_flags & ~CPR_RX_OP_FLAGS)))
		return -FI_EINVAL;
	srx = calloc(1, sizeof(*srx));
	if (!srx)
		return -FI_ENOMEM;
	cpr_srx_init(srx, domain, attr, context);
	ret = core_srx_open(&srx->core_ep, &domain->main.core);
	if (ret) {
		free(srx);
		return ret;
	}
	cpr_ref_get(&domain->refs);
	*rx_ep = &srx->fid;
	return 0;
}

int cpr_srx_bind(struct cpr_ep *ep, struct fid *fid)
{
	struct cpr_ep *srx = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);

	if (srx->domain != ep->domain)
		return -FI_EDOMAIN;
	if (ep->srx)
		return -FI_EINVAL;
	ep->srx = srx;
	cpr_ref_get(&srx->refs);
	return 0;
}

int cpr_srx_check(const struct cpr_ep *ep)
{
	const struct core_av *av = ep->srx ? ep->srx->core_ep.av : NULL;

	if (!av || !ep->av || av == ep->av->core)
		return 0;
	UTIL_WARN(EP_CTRL, "fi_enable: endpoints of one shared receive context must be bound to "
			   "one address vector\n");
	return -FI_EINVAL;
}

void cpr_srx_join(struct cpr_ep *ep)
{
	if (!ep->srx)
		return;
	ep->srx->core_ep.av = ep->core_ep.av;
	core_srx_join(&ep->srx->core_ep, &ep->core_ep);
}

void cpr_srx_unbind(struct cpr_ep *ep)
{
	struct cpr_ep *srx = ep->srx;

	if (!srx)
		return;
	ep->srx = NULL;
	cpr_domain_lock(ep->domain);
	if (!srx->core_ep.shown_by) /* last one: the next may bring another AV */
		srx->core_ep.av = NULL;
	cpr_domain_unlock(ep->domain);
	cpr_ref_put(&srx->refs);
}
