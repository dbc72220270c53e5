/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote procedure calls of users (rdma/fi_ext_copyrpc.h). Called by ofi/xfer.
 *
 *   caller: core_rpc_call --room--> sent --response--> completion              (core_rpc_call.c)
 *               \--not connected, or about to be connected anew (core_failback.h)--> queued
 *                  with a copy of its bytes --connected--> sent
 *           -FI_EAGAIN without credit or room: nothing was posted. A cancelled call completes at
 *           once and stays open, without a user, until its response comes.
 *   callee: arrival --> intake, oldest first --core_rpc_pop_intake--> user
 *           --core_rpc_reply--> freed. The bytes of the request stay in the ring
 *           (core_rpc_serve.c). The credit of the callers bounds the number of requests.
 *   Memory that users refer to (requests, retained responses) outlives its channel: the channel is
 *   stopped, and closed when the last of it was released (core_peer.c).
 *
 * Tested by test/unit/core/rpc/test_core_rpc*.c.
 */
#ifndef CORE_RPC_CORE_RPC_H
#define CORE_RPC_CORE_RPC_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/core_chan.h"
#include "core/core_ep.h"
#include "core/core_op.h"
#include "util/bits.h"
#include "util/idmap.h"
#include "util/list.h"
#include "util/pool.h"
#include "wire/wire_op.h"

/** Largest maximum response size that fits in the operation word. */
#define CORE_RPC_RESP_MAX WIRE_RPC_RESP_MAX

/** Bytes of queued calls of an endpoint, which wait for connections. */
#define CORE_RPC_QUEUE_BYTES (4u << 20)

enum core_rpc_flag {
	CORE_RPC_MORE = 1 << 0, /* the next call or reply follows at once */
};

/**
 * In comp_flags: the response stays in the ring; its completion has buf and data
 * (FI_COPYRPC_RETAIN).
 */
#define CORE_RPC_RETAIN (1ull << 61)

/** Arguments of a call. */
struct core_rpc_request {
	const struct iovec *iov; /* bytes of the request: free on return */
	size_t iov_cnt;
	size_t len;
	void *resp; /* destination of the response; not with CORE_RPC_RETAIN */
	size_t resp_max;
	void *context;
	uint64_t comp_flags; /* of the completion; with CORE_RPC_RETAIN */
	unsigned flags;      /* enum core_rpc_flag */
};

/** Reference of a user to bytes in a ring: a request that arrived, or a retained response. */
struct core_rpc_handle {
	struct util_list link; /* core_rpc.intake */
	struct core_chan *chan;
	const uint8_t *data;
	core_retain_t retain;
	struct core_call_ref ref;
	uint32_t len;
	uint32_t resp_max; /* the caller's, of the operation word */
	uint32_t seq;      /* identifies this use of the record: odd; 0: free */
	bool has_bytes;    /* bytes are not released yet */
};

/** Call that has not ended, or that was cancelled before its response came. */
struct core_rpc_call {
	struct core_op op;
	void *context;
	void *resp;
	uint64_t comp_flags; /* of the completion; with CORE_RPC_RETAIN */
	uint32_t resp_max;
	bool cancelled; /* completion was written */
	bool plain;     /* the response only needs a copy and a completion */
	uint32_t len;   /* of copy */
	uint8_t *copy;  /* bytes of the request, while queued */
};

/** Hooks of core_module.h. */
int core_rpc_ep_open(struct core_ep *ep);
void core_rpc_ep_close(struct core_ep *ep);
void core_rpc_chan_down(struct core_ep *ep, struct core_chan *chan);

/**
 * Sends or queues a call. Returns 0, -FI_EAGAIN, -FI_EMSGSIZE, or the error of the connect. On
 * error nothing was posted.
 */
ssize_t core_rpc_call(struct core_ep *ep, fi_addr_t dest, const struct core_rpc_request *ask);
/** Cancels the oldest call with this context. Returns 0 or -FI_ENOENT. */
int core_rpc_cancel(struct core_ep *ep, void *context);
/** Releases a retained response. Returns 0 or -FI_EINVAL. */
int core_rpc_release_resp(struct core_ep *ep, uint64_t data);
/**
 * Returns the limits of the channel to `dest`: 0, -FI_EAGAIN if a handshake is in progress, or
 * -FI_E*.
 */
