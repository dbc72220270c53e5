/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote procedure calls over copyrpc endpoints: an extension of libfabric. Included by
 * applications. Manual page: fi_copyrpc_rpc(3).
 *
 *	ret = fi_copyrpc_open(&ep->fid, &ops);		-FI_ENOSYS from any other provider
 *
 *	caller						callee
 *	fi_copyrpc_call(ops, ep, request, ...)
 *							n = fi_copyrpc_recv(ops, ep, reqs, 64, 0)
 *							fi_copyrpc_reply(ops, ep, &reqs[i], ...)
 *	fi_cq_read(cq, ...): FI_COPYRPC_CALL
 *
 * Space for the response is reserved when a call is accepted, so a reply never fails for lack of
 * space. Every accepted call ends with exactly one completion, successful or not, in the queue
 * that is bound with FI_TRANSMIT.
 *
 * All functions return 0 or a count on success, or -FI_E*. After -FI_EAGAIN the caller reads a
 * completion queue or takes requests, and tries again. Functions may be called by the threads that
 * the threading level of the domain permits for transfers.
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

/** Name of the operations for fi_open_ops, on an endpoint or a domain. */
#define FI_COPYRPC_RPC_OPS_1 "copyrpc_rpc_ops_1"

/** Completion flag: a call has ended. `len` of the completion is the length of the response. */
#define FI_COPYRPC_CALL (1ULL << 60)

/**
 * Flag of a call: the response stays in the receive buffer of the provider, and `resp` is NULL.
 * The completion has this flag too, `buf` points to the response, and `data` is the argument of
 * fi_copyrpc_release_response. Requires a completion queue of FI_CQ_FORMAT_DATA or
 * FI_CQ_FORMAT_TAGGED.
 */
#define FI_COPYRPC_RETAIN (1ULL << 61)

/** Request that fi_copyrpc_recv returned. May be copied. */
struct fi_copyrpc_request {
	const void *data;   /* request, owned by the provider, valid until reply or release */
	size_t len;         /* bytes of data */
	size_t resp_max;    /* maximum response size */
	fi_addr_t src_addr; /* caller; FI_ADDR_NOTAVAIL if not in the address vector */
	uint64_t handle[2]; /* private to the provider */
};

/** Arguments of fi_copyrpc_callmsg. */
struct fi_copyrpc_msg {
	const struct iovec *msg_iov; /* request; may be reused when the function returns */
	size_t iov_count;            /* at most 4 */
	void *resp;                  /* response buffer; must stay valid until the completion */
	size_t resp_len;             /* maximum response size */
	fi_addr_t addr;              /* callee */
	void *context;               /* op_context of the completion */
};

/** Limits of calls to one peer. */
struct fi_copyrpc_limits {
	size_t max_request;  /* bytes of a request */
	size_t max_response; /* largest maximum response size */
};

/** Causes of -FI_EAGAIN from a call. Later versions may append causes. */
enum fi_copyrpc_shortage {
	FI_COPYRPC_SHORT_NONE,       /* none: the call is accepted */
	FI_COPYRPC_SHORT_CONNECTION, /* too many calls wait for connections */
	FI_COPYRPC_SHORT_CREDIT,     /* credit for the response */
	FI_COPYRPC_SHORT_SPACE,      /* space in the receive buffer of the callee */
	FI_COPYRPC_SHORT_QUEUE,      /* earlier transfers to the callee wait to be sent */
	FI_COPYRPC_SHORT_MEMORY,     /* memory */
	FI_COPYRPC_SHORT_CNT,
};

/**
 * Operations of the extension. Constant, owned by the provider, valid until the domain is closed.
 * Later versions only append members: see FI_COPYRPC_OPS_HAS.
 */
struct fi_copyrpc_ops {
	size_t size; /* bytes of the table in the provider that is loaded */
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
	int (*shortage)(struct fid_ep *ep, fi_addr_t dest_addr, size_t len, size_t resp_len);
	int (*refused)(struct fid_ep *ep, uint64_t *counts, size_t count);
};

/** True if the provider that is loaded has this member. All members up to room are present. */
#define FI_COPYRPC_OPS_HAS(ops, member)                                                            \
	((ops)->size >= offsetof(struct fi_copyrpc_ops, member) + sizeof((ops)->member))

/**
 * Returns the operations in *ops, from an endpoint (for it and its aliases) or a domain (for all
 * its endpoints). Returns 0, or -FI_ENOSYS if the provider has none.
 */
static inline int fi_copyrpc_open(struct fid *fid, struct fi_copyrpc_ops **ops)
{
	void *table = NULL;
	int ret = fi_open_ops(fid, FI_COPYRPC_RPC_OPS_1, 0, &table, NULL);

	if (!ret)
		*ops = (struct fi_copyrpc_ops *)table;
	return ret;
}

