/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What stress tests open in one domain that all of their threads share. Whatever fails ends the program. */
#ifndef STRESS_OPEN_H
#define STRESS_OPEN_H

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "support/check.h"

static inline struct fid_cq *stress_cq_open(struct fid_domain *domain, enum fi_wait_obj wait_obj)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait_obj };
	struct fid_cq *cq;

	CHECK(!fi_cq_open(domain, &attr, &cq, NULL));
	return cq;
}

/** Bound, and enabled. */
static inline struct fid_ep *stress_ep_open(struct fid_domain *domain, struct fi_info *info,
					    struct fid_av *av, struct fid_cq *tx, struct fid_cq *rx)
{
	struct fid_ep *ep;

	CHECK(!fi_endpoint(domain, info, &ep, NULL));
	CHECK(!fi_ep_bind(ep, &av->fid, 0));
	CHECK(!fi_ep_bind(ep, &tx->fid, FI_TRANSMIT));
	CHECK(!fi_ep_bind(ep, &rx->fid, FI_RECV));
	CHECK(!fi_enable(ep));
	return ep;
}

/** The endpoint's own address, in the vector. */
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
