/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks and locking of transfers, inlined into the calls of fi_msg and fi_tagged.
 *
 * The calls differ in their parameters only: each is one of these functions with constants. A
 * transfer checks a length, or flags and a count, takes the domain's lock and calls core. Under
 * FI_THREAD_DOMAIN there is no lock: transfers of one buffer are then core's hot half and nothing
 * else. Memory descriptors are ignored.
 */
#ifndef OFI_XFER_CPR_XFER_H
#define OFI_XFER_CPR_XFER_H

#include <rdma/fi_errno.h>

#include "core/msg/core_post.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/xfer/cpr_trigger.h"
#include "util/bits.h"
#include "util/copy.h"

#define CPR_SENDMSG_FLAGS (CPR_TX_OP_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE | FI_FENCE)
#define CPR_RECVMSG_FLAGS                                                                          \
	(FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

/**
 * Returns true if the flags are among `most` or FI_TRIGGER, if the endpoint has that capability.
 */
UTIL_INLINE bool cpr_xfer_accepts(const struct cpr_ep *ep, uint64_t flags, uint64_t most)
{
	return UTIL_LIKELY(!(flags & ~most)) || !(flags & ~(most | (ep->caps & FI_TRIGGER)));
}

UTIL_INLINE void cpr_xfer_leave(struct core_dom *dom)
{
	core_dom_transferred(dom);
	core_dom_unlock(dom);
}

/* Sends. The domain is locked here and in the functions below, and nowhere above. */
UTIL_INLINE ssize_t cpr_xfer_send(struct cpr_ep *ep, const struct core_send *send)
{
	ssize_t ret;

	core_dom_lock(ep->dom);
	ret = core_tx_send(ep->core, send);
	if (!(send->flags & FI_MORE))
		core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}

/** Call core_tx_send_buf and core_rx_post_buf in domains that are locked or watched. */
ssize_t cpr_xfer_send_guarded(struct cpr_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			      uint64_t tag, uint64_t data, void *context, uint64_t flags,
			      bool tagged, enum core_post_end end);
ssize_t cpr_xfer_recv_guarded(struct cpr_ep *ep, void *buf, size_t len, fi_addr_t src, uint64_t tag,
			      uint64_t ignore, void *context, uint64_t flags, bool tagged);

/*
 * Defines a call of one buffer twice. `name` is for domains that one thread uses and no thread
 * sleeps on; it checks that this still holds. `guarded_name` is for the tables of endpoints in a
 * domain with a lock (cpr_ep_pick_ops). `call` is one of the three functions below; `guarded` is a
 * constant in it.
 */
#define CPR_XFER_CALL(name, guarded_name, params, call)                                            \
	static ssize_t guarded_name params                                                         \
	{                                                                                          \
		const bool guarded = true;                                                         \
                                                                                                   \
		return call;                                                                       \
	}                                                                                          \
	static ssize_t name params                                                                 \
	{                                                                                          \
		const bool guarded = false;                                                        \
                                                                                                   \
		return call;                                                                       \
	}

UTIL_INLINE ssize_t cpr_xfer_send_one(struct cpr_ep *ep, const void *buf, size_t len,
				      fi_addr_t dest, uint64_t tag, uint64_t data, void *context,
				      uint64_t flags, bool tagged, enum core_post_end end,
				      bool guarded)
{
	ssize_t ret;

	if (!guarded && UTIL_UNLIKELY(!core_dom_is_private(ep->dom)))
		return cpr_xfer_send_guarded(ep, buf, len, dest, tag, data, context, flags, tagged,
					     end);
	if (guarded)
		core_dom_lock(ep->dom);
	ret = core_tx_send_buf(ep->core, buf, len, dest, tag, data, context, flags, tagged, end);
	if (guarded)
		cpr_xfer_leave(ep->dom);
	return ret;
}

/**
 * Implements fi_send, fi_senddata and their tagged variants: one buffer, default flags and `extra`.
 */
UTIL_INLINE ssize_t cpr_xfer_send_buf(struct cpr_ep *ep, const void *buf, size_t len,
				      fi_addr_t dest, uint64_t tag, uint64_t data, void *context,
				      uint64_t extra, bool tagged, bool guarded)
{
	uint64_t flags = ep->tx_flags;

	/*
	 * Default flags have neither FI_REMOTE_CQ_DATA, which only `extra` has, a constant, nor
	 * FI_MORE (cpr_ep_set_tx_flags).
	 */
	if (flags & (FI_REMOTE_CQ_DATA | FI_MORE))
		__builtin_unreachable();
	flags |= extra;
	if (UTIL_UNLIKELY(len > ep->send_max))
		return -FI_EMSGSIZE;
	return cpr_xfer_send_one(ep, buf, len, dest, tag, data, context, flags, tagged,
				 CORE_POST_COMPLETES, guarded);
}

/** Implements fi_inject, fi_injectdata and their tagged variants. */
UTIL_INLINE ssize_t cpr_xfer_inject(struct cpr_ep *ep, const void *buf, size_t len, fi_addr_t dest,
				    uint64_t tag, uint64_t data, uint64_t extra, bool tagged,
				    bool guarded)
{
	if (UTIL_UNLIKELY(len > ep->inject_max))
		return -FI_EMSGSIZE;
	return cpr_xfer_send_one(ep, buf, len, dest, tag, data, NULL, extra, tagged,
				 CORE_POST_LEAVES, guarded);
}

/** Implements fi_send and fi_tsend where cpr_silent.h selects it: injects, and may defer. */
UTIL_INLINE ssize_t cpr_xfer_send_silent(struct cpr_ep *ep, const void *buf, size_t len,
					 fi_addr_t dest, uint64_t tag, void *context, bool tagged,
					 bool guarded)
{
	if (UTIL_UNLIKELY(len > ep->inject_max))
		return -FI_EMSGSIZE;
	return cpr_xfer_send_one(ep, buf, len, dest, tag, 0, context, 0, tagged, CORE_POST_DEFERS,
				 guarded);
}

/*
 * Replaces a vector without elements by one empty buffer, and adds up its bytes. Returns 0 and
 * *len, -FI_EINVAL for more elements than iov_limit, or -FI_EMSGSIZE for more than `max` bytes.
 */
UTIL_INLINE int cpr_xfer_check_iov(const struct iovec **iov, size_t *cnt, size_t max, size_t *len)
{
	static const struct iovec no_bytes;

	if (UTIL_UNLIKELY(*cnt > CPR_IOV_LIMIT))
		return -FI_EINVAL;
	if (UTIL_UNLIKELY(!*cnt)) {
		*iov = &no_bytes;
		*cnt = 1;
	}
	return util_iov_sum(*iov, *cnt, max, len) ? 0 : -FI_EMSGSIZE;
}

/** Implements fi_sendv, fi_sendmsg and their tagged variants: `send` is filled in but for len. */
UTIL_INLINE ssize_t cpr_xfer_send_iov(struct cpr_ep *ep, struct core_send *send)
{
	int ret = cpr_xfer_check_iov(&send->iov, &send->iov_cnt, CPR_MSG_MAX, &send->len);

	if (UTIL_UNLIKELY(ret))
		return ret;
	if (UTIL_UNLIKELY((send->flags & FI_INJECT) && send->len > ep->inject_max))
		return -FI_EMSGSIZE;
	if (UTIL_UNLIKELY(send->flags & FI_TRIGGER))
		return cpr_trigger_send(ep, send);
	return cpr_xfer_send(ep, send);
}

/* Flags of fi_sendmsg and fi_tsendmsg with which one buffer is sent as by fi_send. */
#define CPR_SENDMSG_PLAIN_FLAGS                                                                    \
	(FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_REMOTE_CQ_DATA)

/** Returns true if cpr_xfer_send_plain may send the message. */
UTIL_INLINE bool cpr_xfer_is_plain(const struct cpr_ep *ep, size_t iov_cnt, uint64_t flags)
{
	return iov_cnt == 1 && !(flags & ~CPR_SENDMSG_PLAIN_FLAGS) && core_dom_is_private(ep->dom);
}

/** Implements fi_sendmsg and fi_tsendmsg for one buffer, without a lock. */
UTIL_INLINE ssize_t cpr_xfer_send_plain(struct cpr_ep *ep, const struct iovec *iov, fi_addr_t dest,
					uint64_t tag, uint64_t data, void *context, uint64_t flags,
					bool tagged)
{
	if (UTIL_UNLIKELY(iov->iov_len > CPR_MSG_MAX))
		return -FI_EMSGSIZE;
	return core_tx_send_buf(ep->core, iov->iov_base, iov->iov_len, dest, tag, data, context,
				flags, tagged, CORE_POST_COMPLETES);
}

/*
 * Checks the buffers of a receive. Their sum may exceed max_msg_size, as the length of one buffer
 * may. Returns 0, -FI_EINVAL or -FI_EMSGSIZE.
 */
UTIL_INLINE int cpr_xfer_check_recv(struct core_recv *recv)
{
	size_t len;

	/* A buffer for many messages is one piece of memory. */
	if (UTIL_UNLIKELY((recv->flags & FI_MULTI_RECV) && recv->iov_cnt != 1 && !recv->tagged))
		return -FI_EINVAL;
	return cpr_xfer_check_iov(&recv->iov, &recv->iov_cnt, SIZE_MAX, &len);
}

/** Implements fi_recvv, fi_recvmsg and their tagged variants. */
UTIL_INLINE ssize_t cpr_xfer_recv_iov(struct cpr_ep *ep, struct core_recv *recv)
{
	ssize_t ret = cpr_xfer_check_recv(recv);

	if (UTIL_UNLIKELY(ret))
		return ret;
	core_dom_lock(ep->dom);
	ret = core_rx_post(ep->core, recv);
	core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}

UTIL_INLINE ssize_t cpr_xfer_recv_buf(struct cpr_ep *ep, void *buf, size_t len, fi_addr_t src,
				      uint64_t tag, uint64_t ignore, void *context, uint64_t flags,
				      bool tagged, bool guarded)
{
	ssize_t ret;

	if (!guarded && UTIL_UNLIKELY(!core_dom_is_private(ep->dom)))
		return cpr_xfer_recv_guarded(ep, buf, len, src, tag, ignore, context, flags,
					     tagged);
	if (guarded)
		core_dom_lock(ep->dom);
	ret = core_rx_post_buf(ep->core, buf, len, src, tag, ignore, context, flags, tagged);
	if (guarded)
		cpr_xfer_leave(ep->dom);
	return ret;
}

#endif
