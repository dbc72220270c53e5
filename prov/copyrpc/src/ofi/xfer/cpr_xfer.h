/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What do all transfers do before core/ takes over?
 *
 * The calls of fi_msg and fi_tagged differ in their parameters only: each is one of these with
 * constants, inlined. A transfer checks a length, or flags and a count, takes the domain's lock
 * (nothing under FI_THREAD_DOMAIN: those of one buffer are then core's hot half and nothing else)
 * and calls core. Descriptors are not looked at.
 */
#ifndef CPR_XFER_H
#define CPR_XFER_H

#include <rdma/fi_errno.h>

#include "core/msg/core_post.h"
#include "ofi/ep/cpr_ep.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/xfer/cpr_trigger.h"
#include "util/bits.h"

#define CPR_SENDMSG_FLAGS (CPR_TX_OP_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE | FI_FENCE)
#define CPR_RECVMSG_FLAGS                                                                          \
	(FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

#define CPR_XFER_INLINE static inline __attribute__((always_inline))

/** Are these flags allowed, `most` and, where it was asked for, FI_TRIGGER? */
CPR_XFER_INLINE bool cpr_xfer_takes(const struct cpr_ep *ep, uint64_t flags, uint64_t most)
{
	return UTIL_LIKELY(!(flags & ~most)) || !(flags & ~(most | (ep->caps & FI_TRIGGER)));
}

CPR_XFER_INLINE void cpr_xfer_leave(struct core_dom *dom)
{
	core_dom_transferred(dom);
	core_dom_unlock(dom);
}

/* The domain is locked here and below, and nowhere above. */
CPR_XFER_INLINE ssize_t cpr_xfer_send(struct cpr_ep *ep, const struct core_send *send)
{
	ssize_t ret;

	core_dom_lock(ep->dom);
	ret = core_tx_send(ep->core, send);
	if (!(send->flags & FI_MORE))
		core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}

/** The same as core_tx_send_buf and core_rx_post_buf, in domains that somebody else uses as well. */
ssize_t cpr_xfer_send_guarded(struct cpr_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			      uint64_t tag, uint64_t data, void *context, uint64_t flags,
			      bool tagged, bool silent);
ssize_t cpr_xfer_recv_guarded(struct cpr_ep *ep, void *buf, size_t len, fi_addr_t src, uint64_t tag,
			      uint64_t ignore, void *context, uint64_t flags, bool tagged);

/*
 * A call of one buffer, twice: for domains that one thread uses and nobody sleeps on, which pay for
 * nothing else (and look whether that is so still), and _guarded, for the tables of endpoints whose domain
 * has a lock from the beginning (cpr_ep_pick_ops). `call` is one of the three below; `guarded` is a
 * constant in it.
 */
#define CPR_XFER_CALL(name, params, call)                                                          \
	static ssize_t name##_guarded params                                                       \
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

CPR_XFER_INLINE ssize_t cpr_xfer_send_one(struct cpr_ep *ep, const void *buf, size_t len,
					  fi_addr_t dest, uint64_t tag, uint64_t data,
					  void *context, uint64_t flags, bool tagged, bool silent,
					  bool guarded)
{
	ssize_t ret;

	if (!guarded && UTIL_UNLIKELY(!core_dom_is_private(ep->dom)))
		return cpr_xfer_send_guarded(ep, buf, len, dest, tag, data, context, flags, tagged,
					     silent);
	if (guarded)
		core_dom_lock(ep->dom);
	ret = core_tx_send_buf(ep->core, buf, len, dest, tag, data, context, flags, tagged, silent);
	if (guarded)
		cpr_xfer_leave(ep->dom);
	return ret;
}

/** fi_send, fi_senddata and their sisters: one buffer, default flags and `extra`. */
CPR_XFER_INLINE ssize_t cpr_xfer_send_buf(struct cpr_ep *ep, const void *buf, size_t len,
					  fi_addr_t dest, uint64_t tag, uint64_t data,
					  void *context, uint64_t extra, bool tagged, bool guarded)
{
	uint64_t flags = ep->tx_flags;

	/* Default flags have no data (cpr_ep_set_tx_flags): extra alone says it, a constant. */
	if (flags & FI_REMOTE_CQ_DATA)
		__builtin_unreachable();
	flags |= extra;
	if (UTIL_UNLIKELY(len > ep->send_max))
		return -FI_EMSGSIZE;
	return cpr_xfer_send_one(ep, buf, len, dest, tag, data, context, flags, tagged, false,
				 guarded);
}

/** fi_inject and its sisters. */
CPR_XFER_INLINE ssize_t cpr_xfer_inject(struct cpr_ep *ep, const void *buf, size_t len,
					fi_addr_t dest, uint64_t tag, uint64_t data, uint64_t extra,
					bool tagged, bool guarded)
{
	if (UTIL_UNLIKELY(len > ep->inject_max))
		return -FI_EMSGSIZE;
	return cpr_xfer_send_one(ep, buf, len, dest, tag, data, NULL, extra, tagged, true, guarded);
}

/* A vector without elements is one empty buffer to core: 0 or -FI_EINVAL for too many. */
CPR_XFER_INLINE int cpr_xfer_check_iov(const struct iovec **iov, size_t *cnt)
{
	static const struct iovec no_bytes;

	if (UTIL_UNLIKELY(*cnt > CPR_IOV_LIMIT))
		return -FI_EINVAL;
	if (UTIL_UNLIKELY(!*cnt)) {
		*iov = &no_bytes;
		*cnt = 1;
	}
	return 0;
}

/** fi_sendv, fi_sendmsg and their sisters: `send` is filled in, len is 0. */
CPR_XFER_INLINE ssize_t cpr_xfer_send_iov(struct cpr_ep *ep, struct core_send *send)
{
	int ret = cpr_xfer_check_iov(&send->iov, &send->iov_cnt);
	size_t i;

	if (UTIL_UNLIKELY(ret))
		return ret;
	for (i = 0; i < send->iov_cnt; i++)
		send->len += send->iov[i].iov_len;
	if (UTIL_UNLIKELY((send->flags & FI_INJECT) && send->len > ep->inject_max))
		return -FI_EMSGSIZE;
	if (UTIL_UNLIKELY(send->flags & FI_TRIGGER))
		return cpr_trigger_send(ep, send);
	return cpr_xfer_send(ep, send);
}

/** fi_recv and its sisters. */
CPR_XFER_INLINE ssize_t cpr_xfer_recv_iov(struct cpr_ep *ep, struct core_recv *recv)
{
	ssize_t ret = cpr_xfer_check_iov(&recv->iov, &recv->iov_cnt);

	if (UTIL_UNLIKELY(ret))
		return ret;
	core_dom_lock(ep->dom);
	ret = core_rx_post(ep->core, recv);
	core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}

CPR_XFER_INLINE ssize_t cpr_xfer_recv_buf(struct cpr_ep *ep, void *buf, size_t len, fi_addr_t src,
					  uint64_t tag, uint64_t ignore, void *context,
					  uint64_t flags, bool tagged, bool guarded)
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
