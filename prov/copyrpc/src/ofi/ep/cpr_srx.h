/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is a shared receive context to libfabric?
 *
 * An endpoint that only receives: struct cpr_ep over a core_srx. Receives, cancellation and
 * options of it are those of endpoints; it is never enabled and has no address. Endpoints that are
 * bound to it refuse receives of their own.
 *
 * Shown by test/unit/ofi/ep/test_cpr_srx.c, against fi_endpoint(3).
 */
#ifndef CPR_SRX_H
#define CPR_SRX_H

#include <rdma/fi_endpoint.h>

struct cpr_ep;

int cpr_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		 void *context);

/** fi_ep_bind of `ep` to the context. 0 or -FI_EINVAL. */
int cpr_srx_bind(struct cpr_ep *ep, struct fid *srx);
/** At fi_enable, locked, the endpoint is open: 0 or -FI_EINVAL (its AV is not the others'). */
int cpr_srx_check(const struct cpr_ep *ep);
void cpr_srx_join(struct cpr_ep *ep);
/** The endpoint is closed. */
void cpr_srx_unbind(struct cpr_ep *ep);

#endif
