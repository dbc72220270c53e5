/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Part of an object that libfabric defines, struct fid: its start, and the entries of op tables for
 * calls that are not offered. Used by all objects of ofi.
 *
 * Refused calls return -FI_ENOSYS. Only entries for which libfabric's inline functions check
 * (tostr, ops_set) stay NULL: a call with an object of another type is refused, too.
 */
#ifndef OFI_BASE_CPR_FID_H
#define OFI_BASE_CPR_FID_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

/**
 * Allocates an object of `size` bytes, zeros but for the struct fid that it begins with. Returns
 * NULL without memory. Freed by free.
 */
void *cpr_fid_new(size_t size, size_t fclass, struct fi_ops *ops, void *context);

/** Initialiser of an object's struct fi_ops, for an object that extends no operations. */
#define CPR_FID_OPS(close_op, bind_op, control_op)                                                 \
	{                                                                                          \
		.size = sizeof(struct fi_ops), .close = (close_op), .bind = (bind_op),             \
		.control = (control_op), .ops_open = cpr_no_ops_open,                              \
	}

int cpr_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int cpr_no_control(struct fid *fid, int command, void *arg);
int cpr_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/* Entries of struct fi_ops_ep. Options: return -FI_ENOPROTOOPT. */
int cpr_no_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen);
int cpr_no_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen);
int cpr_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		  void *context);
int cpr_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		  void *context);
ssize_t cpr_no_size_left(struct fid_ep *ep);

/* Entries of struct fi_ops_cm. */
int cpr_no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);
int cpr_no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
int cpr_no_listen(struct fid_pep *pep);
int cpr_no_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int cpr_no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen);
int cpr_no_shutdown(struct fid_ep *ep, uint64_t flags);

#endif
