/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domains: fi_domain over one or more progress domains. Opened by fi_domain.
 *
 * A domain adds to its progress domains (engine, lock, budget) what libfabric defines: how it was
 * opened, its references, its event queue, its memory regions, its progress thread. Locks are taken
 * here, at the libfabric border, by every call that reaches core/, and by nothing below. Under
 * FI_THREAD_DOMAIN without FI_PROGRESS_AUTO and without an event queue there is one progress
 * domain, and its lock is not taken.
 */
#ifndef OFI_BASE_CPR_DOMAIN_H
#define OFI_BASE_CPR_DOMAIN_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/core_dom.h"
#include "ofi/base/cpr_engine.h"
#include "ofi/base/cpr_eq_user.h"
#include "ofi/base/cpr_pdom.h"
#include "ofi/base/cpr_progress.h"
#include "ofi/base/cpr_ref.h"
#include "util/list.h"

struct cpr_fabric;
struct dgram_over;

struct cpr_domain {
	struct fid_domain fid;
	struct cpr_pdom main;    /* the first one */
	pthread_mutex_t changes; /* outermost lock: held while anything changes that pdoms share */
	bool splits;             /* more pdoms may be opened; under `changes` */
	unsigned pdom_cnt;       /* pdoms besides `main`; under `changes` */
	struct util_list eps; /* cpr_ep.domain_link: enabled ones, and aliases; under `changes` */
	struct cpr_fabric *fabric;
	struct util_list fabric_link; /* cpr_fabric.domains */
	struct cpr_ref refs;          /* objects opened in the domain */
	uint32_t api_version;
	enum cpr_kind kind;             /* of reliable endpoints */
	const struct dgram_over *dgram; /* device of datagram endpoints; else NULL */
	uint32_t addr_format; /* FI_SOCKADDR_IN or FI_SOCKADDR_IN6; with dgram: or FI_ADDR_IB_UD */
	enum fi_av_type av_type;
	bool prov_key;  /* FI_MR_BASIC, FI_MR_PROV_KEY: the provider chooses keys */
	bool fixed_mrs; /* memory of regions stays mapped: devices may access it */
	bool virt_addr; /* FI_MR_BASIC, FI_MR_VIRT_ADDR: peers address memory virtually */
	struct util_list closed_conns; /* cpr_ep.av_link: freed later, cpr_conn_defer_free */
	unsigned closed_conn_cnt;
	struct cpr_progress progress;
	struct cpr_eq_user eq_user;
	bool mr_events; /* bound to the event queue with FI_REG_MR */
	pid_t pid;      /* process that opened the domain; a forked child has a copy (cpr_fork.h) */
};

static inline struct cpr_domain *cpr_domain_of(struct fid_domain *fid)
{
	return UTIL_CONTAINER_OF(fid, struct cpr_domain, fid);
}

int cpr_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		    void *context);
int cpr_domain_open2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		     uint64_t flags, void *context);
bool cpr_domain_is_ours(const struct fid_domain *fid);
/** Returns true if the domain has that name in fi_domain_attr. */
bool cpr_domain_has_name(const struct cpr_domain *domain, const char *name);
/**
 * Returns true, and logs, in a forked child of the process that opened the domain. Memory and
 * sockets that carry messages belong to the parent too: a child that received or sent anything
 * would do so in the parent's name.
 */
bool cpr_domain_is_inherited(const struct cpr_domain *domain);

/** Locks `main`, for objects that are always in it. */
static inline void cpr_domain_lock(struct cpr_domain *domain)
{
	cpr_pdom_lock(&domain->main);
}

static inline void cpr_domain_unlock(struct cpr_domain *domain)
{
	cpr_pdom_unlock(&domain->main);
}

static inline void cpr_domain_progress(struct cpr_domain *domain)
{
	cpr_pdom_count_read(&domain->main);
	cpr_pdom_progress(&domain->main);
}

#endif
