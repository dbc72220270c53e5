/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replies to calls: core_chan_ops.reply and its variants.
 *
 * Replies gather in buffers of their own, in order, until a response takes them along
 * (erpc_respond.h). A buffer holds as much as one packet; a longer reply has one of its own. Most
 * replies are appended to others that wait, without further checks.
 *
 * Tested in test/unit/erpc/tx/test_erpc_reply.c.
 */
#ifndef ERPC_TX_ERPC_REPLY_H
#define ERPC_TX_ERPC_REPLY_H

#include "erpc/base/erpc_session.h"

/** Implement core_chan_ops.reply and its variants. */
int erpc_reply(struct core_chan *chan, struct core_call_ref ref, const struct iovec *iov,
	       size_t iov_cnt, size_t len, unsigned flags);
int erpc_reply_release(struct core_chan *chan, struct core_call_ref ref, core_retain_t retain,
		       const void *buf, size_t len, unsigned flags);

#endif
