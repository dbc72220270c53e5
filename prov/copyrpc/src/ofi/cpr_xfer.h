/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What do all transfers do before core/ takes over?
 *
 * The calls of fi_msg and fi_tagged differ in their parameters only: each is one of these with
 * constants, inlined. A transfer checks a length, or flags and a count, takes the domain's lock
 * (nothing under FI_THREAD_DOMAIN) and calls core. Descriptors are not looked at.
 */
#ifndef CPR_XFER_H
#define CPR_XFER_H

#include <rdma/fi_errno.h>

#include "core/core_rx.h"
#include "core/core_tx.h"
#include "ofi/cpr_ep.h"
#include "ofi/cpr_offer.h"
#include "util/bits.h"

#define CPR_SENDMSG_FLAGS (CPR_TX_OP_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE)
#define CPR_RECVMSG_FLAGS                                                                          \
	(FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

#define CPR_XFER_INLINE static inline __attribute__((always_inline))

/* The domain is locked here and nowhere above. */
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

/** fi_send, fi_senddata and their sisters: one buffer, default flags and `extra`. */
CPR_XFER_INLINE ssize_t cpr_xfer_send_buf(struct cpr_ep *ep, const void *buf, size_t len,
					  fi_addr_t dest, uint64_t tag, uint64_t data,
					  void *context, uint64_t extra, bool tagged)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct core_send send = { .dest = dest,
				  .iov = &iov,
				  .iov_cnt = 1,
				  .len = len,
				  .tag = tag,
				  .data = data,
				  .context = context,
				  .flags = ep->tx_flags | extra,
				  .tagged = tagged };

	if (UTIL_UNLIKELY(len > ep->send_max))
		return -FI_EMSGSIZE;
	return cpr_xfer_send(ep, &send);
}

/** fi_inject and its sisters. */
CPR_XFER_INLINE ssize_t cpr_xfer_inject(struct cpr_ep *ep, const void *buf, size_t len,
					fi_addr_t dest, uint64_t tag, uint64_t data, uint64_t extra,
					bool tagged)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct core_send send = { .dest = dest,
				  .iov = &iov,
				  .iov_cnt = 1,
				  .len = len,
				  .tag = tag,
				  .data = data,
				  .flags = ep->inject_flags | extra,
				  .tagged = tagged,
				  .silent = true };

	if (UTIL_UNLIKELY(len > ep->inject_max))
		return -FI_EMSGSIZE;
	return cpr_xfer_send(ep, &send);
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

/** fi_recv: one buffer, perhaps for many messages. */
CPR_XFER_INLINE ssize_t cpr_xfer_recv_buf(struct cpr_ep *ep, void *buf, size_t len, fi_addr_t src,
					  void *context, uint64_t flags)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct core_recv recv = {
		.src = src, .iov = &iov, .iov_cnt = 1, .context = context, .flags = flags
	};

	return cpr_xfer_recv_iov(ep, &recv);
}

/** fi_trecv. */
CPR_XFER_INLINE ssize_t cpr_xfer_trecv_buf(struct cpr_ep *ep, void *buf, size_t len, fi_addr_t src,
					   uint64_t tag, uint64_t ignore, void *context,
					   uint64_t flags)
{
	ssize_t ret;

	core_dom_lock(ep->dom);
	ret = core_rx_post_tagged(ep->core, buf, len, src, tag, ignore, context, flags);
	core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}

#endif
