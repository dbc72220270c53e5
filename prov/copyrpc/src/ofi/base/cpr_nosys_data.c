/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Refusals of messages and collectives: see cpr_nosys.h. No function here reads its arguments. */
#include "ofi/base/cpr_nosys.h"

#include <rdma/fi_errno.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Collectives */
static ssize_t cpr_no_collective_barrier(struct fid_ep *ep, fi_addr_t coll_addr, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t cpr_no_collective_broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc,
					   fi_addr_t coll_addr, fi_addr_t root_addr,
					   enum fi_datatype datatype, uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t cpr_no_collective_alltoall(struct fid_ep *ep, const void *buf, size_t count,
					  void *desc, void *result, void *result_desc,
					  fi_addr_t coll_addr, enum fi_datatype datatype,
					  uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t cpr_no_collective_allreduce(struct fid_ep *ep, const void *buf, size_t count,
					   void *desc, void *result, void *result_desc,
					   fi_addr_t coll_addr, enum fi_datatype datatype,
					   enum fi_op op, uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t cpr_no_collective_allgather(struct fid_ep *ep, const void *buf, size_t count,
					   void *desc, void *result, void *result_desc,
					   fi_addr_t coll_addr, enum fi_datatype datatype,
					   uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t cpr_no_collective_reduce_scatter(struct fid_ep *ep, const void *buf, size_t count,
						void *desc, void *result, void *result_desc,
						fi_addr_t coll_addr, enum fi_datatype datatype,
						enum fi_op op, uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t cpr_no_collective_reduce(struct fid_ep *ep, const void *buf, size_t count,
					void *desc, void *result, void *result_desc,
					fi_addr_t coll_addr, fi_addr_t root_addr,
					enum fi_datatype datatype, enum fi_op op, uint64_t flags,
					void *context)
{
	return -FI_ENOSYS;
}

static ssize_t cpr_no_collective_scatter(struct fid_ep *ep, const void *buf, size_t count,
					 void *desc, void *result, void *result_desc,
					 fi_addr_t coll_addr, fi_addr_t root_addr,
					 enum fi_datatype datatype, uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t cpr_no_collective_gather(struct fid_ep *ep, const void *buf, size_t count,
					void *desc, void *result, void *result_desc,
					fi_addr_t coll_addr, fi_addr_t root_addr,
					enum fi_datatype datatype, uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t cpr_no_collective_msg(struct fid_ep *ep, const struct fi_msg_collective *msg,
				     struct fi_ioc *resultv, void **result_desc,
				     size_t result_count, uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t cpr_no_collective_barrier2(struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags,
					  void *context)
{
	return -FI_ENOSYS;
}

struct fi_ops_collective cpr_no_collective_ops = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = cpr_no_collective_barrier,
	.broadcast = cpr_no_collective_broadcast,
	.alltoall = cpr_no_collective_alltoall,
	.allreduce = cpr_no_collective_allreduce,
	.allgather = cpr_no_collective_allgather,
	.reduce_scatter = cpr_no_collective_reduce_scatter,
	.reduce = cpr_no_collective_reduce,
	.scatter = cpr_no_collective_scatter,
	.gather = cpr_no_collective_gather,
	.msg = cpr_no_collective_msg,
	.barrier2 = cpr_no_collective_barrier2,
};

/* Defines a table for messages in which every entry returns `err`. */
#define CPR_REFUSE_MSG(prefix, err)                                                                \
	static ssize_t prefix##_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,         \
				     fi_addr_t src_addr, void *context)                            \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc,     \
				      size_t count, fi_addr_t src_addr, void *context)             \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,               \
					uint64_t flags)                                            \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,   \
				     fi_addr_t dest_addr, void *context)                           \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc,     \
				      size_t count, fi_addr_t dest_addr, void *context)            \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,               \
					uint64_t flags)                                            \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_inject(struct fid_ep *ep, const void *buf, size_t len,             \
				       fi_addr_t dest_addr)                                        \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_senddata(struct fid_ep *ep, const void *buf, size_t len,           \
					 void *desc, uint64_t data, fi_addr_t dest_addr,           \
					 void *context)                                            \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_injectdata(struct fid_ep *ep, const void *buf, size_t len,         \
					   uint64_t data, fi_addr_t dest_addr)                     \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	struct fi_ops_msg prefix##_ops = {                                                         \
		.size = sizeof(struct fi_ops_msg),                                                 \
		.recv = prefix##_recv,                                                             \
		.recvv = prefix##_recvv,                                                           \
		.recvmsg = prefix##_recvmsg,                                                       \
		.send = prefix##_send,                                                             \
		.sendv = prefix##_sendv,                                                           \
		.sendmsg = prefix##_sendmsg,                                                       \
		.inject = prefix##_inject,                                                         \
		.senddata = prefix##_senddata,                                                     \
		.injectdata = prefix##_injectdata,                                                 \
	}

CPR_REFUSE_MSG(cpr_no_msg, -FI_ENOSYS);
CPR_REFUSE_MSG(cpr_early_msg, -FI_EOPBADSTATE);

/* Defines a table for tagged messages in which every entry returns `err`. */
#define CPR_REFUSE_TAGGED(prefix, err)                                                             \
	static ssize_t prefix##_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,         \
				     fi_addr_t src_addr, uint64_t tag, uint64_t ignore,            \
				     void *context)                                                \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc,     \
				      size_t count, fi_addr_t src_addr, uint64_t tag,              \
				      uint64_t ignore, void *context)                              \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,        \
					uint64_t flags)                                            \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,   \
				     fi_addr_t dest_addr, uint64_t tag, void *context)             \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc,     \
				      size_t count, fi_addr_t dest_addr, uint64_t tag,             \
				      void *context)                                               \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,        \
					uint64_t flags)                                            \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_inject(struct fid_ep *ep, const void *buf, size_t len,             \
				       fi_addr_t dest_addr, uint64_t tag)                          \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_senddata(struct fid_ep *ep, const void *buf, size_t len,           \
					 void *desc, uint64_t data, fi_addr_t dest_addr,           \
					 uint64_t tag, void *context)                              \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	static ssize_t prefix##_injectdata(struct fid_ep *ep, const void *buf, size_t len,         \
					   uint64_t data, fi_addr_t dest_addr, uint64_t tag)       \
	{                                                                                          \
		return err;                                                                        \
	}                                                                                          \
	struct fi_ops_tagged prefix##_ops = {                                                      \
		.size = sizeof(struct fi_ops_tagged),                                              \
		.recv = prefix##_recv,                                                             \
		.recvv = prefix##_recvv,                                                           \
		.recvmsg = prefix##_recvmsg,                                                       \
		.send = prefix##_send,                                                             \
		.sendv = prefix##_sendv,                                                           \
		.sendmsg = prefix##_sendmsg,                                                       \
		.inject = prefix##_inject,                                                         \
		.senddata = prefix##_senddata,                                                     \
		.injectdata = prefix##_injectdata,                                                 \
	}

CPR_REFUSE_TAGGED(cpr_no_tagged, -FI_ENOSYS);
CPR_REFUSE_TAGGED(cpr_early_tagged, -FI_EOPBADSTATE);
