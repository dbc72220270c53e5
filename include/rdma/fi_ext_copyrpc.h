/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote procedure calls over copyrpc endpoints: an extension of libfabric. Manual: fi_copyrpc_rpc(3).
 *
 *	struct fi_copyrpc_ops *rpc;
 *	ret = fi_copyrpc_open(&ep->fid, &rpc);			any provider but ours: -FI_ENOSYS
 *
 *	caller							callee
 *	fi_copyrpc_call(rpc, ep, question, ..., answer, ...)
 *								n = fi_copyrpc_recv(rpc, ep, reqs, 64, 0)
 *								fi_copyrpc_reply(rpc, ep, &reqs[i], ...)
 *	fi_cq_read(cq, ...): FI_COPYRPC_CALL, the call's context
 *
 * The room for an answer is reserved when its call is accepted, so a reply never finds none. Every call that
 * was accepted (returned 0) ends with exactly one completion, good or bad, in the queue that is bound
 * with FI_TRANSMIT.
 *
 * All functions return 0 or a number, or -FI_E*; -FI_EAGAIN: read a completion queue of the domain
 * (or take requests), then try again. Threads: as the domain's threading level says of transfers.
 */
#ifndef FI_EXT_COPYRPC_H
#define FI_EXT_COPYRPC_H

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** For fi_open_ops on an endpoint or a domain. Later versions of the table only grow: see size. */
#define FI_COPYRPC_RPC_OPS_1 "copyrpc_rpc_ops_1"

/** In a completion's flags: a call has ended. `len` is the length of the answer. */
#define FI_COPYRPC_CALL (1ULL << 60)

/**
 * Flag of a call: the answer stays where it arrived; its completion has this flag too, `buf` is
 * the answer, and `data` is for fi_copyrpc_release_response. Wants a queue of format
 * FI_CQ_FORMAT_DATA or FI_CQ_FORMAT_TAGGED. The call's `resp` is NULL; -FI_EINVAL otherwise.
 */
#define FI_COPYRPC_RETAIN (1ULL << 61)

/** A request that was taken: a value, may be copied. */
struct fi_copyrpc_request {
	const void *data; /* in the ring, until reply or release; never written by us */
	size_t len;
	size_t resp_max;    /* bytes that the answer may have */
	fi_addr_t src_addr; /* FI_ADDR_NOTAVAIL: a caller that is not in the address vector */
	uint64_t handle[2]; /* the provider's */
};

/** A call in full, for fi_copyrpc_callmsg. */
struct fi_copyrpc_msg {
	const struct iovec *msg_iov; /* the request's bytes: free on return */
	size_t iov_count;
	void *resp;      /* where the answer goes; must stay until the completion */
	size_t resp_len; /* the allowance: bytes that the answer may have */
	fi_addr_t addr;
	void *context; /* of the completion */
};

/** What a channel to a peer can carry, for fi_copyrpc_query. */
struct fi_copyrpc_limits {
	size_t max_request;  /* bytes of a request */
	size_t max_response; /* bytes of an allowance */
};

struct fi_copyrpc_ops {
	size_t size; /* bytes of this table: what is beyond it is not offered */
	ssize_t (*call)(struct fid_ep *ep, const void *buf, size_t len, void *resp, size_t resp_len,
			fi_addr_t dest_addr, void *context, uint64_t flags);
	ssize_t (*callmsg)(struct fid_ep *ep, const struct fi_copyrpc_msg *msg, uint64_t flags);
	ssize_t (*recv)(struct fid_ep *ep, struct fi_copyrpc_request *reqs, size_t count,
			uint64_t flags);
	ssize_t (*reply)(struct fid_ep *ep, const struct fi_copyrpc_request *req, const void *buf,
			 size_t len, uint64_t flags);
	ssize_t (*replyv)(struct fid_ep *ep, const struct fi_copyrpc_request *req,
			  const struct iovec *iov, size_t count, uint64_t flags);
	int (*release)(struct fid_ep *ep, const struct fi_copyrpc_request *req);
	int (*release_response)(struct fid_ep *ep, uint64_t data);
	int (*flush)(struct fid_ep *ep, fi_addr_t dest_addr);
	int (*query)(struct fid_ep *ep, fi_addr_t dest_addr, struct fi_copyrpc_limits *limits);
	ssize_t (*room)(struct fid_ep *ep, fi_addr_t dest_addr, size_t len, size_t resp_len);
};

