/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fabrics and the list of them: see cpr_fabric.h. */
#include "ofi/base/cpr_fabric.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_engine.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/conn/cpr_connreq.h"
#include "ofi/conn/cpr_pep.h"
#include "ofi/domain/cpr_fork.h"
#include "ofi/queue/cpr_eq.h"
#include "ofi/queue/cpr_waitset.h"
#include "stats/stats_report.h"
#include "util/bits.h"
#include "util/log.h"
#include "util/membarrier.h"

static pthread_mutex_t cpr_fabric_lock = PTHREAD_MUTEX_INITIALIZER;
static struct util_list cpr_fabric_list = { &cpr_fabric_list, &cpr_fabric_list };

static int cpr_fabric_close(struct fid *fid)
{
	struct cpr_fabric *fabric = UTIL_CONTAINER_OF(fid, struct cpr_fabric, fid.fid);

	if (cpr_ref_is_busy(&fabric->refs))
		return -FI_EBUSY;
	pthread_mutex_lock(&cpr_fabric_lock);
	util_list_remove(&fabric->link);
	pthread_mutex_unlock(&cpr_fabric_lock);
	cpr_connreq_reject_all(fabric);
	if (fabric->cm)
		cpr_engine_put_cm(fabric->cm);
	pthread_mutex_destroy(&fabric->request_lock);
	free(fabric);
	return 0;
}

static int cpr_fabric_trywait(struct fid_fabric *fid, struct fid **fids, int count)
{
	int i, ret = 0;

	for (i = 0; i < count && !ret; i++)
		ret = cpr_waitset_trywait_fid(fids[i], count > 1);
	return ret == -FI_EBUSY ? -FI_EAGAIN : ret;
}

static struct fi_ops cpr_fabric_fi_ops = CPR_FID_OPS(cpr_fabric_close, cpr_no_bind, cpr_no_control);

static struct fi_ops_fabric cpr_fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = cpr_domain_open,
	.passive_ep = cpr_pep_open,
	.eq_open = cpr_eq_open,
	.wait_open = cpr_waitset_open,
	.trywait = cpr_fabric_trywait,
	.domain2 = cpr_domain_open2,
};

/** Returns the fabric name of this provider that equals `name` (NULL: the first), or NULL. */
static const char *cpr_fabric_name(const char *name)
{
	static const char *const ours[] = { CPR_RC_NAME, CPR_UD_NAME, CPR_DGRAM_NAME };

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (!name || !strcmp(name, ours[i]))
			return ours[i];
	return NULL;
}

static void cpr_fabric_init(struct cpr_fabric *fabric, const struct fi_fabric_attr *attr,
			    const char *name)
{
	fabric->fid.ops = &cpr_fabric_ops;
	fabric->fid.api_version = attr->api_version;
	fabric->name = name;
	fabric->api_version = attr->api_version;
	util_list_init(&fabric->domains);
	util_list_init(&fabric->requests);
	pthread_mutex_init(&fabric->request_lock, NULL);
}

int cpr_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	struct cpr_fabric *fabric;
	const char *name = attr ? cpr_fabric_name(attr->name) : NULL;

	if (!name) {
		UTIL_INFO(FABRIC,
			  "fabric %s: offered " CPR_RC_NAME ", " CPR_UD_NAME ", " CPR_DGRAM_NAME
			  "\n",
			  attr ? attr->name : "(none)");
		return -FI_EINVAL;
	}
	cpr_fork_register();
	/* The first call of a program that uses this provider: before most have a second thread. */
	util_membarrier_prepare();
	fabric = cpr_fid_new(sizeof(*fabric), FI_CLASS_FABRIC, &cpr_fabric_fi_ops, context);
	if (!fabric)
		return -FI_ENOMEM;
	cpr_fabric_init(fabric, attr, name);
	pthread_mutex_lock(&cpr_fabric_lock);
	util_list_push_back(&cpr_fabric_list, &fabric->link);
	pthread_mutex_unlock(&cpr_fabric_lock);
	*out = &fabric->fid;
	return 0;
}

int cpr_fabric_cm(struct cpr_fabric *fabric, struct cm_node **cm)
{
	int ret = 0;

	pthread_mutex_lock(&fabric->request_lock);
	if (!fabric->cm)
		ret = cpr_engine_get_cm(&fabric->cm);
	*cm = fabric->cm;
	pthread_mutex_unlock(&fabric->request_lock);
	return ret;
}

bool cpr_fabric_is_ours(const struct fid_fabric *fid)
{
	return fid->ops == &cpr_fabric_ops;
}

