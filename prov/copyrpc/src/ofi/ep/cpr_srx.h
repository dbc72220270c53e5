/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive contexts, fi_srx_context: a cpr_ep over a core_srx that only receives. Bound and
 * released by cpr_ep.
 *
 * Receives, cancellation and options are those of endpoints; the context is enabled when opened and
 * has no address. Endpoints bound to it refuse receives of their own.
 *
 * Tested by test/unit/ofi/ep/test_cpr_srx.c against fi_endpoint(3).
 */
#ifndef OFI_EP_CPR_SRX_H
#define OFI_EP_CPR_SRX_H

#include <rdma/fi_endpoint.h>

struct cpr_ep;

int cpr_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		 void *context);

/** Implements fi_ep_bind of `ep` to the context. Returns 0, -FI_EDOMAIN or -FI_EINVAL. */
int cpr_srx_bind(struct cpr_ep *ep, struct fid *srx);
/**
 * Returns 0, or -FI_EINVAL if the endpoint's address vector is not that of the others. Called by
 * fi_enable; cpr_srx_join follows, locked, once the endpoint is open.
 */
int cpr_srx_check(const struct cpr_ep *ep);
void cpr_srx_join(struct cpr_ep *ep);
/** Releases the context of a closed endpoint. */
void cpr_srx_unbind(struct cpr_ep *ep);

#endif
