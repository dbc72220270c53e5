/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions: see cpr_mr.h. */
#include "ofi/domain/cpr_mr.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_mr.h"
#include "core/rma/core_rma.h"
#include "core/rma/core_rma_lease.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/base/cpr_exposed.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/queue/cpr_cntr.h"
#include "ofi/queue/cpr_eq.h"
#include "util/bits.h"
#include "util/clock.h"
#include "util/param.h"

static_assert(CPR_IOV_LIMIT == CORE_MR_IOV_MAX, "equal limits in core");

#define CPR_MR_REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define CPR_MR_ACCESS                                                                              \
	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_COLLECTIVE)

struct cpr_mr {
	struct fid_mr fid;
	struct core_mr core;
	struct cpr_domain *domain;
	struct cpr_cntr *cntr[2]; /* bound, by direction: closed after the region */
};

static inline struct cpr_mr *cpr_mr_of(struct fid *fid)
{
	return UTIL_CONTAINER_OF(fid, struct cpr_mr, fid.fid);
}

static int cpr_mr_add(struct cpr_mr *mr)
{
	int ret;

	cpr_pdom_lock_all(mr->domain);
	ret = core_mr_add(&mr->domain->main.core, &mr->core, mr->domain->prov_key);
	cpr_pdom_unlock_all(mr->domain);
	mr->fid.key = mr->core.key;
	mr->fid.mem_desc = mr->core.desc;
	return ret;
}

/* Cuts off peers that take longer than they may to end their use of the region. */
static void cpr_mr_cut_off(struct cpr_mr *mr, uint64_t ns)
{
	if (ns > (uint64_t)util_params.peer_timeout_ms * UTIL_NS_PER_MS)
		core_rma_revoke(&mr->core, true);
	if (ns > (uint64_t)util_params.revoke_timeout_ms * UTIL_NS_PER_MS)
		core_rma_lessee_forget(&mr->core);
	else
		core_rma_lessee_revoke(&mr->core);
}

/*
 * Makes progress until transfers in the region have ended and peers have returned their leases;
 * then ends its registrations. After peer_timeout_ms peers that still use an exposure over an RDMA
 * device, or do not send the bytes of a long write, are cut off, after revoke_timeout_ms those that
 * still have a lease. Locked.
 */
static void cpr_mr_drain(struct cpr_mr *mr)
{
	uint64_t since = util_clock_ns();

	while (core_mr_is_busy(&mr->core)) {
		cpr_pdom_progress_locked(mr->domain);
		cpr_mr_cut_off(mr, util_clock_ns() - since);
		cpr_pdom_unlock_all(mr->domain);
		sched_yield();
		cpr_pdom_lock_all(mr->domain);
	}
	core_mr_dereg(&mr->core);
}

static void cpr_mr_remove(struct cpr_mr *mr)
{
	cpr_pdom_lock_all(mr->domain);
	core_mr_remove(&mr->domain->main.core, &mr->core);
	cpr_mr_drain(mr);
	cpr_pdom_unlock_all(mr->domain);
}

/* Takes all leases of the region back: accesses need new ones, with new terms. */
static void cpr_mr_renew(struct cpr_mr *mr)
{
	cpr_pdom_lock_all(mr->domain);
	core_rma_lessee_renew(&mr->core);
	cpr_mr_drain(mr);
	mr->core.unfit = false;
	core_rma_lessee_renewed(&mr->core);
	cpr_pdom_unlock_all(mr->domain);
}

static int cpr_mr_close(struct fid *fid)
{
	struct cpr_mr *mr = cpr_mr_of(fid);

	if (cpr_domain_is_inherited(mr->domain))
		return -FI_EBUSY;
	cpr_mr_remove(mr);
	for (int i = 0; i < 2; i++)
		if (mr->cntr[i])
			cpr_ref_put(&mr->cntr[i]->refs);
	cpr_ref_put(&mr->domain->refs);
	free(mr);
	return 0;
}

/* Locked. The counter is closed after the region. */
static void cpr_mr_set_cntr(struct cpr_mr *mr, struct cpr_cntr *cntr, bool write)
{
	mr->cntr[write] = cntr;
	cpr_ref_get(&cntr->refs);
	if (write)
		mr->core.remote_write = &cntr->core;
	else
		mr->core.remote_read = &cntr->core;
}

/* Binds a counter of peers' accesses to the region, one for each direction. */
static int cpr_mr_bind_cntr(struct cpr_mr *mr, struct cpr_cntr *cntr, uint64_t flags)
{
	int ret = 0;

	if (!flags || cntr->domain != mr->domain)
		return -FI_EINVAL;
	if (flags & ~CPR_MR_REMOTE)
		return -FI_EBADFLAGS;
	cpr_pdom_merge_all(mr->domain); /* peers of any endpoint may count there */
	cpr_domain_lock(mr->domain);
	if (((flags & FI_REMOTE_READ) && mr->cntr[0]) || ((flags & FI_REMOTE_WRITE) && mr->cntr[1]))
		ret = -FI_EINVAL;
	if (!ret && (flags & FI_REMOTE_READ))
		cpr_mr_set_cntr(mr, cntr, false);
	if (!ret && (flags & FI_REMOTE_WRITE))
		cpr_mr_set_cntr(mr, cntr, true);
	cpr_domain_unlock(mr->domain);
	if (!ret)
		cpr_mr_renew(mr); /* the counter counts from now on */
	return ret;
}

/*
 * Binds an endpoint, which changes nothing: endpoints see all regions of their domain. Either may
 * be closed first. fi_mr(3) allows -FI_EBUSY for a region that something is bound to, but an
 * application that exposes memory for a while closes the region and keeps the endpoint.
 */
