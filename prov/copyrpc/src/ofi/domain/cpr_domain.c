/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Domains: see cpr_domain.h. */
#include "ofi/base/cpr_domain.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dgram/dgram_over.h"
#include "engine/eng_engine.h"
#include "ofi/base/cpr_addr.h"
#include "ofi/base/cpr_av.h"
#include "ofi/base/cpr_engine.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/base/cpr_fabric.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/conn/cpr_conn.h"
#include "ofi/dgram/cpr_dgram.h"
#include "ofi/domain/cpr_mr.h"
#include "ofi/ep/cpr_srx.h"
#include "ofi/ep/cpr_stx.h"
#include "ofi/queue/cpr_cntr.h"
#include "ofi/queue/cpr_cq.h"
#include "ofi/queue/cpr_eq.h"
#include "ofi/queue/cpr_poll.h"
#include "ofi/queue/cpr_strerror.h"
#include "ofi/xfer/cpr_atomic.h"
#include "ofi/xfer/cpr_coll.h"
#include "ofi/xfer/cpr_rpc.h"
#include "stats/stats_report.h"
#include "util/bits.h"
#include "util/fi_old.h"
#include "util/log.h"
#include "util/param.h"

static void cpr_domain_fini_core(struct cpr_domain *domain)
{
	cpr_pdom_close_all(domain);
	core_dom_fini(&domain->main.core);
	pthread_mutex_destroy(&domain->changes);
}

static int cpr_domain_close(struct fid *fid)
{
	struct cpr_domain *domain = UTIL_CONTAINER_OF(fid, struct cpr_domain, fid.fid);

	if (cpr_ref_is_busy(&domain->refs) || cpr_domain_is_inherited(domain))
		return -FI_EBUSY;
	cpr_fabric_remove(domain->fabric, domain);
	cpr_progress_stop(&domain->progress);
	cpr_eq_detach(&domain->eq_user);
	cpr_conn_free_deferred(domain);
	cpr_domain_fini_core(domain);
	stats_report_close();
	free(domain);
	return 0;
}

/*
 * Binds an event queue. FI_REG_MR reports registrations; there are no other asynchronous control
 * events.
 */
static int cpr_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct cpr_domain *domain = UTIL_CONTAINER_OF(fid, struct cpr_domain, fid.fid);
	int ret;

	if (bfid->fclass != FI_CLASS_EQ || (flags & ~FI_REG_MR))
		return -FI_EINVAL;
	ret = cpr_eq_attach(cpr_eq_of(bfid), domain, &domain->eq_user);
	if (!ret && (flags & FI_REG_MR))
		domain->mr_events = true;
	return ret;
}

static int cpr_domain_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_MAP_RAW_MR: return arg ? cpr_mr_map_raw(arg) : -FI_EINVAL;
	case FI_UNMAP_KEY: return 0;
	default: return -FI_ENOSYS;
	}
}

static struct fi_ops cpr_domain_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = cpr_domain_close,
	.bind = cpr_domain_bind,
	.control = cpr_domain_control,
	.ops_open = cpr_rpc_domain_ops_open,
};

static int cpr_domain_no_scalable_ep(struct fid_domain *domain, struct fi_info *info,
				     struct fid_ep **sep, void *context)
{
	return -FI_ENOSYS;
}

static struct fi_ops_domain cpr_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = cpr_av_open,
	.cq_open = cpr_cq_open,
	.endpoint = cpr_ep_open,
	.scalable_ep = cpr_domain_no_scalable_ep,
	.cntr_open = cpr_cntr_open,
	.poll_open = cpr_poll_open,
	.stx_ctx = cpr_stx_open,
	.srx_ctx = cpr_srx_open,
	.query_atomic = cpr_atomic_query,
	.query_collective = cpr_coll_query,
	.endpoint2 = cpr_ep_open2,
};

bool cpr_domain_is_ours(const struct fid_domain *fid)
{
	return fid->ops == &cpr_domain_ops;
}

bool cpr_domain_has_name(const struct cpr_domain *domain, const char *name)
{
	if (domain->dgram)
		return cpr_dgram_over(name) == domain->dgram;
	return !strcmp(name, domain->kind == CPR_UD ? CPR_UD_NAME : CPR_RC_NAME);
}

static bool cpr_domain_is_locked(const struct fi_domain_attr *attr)
{
	return attr->threading != FI_THREAD_DOMAIN || attr->data_progress == FI_PROGRESS_AUTO;
}

/*
 * Returns true if endpoints may get progress domains of their own. Where one thread makes progress
 * for all endpoints, one progress domain is faster.
 */
static bool cpr_domain_may_split(const struct cpr_domain *domain, const struct fi_domain_attr *attr)
{
	return attr->threading != FI_THREAD_DOMAIN && attr->data_progress != FI_PROGRESS_AUTO &&
	       !domain->dgram;
}

