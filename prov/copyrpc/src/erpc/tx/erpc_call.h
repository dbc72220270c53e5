/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a call leave, and how many may?
 *
 * A call is a frame of the open batch like a message (erpc_send.h), with a name that its answer brings
 * back. It takes the cost of its answer from what the peer has granted, until that has come: who asks for
 * more than that, or for more than batches have room for, gets -FI_EAGAIN and nothing is taken.
 *
 * Shown by test/unit/erpc/tx/test_erpc_call.c and test/unit/erpc/test_erpc_ep.c.
 */
#ifndef ERPC_CALL_H
#define ERPC_CALL_H

#include "erpc/erpc_session.h"

/** What an answer to a call of ours gives back. */
static inline uint32_t erpc_call_cost(uint32_t resp_max)
{
	return resp_max + ERPC_GRANT_CALL;
}

/** core_chan_ops.call, call_buf, call_room. */
int erpc_call(struct core_chan *chan, const struct core_frame *frame, uint32_t resp_max,
	      void *context);
int erpc_call_buf(struct core_chan *chan, uint32_t op, const void *buf, size_t len,
		  uint32_t resp_max, void *context, unsigned flags);
size_t erpc_call_room(struct core_chan *chan, size_t len, uint32_t resp_max);

#endif
