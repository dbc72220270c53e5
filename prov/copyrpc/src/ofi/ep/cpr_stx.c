/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared transmit contexts: see cpr_stx.h. */
#include "ofi/ep/cpr_stx.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/base/cpr_offer.h"
#include "util/bits.h"
#include "util/param.h"

static int cpr_stx_close(struct fid *fid)
{
	struct cpr_stx *stx = UTIL_CONTAINER_OF(fid, struct cpr_stx, fid.fid);

	if (cpr_ref_is_busy(&stx->refs))
		return -FI_EBUSY;
	cpr_ref_put(&stx->domain->refs);
	free(stx);
	return 0;
}

static struct fi_ops cpr_stx_fi_ops = CPR_FID_OPS(cpr_stx_close, cpr_no_bind, cpr_no_control);

static ssize_t cpr_stx_cancel(fid_t fid, void *context)
{
	return -FI_ENOENT; /* sends cannot be cancelled */
}

static struct fi_ops_ep cpr_stx_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = cpr_stx_cancel,
	.getopt = cpr_no_getopt,
	.setopt = cpr_no_setopt,
	.tx_ctx = cpr_no_tx_ctx,
	.rx_ctx = cpr_no_rx_ctx,
	.rx_size_left = cpr_no_size_left,
	.tx_size_left = cpr_no_size_left,
};

int cpr_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **out,
		 void *context)
{
	struct cpr_stx *stx;

	if (cpr_domain_of(domain)->dgram)
		return -FI_ENOSYS;
	if (attr && ((attr->caps & ~CPR_CAPS) || (attr->op_flags & ~CPR_TX_OP_FLAGS) ||
		     attr->inject_size > util_params.eager_max))
		return -FI_EINVAL;
	stx = cpr_fid_new(sizeof(*stx), FI_CLASS_STX_CTX, &cpr_stx_fi_ops, context);
	if (!stx)
		return -FI_ENOMEM;
	stx->fid.ops = &cpr_stx_ops;
	stx->domain = cpr_domain_of(domain);
	cpr_ref_get(&stx->domain->refs);
	*out = &stx->fid;
	return 0;
}
