/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Refusals of atomic operations: see cpr_nosys.h. No function here reads its arguments. */
#include "ofi/base/cpr_nosys.h"

#include <rdma/fi_errno.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define CPR_REFUSE_ATOMIC(prefix, err)                                                             \
	static ssize_t prefix##_write(struct fid_ep *ep, const void *buf, size_t count,            \
				      void *desc, fi_addr_t dest_addr, uint64_t addr,              \
				      uint64_t key, enum fi_datatype datatype, enum fi_op op,      \
				      void *context)                                               \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	static ssize_t prefix##_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,   \
				       size_t count, fi_addr_t dest_addr, uint64_t addr,           \
				       uint64_t key, enum fi_datatype datatype, enum fi_op op,     \
				       void *context)                                              \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	static ssize_t prefix##_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,       \
					 uint64_t flags)                                           \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	static ssize_t prefix##_inject(struct fid_ep *ep, const void *buf, size_t count,           \
				       fi_addr_t dest_addr, uint64_t addr, uint64_t key,           \
				       enum fi_datatype datatype, enum fi_op op)                   \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	static ssize_t prefix##_readwrite(struct fid_ep *ep, const void *buf, size_t count,        \
					  void *desc, void *result, void *result_desc,             \
					  fi_addr_t dest_addr, uint64_t addr, uint64_t key,        \
					  enum fi_datatype datatype, enum fi_op op, void *context) \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	static ssize_t prefix##_readwritev(                                                        \
		struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,            \
		struct fi_ioc *resultv, void **result_desc, size_t result_count,                   \
		fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype,       \
		enum fi_op op, void *context)                                                      \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	static ssize_t prefix##_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,   \
					     struct fi_ioc *resultv, void **result_desc,           \
					     size_t result_count, uint64_t flags)                  \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	static ssize_t prefix##_compwrite(struct fid_ep *ep, const void *buf, size_t count,        \
					  void *desc, const void *compare, void *compare_desc,     \
					  void *result, void *result_desc, fi_addr_t dest_addr,    \
					  uint64_t addr, uint64_t key, enum fi_datatype datatype,  \
					  enum fi_op op, void *context)                            \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	static ssize_t prefix##_compwritev(                                                        \
		struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,            \
		const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,          \
		struct fi_ioc *resultv, void **result_desc, size_t result_count,                   \
		fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype,       \
		enum fi_op op, void *context)                                                      \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	static ssize_t prefix##_compwritemsg(                                                      \
		struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_ioc *comparev, \
		void **compare_desc, size_t compare_count, struct fi_ioc *resultv,                 \
		void **result_desc, size_t result_count, uint64_t flags)                           \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	static int prefix##_writevalid(struct fid_ep *ep, enum fi_datatype datatype,               \
				       enum fi_op op, size_t *count)                               \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	static int prefix##_readwritevalid(struct fid_ep *ep, enum fi_datatype datatype,           \
					   enum fi_op op, size_t *count)                           \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	static int prefix##_compwritevalid(struct fid_ep *ep, enum fi_datatype datatype,           \
					   enum fi_op op, size_t *count)                           \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
                                                                                                   \
	struct fi_ops_atomic prefix##_ops = {                                                      \
		.size = sizeof(struct fi_ops_atomic),                                              \
		.write = prefix##_write,                                                           \
		.writev = prefix##_writev,                                                         \
		.writemsg = prefix##_writemsg,                                                     \
		.inject = prefix##_inject,                                                         \
		.readwrite = prefix##_readwrite,                                                   \
		.readwritev = prefix##_readwritev,                                                 \
		.readwritemsg = prefix##_readwritemsg,                                             \
		.compwrite = prefix##_compwrite,                                                   \
		.compwritev = prefix##_compwritev,                                                 \
		.compwritemsg = prefix##_compwritemsg,                                             \
		.writevalid = prefix##_writevalid,                                                 \
		.readwritevalid = prefix##_readwritevalid,                                         \
		.compwritevalid = prefix##_compwritevalid,                                         \
	}

CPR_REFUSE_ATOMIC(cpr_no_atomic, -FI_ENOSYS);
CPR_REFUSE_ATOMIC(cpr_early_atomic, -FI_EOPBADSTATE);
