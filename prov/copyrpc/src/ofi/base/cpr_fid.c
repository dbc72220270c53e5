/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Objects and refusals: see cpr_fid.h. */
#include "ofi/base/cpr_fid.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

void *cpr_fid_new(size_t size, size_t fclass, struct fi_ops *ops, void *context)
{
	struct fid *fid = calloc(1, size);

	if (!fid)
		return NULL;
	*fid = (struct fid){ .fclass = fclass, .context = context, .ops = ops };
	return fid;
}

int cpr_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

int cpr_no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int cpr_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return -FI_ENOSYS;
}

int cpr_no_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	return -FI_ENOPROTOOPT;
}

int cpr_no_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	return -FI_ENOPROTOOPT;
}

int cpr_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		  void *context)
{
	return -FI_ENOSYS;
}

int cpr_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		  void *context)
{
	return -FI_ENOSYS;
}

ssize_t cpr_no_size_left(struct fid_ep *ep)
{
	return -FI_ENOSYS;
}

int cpr_no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return -FI_ENOSYS;
}

int cpr_no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

int cpr_no_listen(struct fid_pep *pep)
{
	return -FI_ENOSYS;
}

int cpr_no_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

int cpr_no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

int cpr_no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return -FI_ENOSYS;
}