/** Is `member` in this table? All of those above are, in every table that was ever given out. */
#define FI_COPYRPC_OPS_HAS(ops, member)                                                            \
	((ops)->size >= offsetof(struct fi_copyrpc_ops, member) + sizeof((ops)->member))

/** The table, of an endpoint (for it and its aliases) or a domain (for all of its endpoints). */
static inline int fi_copyrpc_open(struct fid *fid, struct fi_copyrpc_ops **ops)
{
	void *table = NULL;
	int ret = fi_open_ops(fid, FI_COPYRPC_RPC_OPS_1, 0, &table, NULL);

	if (!ret)
		*ops = (struct fi_copyrpc_ops *)table;
	return ret;
}

/**
 * Calls `dest_addr` with `len` bytes, which are free on return; the answer goes to resp[0, resp_len).
 * flags: FI_MORE (more calls follow at once: this one need not leave by itself), FI_COPYRPC_RETAIN.
 * -FI_EAGAIN: no credit, or no room; -FI_EMSGSIZE: beyond what fi_copyrpc_query tells. While the
 * connection is being made, calls are kept and accepted.
 */
static inline ssize_t fi_copyrpc_call(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				      const void *buf, size_t len, void *resp, size_t resp_len,
				      fi_addr_t dest_addr, void *context, uint64_t flags)
{
	return ops->call(ep, buf, len, resp, resp_len, dest_addr, context, flags);
}

static inline ssize_t fi_copyrpc_callmsg(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
					 const struct fi_copyrpc_msg *msg, uint64_t flags)
{
	return ops->callmsg(ep, msg, flags);
}

/**
 * Takes up to `count` requests, oldest first, and makes progress. Their number, or -FI_EAGAIN.
 * Each must be answered, in any order, now or later; until then its bytes stay in the ring.
 */
static inline ssize_t fi_copyrpc_recv(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				      struct fi_copyrpc_request *reqs, size_t count, uint64_t flags)
{
	return ops->recv(ep, reqs, count, flags);
}

/**
 * Answers a request with `len` bytes, free on return (they may be the request's own); the request is
 * gone then. flags: FI_MORE. -FI_EMSGSIZE: longer than the allowance; nothing was sent, answer
 * again. -FI_ECONNRESET: the caller is gone, and so is the request.
 */
static inline ssize_t fi_copyrpc_reply(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				       const struct fi_copyrpc_request *req, const void *buf,
				       size_t len, uint64_t flags)
{
	return ops->reply(ep, req, buf, len, flags);
}

static inline ssize_t fi_copyrpc_replyv(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
					const struct fi_copyrpc_request *req,
					const struct iovec *iov, size_t count, uint64_t flags)
{
	return ops->replyv(ep, req, iov, count, flags);
}

/** Gives a request's bytes back before its answer, which is still owed. */
static inline int fi_copyrpc_release(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				     const struct fi_copyrpc_request *req)
{
	return ops->release(ep, req);
}

/** Gives back an answer that was lent: `data` of its completion. */
static inline int fi_copyrpc_release_response(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
					      uint64_t data)
{
	return ops->release_response(ep, data);
}

/** Calls and answers to `dest_addr` (FI_ADDR_UNSPEC: to all) leave now, whatever FI_MORE said. */
static inline int fi_copyrpc_flush(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				   fi_addr_t dest_addr)
{
	return ops->flush(ep, dest_addr);
}

/** How much a call to `dest_addr` can carry. -FI_EAGAIN: not connected yet, it has begun. */
static inline int fi_copyrpc_query(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				   fi_addr_t dest_addr, struct fi_copyrpc_limits *limits)
{
	return ops->query(ep, dest_addr, limits);
}

/**
 * How many calls of `len` bytes with an allowance of `resp_len` are sure to be accepted now, one
 * after the other, by room and by credit. -FI_EAGAIN: not connected yet, it has begun.
 */
static inline ssize_t fi_copyrpc_room(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				      fi_addr_t dest_addr, size_t len, size_t resp_len)
{
	return ops->room(ep, dest_addr, len, resp_len);
}

#ifdef __cplusplus
}
#endif

#endif
