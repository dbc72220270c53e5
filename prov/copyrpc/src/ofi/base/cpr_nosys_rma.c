/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Refusals of remote memory access: see cpr_nosys.h. No function here reads its arguments. */
#include "ofi/base/cpr_nosys.h"

#include <rdma/fi_errno.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define CPR_REFUSE_RMA(prefix, err)                                                                \
	static ssize_t prefix##_read(struct fid_ep *ep, void *buf, size_t len, void *desc,         \
				     fi_addr_t src_addr, uint64_t addr, uint64_t key,              \
				     void *context)                                                \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_readv(struct fid_ep *ep, const struct iovec *iov, void **desc,     \
				      size_t count, fi_addr_t src_addr, uint64_t addr,             \
				      uint64_t key, void *context)                                 \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg,           \
					uint64_t flags)                                            \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_write(struct fid_ep *ep, const void *buf, size_t len, void *desc,  \
				      fi_addr_t dest_addr, uint64_t addr, uint64_t key,            \
				      void *context)                                               \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_writev(struct fid_ep *ep, const struct iovec *iov, void **desc,    \
				       size_t count, fi_addr_t dest_addr, uint64_t addr,           \
				       uint64_t key, void *context)                                \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,          \
					 uint64_t flags)                                           \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_inject(struct fid_ep *ep, const void *buf, size_t len,             \
				       fi_addr_t dest_addr, uint64_t addr, uint64_t key)           \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_writedata(struct fid_ep *ep, const void *buf, size_t len,          \
					  void *desc, uint64_t data, fi_addr_t dest_addr,          \
					  uint64_t addr, uint64_t key, void *context)              \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_injectdata(struct fid_ep *ep, const void *buf, size_t len,         \
					   uint64_t data, fi_addr_t dest_addr, uint64_t addr,      \
					   uint64_t key)                                           \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	struct fi_ops_rma prefix##_ops = {                                                         \
		.size = sizeof(struct fi_ops_rma),                                                 \
		.read = prefix##_read,                                                             \
		.readv = prefix##_readv,                                                           \
		.readmsg = prefix##_readmsg,                                                       \
		.write = prefix##_write,                                                           \
		.writev = prefix##_writev,                                                         \
		.writemsg = prefix##_writemsg,                                                     \
		.inject = prefix##_inject,                                                         \
		.writedata = prefix##_writedata,                                                   \
		.injectdata = prefix##_injectdata,                                                 \
	}

CPR_REFUSE_RMA(cpr_no_rma, -FI_ENOSYS);
CPR_REFUSE_RMA(cpr_early_rma, -FI_EOPBADSTATE);
