/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a message, a call or an answer find a packet?
 *
 * Messages and calls are appended to the open batch, which leaves in the next free slot; a sender gets
 * -FI_EAGAIN when there is none and the batch is full. A message that is longer than what is shared has
 * a batch to itself, of several packets if it must. Answers gather in buffers of their own and ride in
 * the next response (erpc_answer.h).
 *
 * Shown by test/unit/erpc/test_erpc_port.c.
 */
#ifndef ERPC_SEND_H
#define ERPC_SEND_H

#include "erpc/erpc_session.h"

/** A call of ours that waits for its answer. */
struct erpc_asked {
	void *context;
	uint32_t allowance;
};

/** core_chan_ops.send, send_buf, call, call_buf, call_room. */
int erpc_send(struct core_chan *chan, const struct core_frame *frame, unsigned flags);
int erpc_send_buf(struct core_chan *chan, uint64_t label, uint64_t ext0, uint64_t ext1,
		  const void *buf, size_t len);
int erpc_call(struct core_chan *chan, const struct core_frame *frame, uint32_t allowance,
	      void *context);
int erpc_call_buf(struct core_chan *chan, uint32_t op, const void *buf, size_t len,
		  uint32_t allowance, void *context, unsigned flags);
size_t erpc_call_room(struct core_chan *chan, size_t len, uint32_t allowance);
/** The open batch leaves, if there is one and a slot for it: false if there is none. */
bool erpc_send_leave(struct erpc_session *s);

/** A batch leaves in a free slot; `end`: the position behind it. False: there is no slot. */
bool erpc_send_batch(struct erpc_session *s, struct erpc_buf *buf, uint64_t end);

/** Has a batch been answered? Then arrival moves on, in order. */
void erpc_send_arrived(struct erpc_session *s, uint32_t seq);

/** What an answer to a call of ours gives back. */
static inline uint32_t erpc_send_cost(uint32_t allowance)
{
	return allowance + ERPC_GRANT_CALL;
}

#endif
