/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages and the open batch: core_chan_ops.send, send_buf and send_more. Called by core,
 * erpc_call.c and the flush of a session.
 *
 * Messages and calls (erpc_call.h) are appended to the open batch, which leaves in the next free
 * slot. Without a slot and with a full batch the sender gets -FI_EAGAIN. A message longer than
 * batch_max has a batch of its own, of several packets if necessary. Replies gather in other
 * buffers (erpc_reply.h).
 *
 * Tested in test/unit/erpc/tx/test_erpc_send.c and test/unit/erpc/test_erpc_ep.c.
 */
#ifndef ERPC_TX_ERPC_SEND_H
#define ERPC_TX_ERPC_SEND_H

#include <string.h>

#include "erpc/base/erpc_session.h"
#include "util/copy.h"

/** Implement core_chan_ops.send, send_buf, send_more. */
int erpc_send(struct core_chan *chan, const struct core_frame *frame, unsigned flags);
int erpc_send_buf(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
		  const void *buf, size_t len);
int erpc_send_more(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
		   const void *buf, size_t len);

/** Sends the open batch, if any. Returns false without a slot. */
bool erpc_send_leave(struct erpc_session *s);

/** Returns the bytes in the open batch. */
static inline uint32_t erpc_send_len(const struct erpc_session *s)
{
	return (uint32_t)(s->flow.fill - s->batch.buf->data);
}

/**
 * Reserves `span` bytes in the open batch, which is opened, grown or replaced. Returns NULL without
 * room or memory.
 */
uint8_t *erpc_send_room(struct erpc_session *s, uint32_t span);

/** Returns true if erpc_send_room needs nothing but memory for `span` bytes. */
bool erpc_send_has_room(const struct erpc_session *s, uint32_t span);

/** Copies extension and user bytes. */
static inline void erpc_send_gather(uint8_t *at, const struct core_frame *frame)
{
	memcpy(at, frame->ext, frame->ext_len);
	util_iov_gather(at + frame->ext_len, frame->iov, frame->iov_cnt, frame->iov_off,
			frame->len);
}

/** Ends a frame of `span` bytes in that space. The batch leaves or waits for more. */
void erpc_send_added(struct erpc_session *s, uint32_t span, unsigned flags);

/**
 * Sends a batch of `cnt` messages in a free slot. Returns false without a slot.
 */
bool erpc_send_batch(struct erpc_session *s, struct erpc_buf *buf, uint32_t cnt);

/**
 * Notes that batch `seq` is acknowledged, and reports positions to core in order; the same one
 * again for batches without messages.
 */
void erpc_send_acked(struct erpc_session *s, uint32_t seq);

#endif
