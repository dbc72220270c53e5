/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who waits for whose answer? Remote procedure calls, which users make (rdma/fi_ext_copyrpc.h).
 *
 *   caller: core_rpc_call --room--> out --answer--> completion          (core_rpc_call.c)
 *              \--no connection yet--> queued with a copy of its bytes --its turn--> out
 *           -FI_EAGAIN while the channel has no credit or no room: nothing was taken. A call
 *           that is cancelled has its completion at once and stays out, silent, until the answer comes.
 *   callee: arrival --> intake, oldest first --core_rpc_pop_intake--> the user's --core_rpc_reply--> gone
 *           The request's bytes are handle in the ring all the while (core_rpc_serve.c). How many wait
 *           is bounded by the credit that their callers were granted.
 *   memory that users refer to (requests they took, answers that were lent) outlives its channel:
 *           the channel is stopped, and closed when the last of it was given back (core_rpc.c).
 *
 * Shown by test/unit/core/rpc/test_core_rpc*.c.
 */
#ifndef CORE_RPC_H
#define CORE_RPC_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/core_chan.h"
#include "core/core_op.h"
#include "util/bits.h"
#include "util/idmap.h"
#include "util/list.h"
#include "util/pool.h"
#include "wire/wire_op.h"

struct core_ep;

/** What the operation word can say. */
#define CORE_RPC_RESP_MAX WIRE_RPC_RESP_MAX

/** Bytes of calls that an endpoint keeps while connections are being made. */
#define CORE_RPC_QUEUE_BYTES (4u << 20)

enum core_rpc_flag {
	CORE_RPC_MORE = 1 << 0, /* the next one follows at once */
};

/** In comp_flags: the answer stays in the ring; a completion with buf and data (FI_COPYRPC_RETAIN). */
#define CORE_RPC_RETAIN (1ull << 61)

/** A call, as its user states it. */
struct core_rpc_request {
	const struct iovec *iov; /* the request's bytes: free on return */
	size_t iov_cnt;
	size_t len;
	void *resp; /* where the answer goes; not with CORE_RPC_RETAIN */
	size_t resp_max;
	void *context;
	uint64_t comp_flags; /* of its completion; FI_COPYRPC_RETAIN */
	unsigned flags;      /* enum core_rpc_flag */
};

/** What a user refers to in a ring: a request that arrived, or an answer that was lent. */
struct core_rpc_handle {
	struct util_list link; /* core_rpc.intake */
	struct core_chan *chan;
	const uint8_t *data;
	core_retain_t retain;
	struct core_call_ref ref;
	uint32_t len;
	uint32_t resp_max; /* exact */
	uint32_t seq;      /* names this use of the record: odd; 0: it is free */
	bool has_bytes;    /* hold is not released yet */
};

/** A call that has not ended, or that was cancelled and whose answer is still to come. */
struct core_rpc_call {
	struct core_op op;
	void *context;
	void *resp;
	uint64_t comp_flags; /* FI_COPYRPC_RETAIN: CORE_RPC_RETAIN */
	uint32_t resp_max;
	bool cancelled; /* its completion was written */
	bool plain;     /* its answer is to be copied and told, and nothing else */
	uint32_t len;   /* of copy */
	uint8_t *copy;  /* the request, while it is queued */
};

/** Of an endpoint. */
struct core_rpc {
	struct util_pool calls;       /* struct core_rpc_call */
	struct util_pool rpc_handles; /* struct core_rpc_handle */
	struct util_list
		intake; /* core_rpc_handle.link: requests that nobody has taken, oldest first */
	struct util_list stopped; /* core_chan.stopped_link: channels that live for their memory */
	struct util_idmap retained; /* answers that were lent -> core_rpc_handle */
	size_t queue_bytes;         /* copied for calls that wait for a connection */
	uint32_t next_seq;          /* odd */
	uint32_t idle;              /* takes in a row that found nothing */
	bool listens; /* the user takes requests: those who sleep on its receive queue are woken */
};

