/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where are answers to calls until something takes them along?
 *
 * They gather in buffers of their own, in order, each as long as one packet carries; only an answer longer
 * than that has one to itself. What takes them along, and when: erpc_respond.h. Most answers join others that
 * wait: then nothing but their bytes is to be done.
 *
 * Shown by test/unit/erpc/tx/test_erpc_reply.c.
 */
#ifndef ERPC_REPLY_H
#define ERPC_REPLY_H

#include "erpc/erpc_session.h"

/** core_chan_ops.reply, reply_iov, answer. */
int erpc_reply(struct core_chan *chan, struct core_call_ref ref, const void *buf, size_t len);
int erpc_reply_iov(struct core_chan *chan, struct core_call_ref ref, const struct iovec *iov,
		   size_t iov_cnt, size_t len, unsigned flags);
int erpc_reply_buf(struct core_chan *chan, struct core_call_ref ref, core_retain_t retain,
		   const void *buf, size_t len, unsigned flags);

#endif
