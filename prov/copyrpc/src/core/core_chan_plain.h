/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations of a channel by other ones, for an engine without a faster path: see core_chan.h. */
#ifndef CORE_CORE_CHAN_PLAIN_H
#define CORE_CORE_CHAN_PLAIN_H

#include "core/core_chan.h"

/** Implements send_more by send_buf, for an engine without a faster path. */
static inline int core_chan_send_more(struct core_chan *chan, uint64_t packed, uint64_t ext0,
				      uint64_t ext1, const void *buf, size_t len)
{
	return chan->ops->send_buf(chan, core_packed_more(packed), ext0, ext1, buf, len);
}

/** Implements send_buf by send, for an engine without a faster path. */
static inline int core_chan_send_framed(struct core_chan *chan, uint64_t packed, uint64_t ext0,
					uint64_t ext1, const void *buf, size_t len)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct core_frame frame = {
		.op = core_packed_op(packed),
		.ext_len = core_packed_ext_len(packed),
		.ext = { ext0, ext1 },
		.iov = &iov,
		.iov_cnt = 1,
		.len = len,
	};

	return chan->ops->send(chan, &frame, core_packed_flags(packed));
}

/** Implements call_buf by call, for an engine without a faster path. */
static inline int core_chan_call_framed(struct core_chan *chan, uint32_t op, const void *buf,
					size_t len, uint32_t resp_max, void *context,
					unsigned flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct core_frame frame = { .op = op, .iov = &iov, .iov_cnt = 1, .len = len };

	return chan->ops->call(chan, &frame, resp_max, context, flags);
}

#endif