static int cpr_domain_init_core(struct cpr_domain *domain, const struct fi_domain_attr *attr)
{
	struct core_limits limits = {
		.eager_max = util_params.eager_max,
		.single_copy_min =
			util_params.single_copy_min ? util_params.single_copy_min : SIZE_MAX,
		.unexpected_mem = util_params.unexpected_mem,
	};

	int ret = core_dom_init(
		&domain->main.core,
		domain->dgram ? domain->dgram->progress_ops : cpr_engine_of(domain->kind),
		domain->dgram ? NULL : &eng_ops, &limits, cpr_domain_is_locked(attr));

	if (ret)
		return ret;
	pthread_mutex_init(&domain->changes, NULL);
	domain->splits = cpr_domain_may_split(domain, attr);
	cpr_pdom_init(&domain->main, domain);
	return 0;
}

/**
 * Returns the kind that the domain's name selects; without a name, the endpoint's protocol does.
 */
static enum cpr_kind cpr_domain_kind(const struct fi_info *info)
{
	const char *name = info->domain_attr->name;

	if (!name && info->ep_attr && info->ep_attr->protocol == CPR_UD_PROTO)
		return CPR_UD;
	return name && !strcmp(name, CPR_UD_NAME) ? CPR_UD : CPR_RC;
}

/** Returns true if devices may access regions: their memory stays mapped (fi_mr(3)). */
static bool cpr_domain_fixes_mrs(const struct fi_domain_attr *attr)
{
	bool allocated = attr->mr_mode == FI_MR_BASIC || (attr->mr_mode & FI_MR_ALLOCATED);

	return util_params.nic_rma > 1 || (util_params.nic_rma && allocated);
}

static void cpr_domain_init(struct cpr_domain *domain, struct cpr_fabric *fabric,
			    const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	domain->fid.ops = &cpr_domain_ops;
	domain->fid.mr = &cpr_mr_ops;
	domain->fabric = fabric;
	domain->api_version = fabric->api_version;
	domain->dgram = cpr_dgram_over(info->domain_attr->name);
	domain->kind = cpr_domain_kind(info);
	domain->addr_format =
		info->addr_format == FI_SOCKADDR_IN6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	if (domain->dgram && !domain->dgram->is_ip)
		domain->addr_format = FI_ADDR_IB_UD;
	domain->av_type = attr->av_type ? attr->av_type : FI_AV_TABLE;
	domain->prov_key = attr->mr_mode == FI_MR_BASIC || (attr->mr_mode & FI_MR_PROV_KEY);
	domain->fixed_mrs = cpr_domain_fixes_mrs(attr);
	domain->virt_addr = attr->mr_mode == FI_MR_BASIC || (attr->mr_mode & FI_MR_VIRT_ADDR);
	util_list_init(&domain->fabric_link);
	util_list_init(&domain->eps);
	util_list_init(&domain->closed_conns);
	domain->pid = getpid();
}

bool cpr_domain_is_inherited(const struct cpr_domain *domain)
{
	if (domain->pid == getpid())
		return false;
	UTIL_WARN(
		DOMAIN,
		"a forked child cannot close objects of its parent: they stay open; let the child "
		"leave by exec or _exit, without exit handlers\n");
	return true;
}

static int cpr_domain_check(const struct fi_info *info)
{
	if (!info || !info->domain_attr)
		return -FI_EINVAL;
	if (info->domain_attr->name && strcmp(info->domain_attr->name, CPR_RC_NAME) &&
	    strcmp(info->domain_attr->name, CPR_UD_NAME) &&
	    !cpr_dgram_over(info->domain_attr->name)) {
		UTIL_INFO(DOMAIN, "domain %s: offered " CPR_RC_NAME ", " CPR_UD_NAME "\n",
			  info->domain_attr->name);
		return -FI_EINVAL;
	}
	return 0;
}

/* Says why a domain with valid attributes was not opened, and what the user can do. */
static int cpr_domain_open_fail(int err)
{
	UTIL_WARN(DOMAIN, "fi_domain: %s\n", cpr_strerror(err, NULL, 0));
	return err;
}

int cpr_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
		    void *context)
{
	struct cpr_domain *domain;
	int ret = cpr_domain_check(info);

	if (ret)
		return ret;
	domain = cpr_fid_new(sizeof(*domain), FI_CLASS_DOMAIN, &cpr_domain_fi_ops, context);
	if (!domain)
		return -FI_ENOMEM;
	cpr_domain_init(domain, cpr_fabric_of(fabric), info);
	ret = cpr_domain_init_core(domain, info->domain_attr);
	if (ret)
		goto err_free;
	if (info->domain_attr->data_progress == FI_PROGRESS_AUTO)
		ret = cpr_progress_start(domain);
	if (ret)
		goto err_fini_core;
	cpr_fabric_add(domain->fabric, domain);
	stats_report_open();
	*out = &domain->fid;
	return 0;

err_fini_core:
	cpr_domain_fini_core(domain);
err_free:
	free(domain);
	return cpr_domain_open_fail(ret);
}

int cpr_domain_open2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		     uint64_t flags, void *context)
{
	return flags ? -FI_ENOSYS : cpr_domain_open(fabric, info, domain, context);
}