void core_rpc_init(struct core_rpc *rpc);
/** Closes stopped channels, whoever refers to them. */
void core_rpc_fini(struct core_ep *ep);

/** 0, -FI_EAGAIN, -FI_EMSGSIZE, or why the peer cannot be reached; nothing was taken unless 0. */
ssize_t core_rpc_call(struct core_ep *ep, fi_addr_t dest, const struct core_rpc_request *ask);
/** Ends the oldest call with this context: 0, or -FI_ENOENT. */
int core_rpc_cancel(struct core_ep *ep, void *context);
/** Gives an answer back: 0, or -FI_EINVAL. */
int core_rpc_release_resp(struct core_ep *ep, uint64_t data);
/** What the channel to `dest` takes: 0, or -FI_EAGAIN (a connection has begun), -FI_E*. */
int core_rpc_limits(struct core_ep *ep, fi_addr_t dest, size_t *request, size_t *resp_max);
/** Calls of this size that are sure to be accepted now, or as core_rpc_limits. */
ssize_t core_rpc_room(struct core_ep *ep, fi_addr_t dest, size_t len, size_t resp_max);
/** Lets everything go to `dest`; FI_ADDR_UNSPEC: to all. 0, or -FI_EINVAL. */
int core_rpc_flush(struct core_ep *ep, fi_addr_t dest);

/** The user takes requests from now on; or never again. */
void core_rpc_listen(struct core_ep *ep);
void core_rpc_unlisten(struct core_ep *ep);
/**
 * Answers: 0, and it is gone; -FI_EMSGSIZE: it is still there; -FI_ECONNRESET: nobody waits any
 * more, it is gone; -FI_EINVAL: no such request.
 */
ssize_t core_rpc_reply(struct core_ep *ep, struct core_rpc_handle *handle, uint64_t seq,
		       const struct iovec *iov, size_t iov_cnt, size_t len, unsigned flags);
/** Gives its bytes back; the answer is still owed. 0 or -FI_EINVAL. */
int core_rpc_release(struct core_ep *ep, struct core_rpc_handle *handle, uint64_t seq);

/** Arrival; `data` begins with the operation word. */
enum core_rx_verdict core_rpc_on_call(struct core_chan *chan, struct core_call_ref ref,
				      const uint8_t *data, uint32_t len, core_retain_t retain);

/** A peer loses its channel: forgets what nobody took, closes it now or when it can be. */
void core_rpc_close_chan(struct core_ep *ep, struct core_chan *chan);

/* For core_rpc_post.h. */
extern const struct core_op_ops core_rpc_op_ops;
ssize_t core_rpc_call_buf_cold(struct core_ep *ep, const void *buf, size_t len, void *resp,
			       size_t resp_max, fi_addr_t dest, void *context, uint64_t comp_flags,
			       unsigned flags);
/** The channel did not take it, and said `err`: which is returned. */
ssize_t core_rpc_call_undo_cold(struct core_rpc_call *call, int err);
ssize_t core_rpc_reply_buf_cold(struct core_ep *ep, struct core_rpc_handle *handle, uint64_t seq,
				const void *buf, size_t len, unsigned flags);

/* For each other. */
void core_rpc_unlist(struct core_ep *ep, struct core_rpc_handle *handle);
void core_rpc_close_stopped_cold(struct core_chan *chan);

/** `handle`, the first of its pool, is a record of bytes that are handle in the channel's ring. */
static inline void core_rpc_handle_alloc(struct core_rpc *rpc, struct core_rpc_handle *handle,
					 struct core_chan *chan)
{
	util_pool_take(&rpc->rpc_handles, handle);
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

/** Drops its bytes too; its channel closes if it lived for this. */
static inline void core_rpc_handle_free(struct core_rpc *rpc, struct core_rpc_handle *handle)
{
	struct core_chan *chan = handle->chan;

	core_rpc_handle_release(handle);
	handle->seq = 0;
	util_pool_release(&rpc->rpc_handles, handle);
	if (UTIL_UNLIKELY(!--chan->retained && !chan->peer))
		core_rpc_close_stopped_cold(chan);
}

#endif
