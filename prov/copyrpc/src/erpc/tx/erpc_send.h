/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a message find a packet?
 *
 * Messages, and calls among them (erpc_call.h), are appended to the open batch, which leaves in the next
 * free slot; a sender gets -FI_EAGAIN when there is none and the batch is full. A message that is longer
 * than what is shared has a batch to itself, of several packets if it must. Answers gather in buffers of
 * their own and ride in the next response (erpc_respond.h).
 *
 * Shown by test/unit/erpc/tx/test_erpc_send.c and test/unit/erpc/test_erpc_ep.c.
 */
#ifndef ERPC_SEND_H
#define ERPC_SEND_H

#include <string.h>

#include "erpc/erpc_session.h"
#include "util/copy.h"

/* What was asked to leave at once gathers behind so many batches that are under way. */
#define ERPC_NOW_MAX 2u

/** core_chan_ops.send, send_buf. */
int erpc_send(struct core_chan *chan, const struct core_frame *frame, unsigned flags);
int erpc_send_buf(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
		  const void *buf, size_t len);

/** The open batch leaves, if there is one and a slot for it: false if there is none. */
bool erpc_send_leave(struct erpc_session *s);

/** Bytes in the open batch. */
static inline uint32_t erpc_send_len(const struct erpc_session *s)
{
	return (uint32_t)(s->fill - s->open->data);
}

/** Room for `span` bytes in the open batch, which is made, grown or replaced: NULL: not now. */
uint8_t *erpc_send_room(struct erpc_session *s, uint32_t span);

/** Extension and user bytes. */
static inline void erpc_send_gather(uint8_t *at, const struct core_frame *frame)
{
	memcpy(at, frame->ext, frame->ext_len);
	util_iov_gather(at + frame->ext_len, frame->iov, frame->iov_cnt, frame->iov_off,
			frame->len);
}

/** A frame of `span` bytes, written into that room, is whole: it leaves, or the batch waits for others. */
void erpc_send_added(struct erpc_session *s, uint32_t span, unsigned flags);

/** A batch leaves in a free slot; `end`: the position behind it. False: there is no slot. */
bool erpc_send_batch(struct erpc_session *s, struct erpc_buf *buf, uint64_t end);

/** Has a batch been answered? Then arrival moves on, in order. */
void erpc_send_acked(struct erpc_session *s, uint32_t seq);

#endif