static int cpr_mr_bind_ep(const struct cpr_mr *mr, const struct cpr_ep *ep, uint64_t flags)
{
	if (ep->domain != mr->domain)
		return -FI_EINVAL;
	return flags ? -FI_EBADFLAGS : 0;
}

static int cpr_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	switch (bfid->fclass) {
	case FI_CLASS_EP:
		return cpr_mr_bind_ep(cpr_mr_of(fid),
				      UTIL_CONTAINER_OF(bfid, struct cpr_ep, fid.fid), flags);
	case FI_CLASS_CNTR:
		return cpr_mr_bind_cntr(cpr_mr_of(fid),
					UTIL_CONTAINER_OF(bfid, struct cpr_cntr, fid.fid), flags);
	default: return -FI_ENOSYS;
	}
}

static int cpr_mr_raw_attr(const struct cpr_mr *mr, const struct fi_mr_raw_attr *attr)
{
	size_t room = *attr->key_size;

	*attr->key_size = sizeof(mr->fid.key);
	if (room < sizeof(mr->fid.key))
		return -FI_ETOOSMALL;
	*attr->base_addr = mr->core.base;
	memcpy(attr->raw_key, &mr->fid.key, sizeof(mr->fid.key));
	return 0;
}

static int cpr_mr_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_ENABLE: return 0;
	case FI_REFRESH:
		/* Devices get the new mapping when they need the region again. */
		cpr_mr_renew(cpr_mr_of(fid));
		return 0;
	case FI_GET_RAW_MR: return arg ? cpr_mr_raw_attr(cpr_mr_of(fid), arg) : -FI_EINVAL;
	default: return -FI_ENOSYS;
	}
}

int cpr_mr_map_raw(const struct fi_mr_map_raw *map)
{
	if (map->key_size != sizeof(*map->key))
		return -FI_EINVAL;
	memcpy(map->key, map->raw_key, sizeof(*map->key));
	return 0;
}

static struct fi_ops cpr_mr_fi_ops = CPR_FID_OPS(cpr_mr_close, cpr_mr_bind, cpr_mr_control);

static int cpr_mr_check(const struct fi_mr_attr *attr, uint64_t flags)
{
	size_t i, len = 0;

	if (!attr || !attr->mr_iov || !attr->iov_count || attr->iov_count > CPR_IOV_LIMIT ||
	    attr->offset || (attr->access & ~CPR_MR_ACCESS))
		return -FI_EINVAL;
	/* FI_RMA_EVENT needs no preparation and is accepted. */
	if (flags & ~FI_RMA_EVENT)
		return -FI_EBADFLAGS;
	for (i = 0; i < attr->iov_count; i++)
		if (__builtin_add_overflow(len, attr->mr_iov[i].iov_len, &len))
			return -FI_EINVAL;
	return len ? 0 : -FI_EINVAL;
}

/* Reports a registration to the domain's event queue, if bound with FI_REG_MR. */
static int cpr_mr_report(struct cpr_mr *mr)
{
	struct fi_eq_entry entry = { .fid = &mr->fid.fid, .context = mr->fid.fid.context };

	if (!mr->domain->mr_events)
		return 0;
	return cpr_eq_post(mr->domain->eq_user.eq, FI_MR_COMPLETE, &entry, sizeof(entry));
}

static void cpr_mr_init(struct cpr_mr *mr, struct cpr_domain *domain, const struct fi_mr_attr *attr)
{
	struct core_mr *core = &mr->core;

	mr->domain = domain;
	core->key = attr->requested_key;
	core->access = attr->access;
	core->base = domain->virt_addr ? (uintptr_t)attr->mr_iov[0].iov_base : 0;
	core->fixed = domain->fixed_mrs;
	core->iov_cnt = attr->iov_count;
	memcpy(core->iov, attr->mr_iov, attr->iov_count * sizeof(*attr->mr_iov));
	for (size_t i = 0; i < core->iov_cnt; i++)
		core->len += core->iov[i].iov_len;
}

static int cpr_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			  struct fid_mr **out)
{
	struct cpr_domain *domain = UTIL_CONTAINER_OF(fid, struct cpr_domain, fid.fid);
	struct cpr_mr *mr;
	int ret = cpr_mr_check(attr, flags);

	if (ret)
		return ret;
	mr = cpr_fid_new(sizeof(*mr), FI_CLASS_MR, &cpr_mr_fi_ops, attr->context);
	if (!mr)
		return -FI_ENOMEM;
	cpr_mr_init(mr, domain, attr);
	ret = cpr_mr_add(mr);
	if (ret)
		goto err_free;
	cpr_ref_get(&domain->refs);
	/* Set before the report: its reader may use the region at once. */
	*out = &mr->fid;
	ret = cpr_mr_report(mr);
	if (ret)
		goto err_remove;
	cpr_exposed_check(domain);
	return 0;

err_remove:
	*out = NULL;
	cpr_ref_put(&domain->refs);
	cpr_mr_remove(mr);
err_free:
	free(mr);
	return ret;
}

static int cpr_mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		       uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		       void *context)
{
	struct fi_mr_attr attr = { .mr_iov = iov,
				   .iov_count = count,
				   .access = access,
				   .offset = offset,
				   .requested_key = requested_key,
				   .context = context };

	return cpr_mr_regattr(fid, &attr, flags, mr);
}

static int cpr_mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		      uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		      void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return cpr_mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr cpr_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = cpr_mr_reg,
	.regv = cpr_mr_regv,
	.regattr = cpr_mr_regattr,
};