int core_rpc_limits(struct core_ep *ep, fi_addr_t dest, size_t *request, size_t *resp_max);
/**
 * Returns a lower bound of the calls of this size that are accepted now, or an error of
 * core_rpc_limits.
 */
ssize_t core_rpc_room(struct core_ep *ep, fi_addr_t dest, size_t len, size_t resp_max);
/**
 * Returns the cause, an enum core_shortage, because of which a call of this size would return
 * -FI_EAGAIN now, CORE_SHORT_NONE if it would not, -FI_EINVAL or -FI_EMSGSIZE. Starts nothing.
 */
int core_rpc_shortage(struct core_ep *ep, fi_addr_t dest, size_t len, size_t resp_max);
/** Sends all batches to `dest`, or to all peers with FI_ADDR_UNSPEC. Returns 0 or -FI_EINVAL. */
int core_rpc_flush(struct core_ep *ep, fi_addr_t dest);

/** Starts and stops the notification of threads that wait for requests. */
void core_rpc_listen(struct core_ep *ep);
void core_rpc_unlisten(struct core_ep *ep);
/**
 * Replies to a request. Returns 0 and frees the handle, -FI_ECONNRESET if the caller has gone
 * (freed too), -FI_EMSGSIZE if too long (not freed), or -FI_EINVAL if there is no such request.
 */
ssize_t core_rpc_reply(struct core_ep *ep, struct core_rpc_handle *handle, uint64_t seq,
		       const struct iovec *iov, size_t iov_cnt, size_t len, unsigned flags);
/** Releases the bytes of a request. Its reply is still due. Returns 0 or -FI_EINVAL. */
int core_rpc_release(struct core_ep *ep, struct core_rpc_handle *handle, uint64_t seq);

/** Adds a request that arrived to the intake. `data` begins with the operation word. */
enum core_rx_verdict core_rpc_on_call(struct core_chan *chan, struct core_call_ref ref,
				      const uint8_t *data, uint32_t len, core_retain_t retain);

/* Used by core_rpc_post.h. */
extern const struct core_op_ops core_rpc_op_ops;
ssize_t core_rpc_call_buf_cold(struct core_ep *ep, const void *buf, size_t len, void *resp,
			       size_t resp_max, fi_addr_t dest, void *context, uint64_t comp_flags,
			       unsigned flags);
/** Ends a call that the channel did not accept. Returns `err`. */
ssize_t core_rpc_call_undo_cold(struct core_rpc_call *call, int err);
ssize_t core_rpc_reply_buf_cold(struct core_ep *ep, struct core_rpc_handle *handle, uint64_t seq,
				const void *buf, size_t len, unsigned flags);

/* Internal to core/rpc. */
void core_rpc_unlist(struct core_ep *ep, struct core_rpc_handle *handle);

/** Takes `handle`, the first of its pool, for bytes retained in the channel's ring. */
static inline void core_rpc_handle_alloc(struct core_rpc *rpc, struct core_rpc_handle *handle,
					 struct core_chan *chan)
{
	util_pool_take(&rpc->handles, handle);
	handle->seq = rpc->next_seq;
	rpc->next_seq += 2;
	handle->chan = chan;
	handle->has_bytes = true;
	chan->retained++;
}

static inline void core_rpc_handle_release(struct core_rpc_handle *handle)
{
	if (UTIL_LIKELY(handle->has_bytes))
		handle->chan->ops->release(handle->chan, handle->retain);
	handle->has_bytes = false;
}

/** Releases the bytes and frees the handle. Closes a stopped channel with its last handle. */
static inline void core_rpc_handle_free(struct core_rpc *rpc, struct core_rpc_handle *handle)
{
	struct core_chan *chan = handle->chan;

	core_rpc_handle_release(handle);
	handle->seq = 0;
	util_pool_release(&rpc->handles, handle);
	if (UTIL_UNLIKELY(!--chan->retained && !chan->peer))
		core_ep_close_stopped(chan);
}

#endif