void cpr_fabric_add(struct cpr_fabric *fabric, struct cpr_domain *domain)
{
	cpr_ref_get(&fabric->refs);
	pthread_mutex_lock(&cpr_fabric_lock);
	util_list_push_back(&fabric->domains, &domain->fabric_link);
	pthread_mutex_unlock(&cpr_fabric_lock);
}

void cpr_fabric_remove(struct cpr_fabric *fabric, struct cpr_domain *domain)
{
	pthread_mutex_lock(&cpr_fabric_lock);
	util_list_remove(&domain->fabric_link);
	pthread_mutex_unlock(&cpr_fabric_lock);
	cpr_ref_put(&fabric->refs);
}

/* Returns the first open fabric of that name. */
static struct cpr_fabric *cpr_fabric_find_locked(const char *name)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &cpr_fabric_list) {
		struct cpr_fabric *fabric = UTIL_CONTAINER_OF(it, struct cpr_fabric, link);

		if (!strcmp(fabric->name, name))
			return fabric;
	}
	return NULL;
}

/* Returns the first open domain of that name, or NULL. */
static struct fid_domain *cpr_fabric_domain_locked(struct cpr_fabric *fabric, const char *name)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &fabric->domains) {
		struct cpr_domain *domain = UTIL_CONTAINER_OF(it, struct cpr_domain, fabric_link);

		if (cpr_domain_has_name(domain, name))
			return &domain->fid;
	}
	return NULL;
}

void cpr_fabric_fill_opened(struct fi_info *info, const struct fi_info *hints)
{
	struct fid_fabric *asked = hints && hints->fabric_attr ? hints->fabric_attr->fabric : NULL;
	struct cpr_fabric *fabric;

	pthread_mutex_lock(&cpr_fabric_lock);
	fabric = asked ? cpr_fabric_of(asked) : cpr_fabric_find_locked(info->fabric_attr->name);
	if (fabric) {
		info->fabric_attr->fabric = &fabric->fid;
		info->domain_attr->domain =
			cpr_fabric_domain_locked(fabric, info->domain_attr->name);
	}
	pthread_mutex_unlock(&cpr_fabric_lock);
	if (hints && hints->domain_attr && hints->domain_attr->domain)
		info->domain_attr->domain = hints->domain_attr->domain;
}

static void cpr_fabric_each(void (*call)(struct cpr_domain *domain))
{
	struct util_list *f, *d, *ftmp, *dtmp;

	UTIL_LIST_FOREACH_SAFE (f, ftmp, &cpr_fabric_list)
		UTIL_LIST_FOREACH_SAFE (d, dtmp,
					&UTIL_CONTAINER_OF(f, struct cpr_fabric, link)->domains)
			call(UTIL_CONTAINER_OF(d, struct cpr_domain, fabric_link));
}

static void cpr_fabric_lock_changes(struct cpr_domain *domain)
{
	pthread_mutex_lock(&domain->changes);
}

static void cpr_fabric_unlock_changes(struct cpr_domain *domain)
{
	pthread_mutex_unlock(&domain->changes);
}

void cpr_fabric_lock_all(void)
{
	pthread_mutex_lock(&cpr_fabric_lock);
	cpr_fabric_each(cpr_fabric_lock_changes);
}

void cpr_fabric_unlock_all(void)
{
	cpr_fabric_each(cpr_fabric_unlock_changes);
	pthread_mutex_unlock(&cpr_fabric_lock);
}

static void cpr_fabric_forget_domain(struct cpr_domain *domain)
{
	util_list_remove(&domain->fabric_link);
}

void cpr_fabric_forget_all(void (*forget)(struct cpr_domain *domain))
{
	cpr_fabric_each(cpr_fabric_unlock_changes);
	cpr_fabric_each(forget);
	cpr_fabric_each(cpr_fabric_forget_domain);
	pthread_mutex_unlock(&cpr_fabric_lock);
}

void cpr_fabric_stop_all(void)
{
	struct util_list *f, *d, *ftmp, *dtmp;

	pthread_mutex_lock(&cpr_fabric_lock);
	UTIL_LIST_FOREACH_SAFE (f, ftmp, &cpr_fabric_list) {
		struct cpr_fabric *fabric = UTIL_CONTAINER_OF(f, struct cpr_fabric, link);

		UTIL_LIST_FOREACH_SAFE (d, dtmp, &fabric->domains)
			cpr_progress_stop(
				&UTIL_CONTAINER_OF(d, struct cpr_domain, fabric_link)->progress);
	}
	pthread_mutex_unlock(&cpr_fabric_lock);
	cpr_engine_halt_cm();
	stats_report_end();
}
