/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared transmit contexts, fi_stx_context. Opened by fi_stx_context, bound by cpr_ep_bind.
 *
 * The object only counts its endpoints and cannot be closed before them. Endpoints of a domain
 * share its engine anyway, and a send takes no resource that could be shared further.
 *
 * Tested by test/unit/ofi/ep/test_cpr_srx.c against fi_endpoint(3).
 */
#ifndef OFI_EP_CPR_STX_H
#define OFI_EP_CPR_STX_H

#include <rdma/fi_endpoint.h>

#include "ofi/base/cpr_ref.h"

struct cpr_domain;

struct cpr_stx {
	struct fid_stx fid;
	struct cpr_domain *domain;
	struct cpr_ref refs; /* endpoints bound to it */
};

int cpr_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		 void *context);

#endif
