/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls and their grant: core_chan_ops.call, call_buf, call_room and call_shortage.
 *
 * A call is a frame of the open batch, as a message (erpc_send.h), with an id that its reply
 * returns. It takes the cost of its reply from the grant until the reply arrives. Returns
 * -FI_EAGAIN beyond the grant, or without room in a batch.
 *
 * Tested in test/unit/erpc/tx/test_erpc_call.c and test/unit/erpc/test_erpc_ep.c.
 */
#ifndef ERPC_TX_ERPC_CALL_H
#define ERPC_TX_ERPC_CALL_H

#include "erpc/base/erpc_session.h"

/** Returns the bytes that the reply to a call gives back to the grant. */
static inline uint32_t erpc_call_cost(uint32_t resp_max)
{
	return resp_max + ERPC_GRANT_CALL;
}

/** Implement core_chan_ops.call, call_buf, call_room, call_shortage. */
int erpc_call(struct core_chan *chan, const struct core_frame *frame, uint32_t resp_max,
	      void *context, unsigned flags);
int erpc_call_buf(struct core_chan *chan, uint32_t op, const void *buf, size_t len,
		  uint32_t resp_max, void *context, unsigned flags);
size_t erpc_call_room(struct core_chan *chan, size_t len, uint32_t resp_max);
enum core_shortage erpc_call_shortage(const struct core_chan *chan, size_t len, uint32_t resp_max);

#endif
