/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Refusals: see cpr_nosys.h. */
#include "ofi/base/cpr_nosys.h"

#include <rdma/fi_errno.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

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
