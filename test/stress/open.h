/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Helpers that open the domain of a stress test and the objects its threads use. A failure ends the
 * program.
 */
#ifndef STRESS_OPEN_H
#define STRESS_OPEN_H

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_prov.h>

#include "ofi/cpr_prov.h"
#include "support/check.h"

struct stress_place {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
};

/** Opens a domain on the loopback address. caps 0: all. */
static inline void stress_place_open(struct stress_place *p, enum fi_threading level, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr attr = { .type = FI_AV_TABLE };

	hints->caps = caps;
	hints->domain_attr->threading = level;
	CHECK(!fi_prov_ini()->getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints,
				      &p->info));
	fi_freeinfo(hints);
	CHECK(!fi_prov_ini()->fabric(p->info->fabric_attr, &p->fabric, NULL));
	CHECK(!fi_domain(p->fabric, p->info, &p->domain, NULL));
	CHECK(!fi_av_open(p->domain, &attr, &p->av, NULL));
}

static inline void stress_place_close(struct stress_place *p)
{
	CHECK(!fi_close(&p->av->fid));
	CHECK(!fi_close(&p->domain->fid));
	CHECK(!fi_close(&p->fabric->fid));
	fi_freeinfo(p->info);
}

static inline struct fid_cq *stress_cq_open(struct fid_domain *domain, enum fi_wait_obj wait_obj)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait_obj };
	struct fid_cq *cq;

	CHECK(!fi_cq_open(domain, &attr, &cq, NULL));
	return cq;
}

/** Returns an endpoint, bound and enabled. */
static inline struct fid_ep *stress_ep_open(const struct stress_place *p, struct fid_cq *tx,
					    struct fid_cq *rx)
{
	struct fid_ep *ep;

	CHECK(!fi_endpoint(p->domain, p->info, &ep, NULL));
	CHECK(!fi_ep_bind(ep, &p->av->fid, 0));
	CHECK(!fi_ep_bind(ep, &tx->fid, FI_TRANSMIT));
	CHECK(!fi_ep_bind(ep, &rx->fid, FI_RECV));
	CHECK(!fi_enable(ep));
	return ep;
}

/** Inserts the endpoint's own address into the vector. */
static inline fi_addr_t stress_av_insert(struct fid_av *av, struct fid_ep *ep)
{
	char name[64];
	size_t len = sizeof(name);
	fi_addr_t addr;

	CHECK(!fi_getname(&ep->fid, name, &len));
	CHECK(fi_av_insert(av, name, 1, &addr, 0, NULL) == 1);
	return addr;
}

#endif
