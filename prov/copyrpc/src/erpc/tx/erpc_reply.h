/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replies to calls: core_chan_ops.reply and its variants.
 *
 * Replies gather in buffers of their own, in order, until a response takes them along
 * (erpc_respond.h). A buffer holds as much as one packet; a longer reply has one of its own. Most
 * replies are appended to others that wait, without further checks.
 */
#ifndef ERPC_TX_ERPC_REPLY_H
#define ERPC_TX_ERPC_REPLY_H

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"
#include "erpc/tx/erpc_batch.h"
#include "util/copy.h"

/** Implement core_chan_ops.reply and its variants. */
int erpc_reply(struct core_chan *chan, struct core_call_ref ref, const struct iovec *iov,
	       size_t iov_cnt, size_t len, unsigned flags);
int erpc_reply_release(struct core_chan *chan, struct core_call_ref ref, core_retain_t retain,
		       const void *buf, size_t len, unsigned flags);

/**
 * Returns true if a reply of `len` bytes, in a frame of `span`, is the last one that the only
 * waiting batch needs, and may leave at once.
 */
static inline bool erpc_reply_may_single(const struct erpc_session *s, uint32_t span, size_t len,
					 unsigned flags)
{
	const struct erpc_ep *ep = s->ep;

	return !flags && len <= UTIL_COPY_SHORT && s->resp.calls_pending == 1 &&
	       s->resp.wait_mask && !(s->resp.wait_mask & (s->resp.wait_mask - 1)) &&
	       util_list_is_empty(&s->replies) && !s->resp.release_mask &&
	       s->resp.retained_len <= ERPC_RETAINED_MAX && !s->err && !ep->running &&
	       ep->out.cnt < ERPC_BURST && ERPC_BATCH_HEAD + span <= s->payload &&
	       erpc_buf_has_tiny(&ep->bufs);
}

#endif