/**
 * Calls `dest_addr`. The request may be reused on return; `resp` must stay valid until the
 * completion. flags: FI_MORE if more calls follow at once, FI_COPYRPC_RETAIN, FI_COMPLETION. Calls
 * to a peer that is not connected yet are copied and sent later.
 *
 * Returns 0, -FI_EAGAIN without credit or space, -FI_EMSGSIZE beyond fi_copyrpc_query, or the
 * error that prevents a connection. On error nothing is sent, and no completion follows.
 */
static inline ssize_t fi_copyrpc_call(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				      const void *buf, size_t len, void *resp, size_t resp_len,
				      fi_addr_t dest_addr, void *context, uint64_t flags)
{
	return ops->call(ep, buf, len, resp, resp_len, dest_addr, context, flags);
}

/** Calls as fi_copyrpc_call does, with a request in several pieces. */
static inline ssize_t fi_copyrpc_callmsg(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
					 const struct fi_copyrpc_msg *msg, uint64_t flags)
{
	return ops->callmsg(ep, msg, flags);
}

/**
 * Stores up to `count` requests in `reqs`, oldest first, and makes progress. flags: 0. Each request
 * must be replied to once, in any order, now or later. Returns their number or -FI_EAGAIN.
 */
static inline ssize_t fi_copyrpc_recv(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				      struct fi_copyrpc_request *reqs, size_t count, uint64_t flags)
{
	return ops->recv(ep, reqs, count, flags);
}

/**
 * Replies to a request and frees it. `buf` may be reused on return and may be the data of the
 * request. flags: FI_MORE if more replies follow at once.
 *
 * Returns 0; -FI_EMSGSIZE if `len` exceeds resp_max (nothing is sent, the request stays);
 * -FI_ECONNRESET if the caller has gone (the request is freed); or -FI_EINVAL if it was replied
 * to before.
 */
static inline ssize_t fi_copyrpc_reply(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				       const struct fi_copyrpc_request *req, const void *buf,
				       size_t len, uint64_t flags)
{
	return ops->reply(ep, req, buf, len, flags);
}

/** Replies as fi_copyrpc_reply does, with a response in several pieces. */
static inline ssize_t fi_copyrpc_replyv(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
					const struct fi_copyrpc_request *req,
					const struct iovec *iov, size_t count, uint64_t flags)
{
	return ops->replyv(ep, req, iov, count, flags);
}

/**
 * Releases the data of a request, which still has to be replied to. Returns 0 or -FI_EINVAL.
 */
static inline int fi_copyrpc_release(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				     const struct fi_copyrpc_request *req)
{
	return ops->release(ep, req);
}

/**
 * Releases a retained response, named by `data` of its completion. Returns 0 or -FI_EINVAL.
 */
static inline int fi_copyrpc_release_response(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
					      uint64_t data)
{
	return ops->release_response(ep, data);
}

/**
 * Sends calls and responses to `dest_addr`, or to all peers with FI_ADDR_UNSPEC, that FI_MORE
 * deferred. Returns 0 or -FI_EINVAL.
 */
static inline int fi_copyrpc_flush(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				   fi_addr_t dest_addr)
{
	return ops->flush(ep, dest_addr);
}

/**
 * Stores the limits of calls to `dest_addr`. Returns 0, -FI_EAGAIN while the connection is being
 * made (the first query starts it), or the error that prevents it.
 */
static inline int fi_copyrpc_query(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				   fi_addr_t dest_addr, struct fi_copyrpc_limits *limits)
{
	return ops->query(ep, dest_addr, limits);
}

/**
 * Returns a lower bound of the number of calls with `len` bytes and a maximum response size of
 * `resp_len` that are accepted now, one after the other, or the errors of fi_copyrpc_query and
 * -FI_EMSGSIZE.
 */
static inline ssize_t fi_copyrpc_room(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				      fi_addr_t dest_addr, size_t len, size_t resp_len)
{
	return ops->room(ep, dest_addr, len, resp_len);
}

/**
 * Returns the enum fi_copyrpc_shortage because of which a call with `len` bytes and a maximum
 * response size of `resp_len` would return -FI_EAGAIN now, -FI_EINVAL, -FI_EMSGSIZE, or -FI_ENOSYS
 * if the provider is too old. Does not start to connect.
 */
static inline int fi_copyrpc_shortage(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				      fi_addr_t dest_addr, size_t len, size_t resp_len)
{
	if (!FI_COPYRPC_OPS_HAS(ops, shortage))
		return -FI_ENOSYS;
	return ops->shortage(ep, dest_addr, len, resp_len);
}

/**
 * Stores how many calls of the endpoint returned -FI_EAGAIN: counts[cause] for each enum
 * fi_copyrpc_shortage below `count`, which is usually FI_COPYRPC_SHORT_CNT. Returns 0, or
 * -FI_ENOSYS if the provider is too old.
 */
static inline int fi_copyrpc_refused(const struct fi_copyrpc_ops *ops, struct fid_ep *ep,
				     uint64_t *counts, size_t count)
{
	return FI_COPYRPC_OPS_HAS(ops, refused) ? ops->refused(ep, counts, count) : -FI_ENOSYS;
}

#ifdef __cplusplus
}
#endif

#endif
