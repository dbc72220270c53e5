/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entries of op tables for calls that are not offered: they return -FI_ENOSYS. Used by all objects
 * of ofi. Entries for which libfabric's inline functions check (tostr, ops_set) stay NULL,
 * as do those that cannot be called with the object's type.
 */
#ifndef OFI_BASE_CPR_NOSYS_H
#define OFI_BASE_CPR_NOSYS_H

#include <rdma/fabric.h>

int cpr_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int cpr_no_control(struct fid *fid, int command, void *arg);
int cpr_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/* Entries of struct fi_ops_ep: return -FI_ENOPROTOOPT. */
int cpr_no_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen);
int cpr_no_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen);

#endif
