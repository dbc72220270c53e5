/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handlers of messages and calls by operation (wire/wire_op.h). Implemented by the modules msg, rma
 * and coll; core/modules/core_modules.c fills the table.
 *
 * Whole eager messages (WIRE_OP_MSG) and RPCs (WIRE_OP_RPC) are on the hot path: the up-calls
 * handle them without this table.
 *
 * Peers that state anything: test/fuzz/fuzz_core_rx.c.
 */
#ifndef CORE_CORE_HANDLER_H
#define CORE_CORE_HANDLER_H

#include "core/core_engine.h"
#include "core/core_head.h"
#include "wire/wire_op.h"

/** NULL: the operation is not legal in this form. */
struct core_handler {
	enum core_rx_verdict (*on_msg)(struct core_chan *chan, struct core_head *head,
				       core_retain_t retain);
	/* The response may have at least sizeof(struct wire_status) bytes. */
	enum core_rx_verdict (*on_call)(struct core_chan *chan, struct core_call_ref ref,
					struct core_head *head, core_retain_t retain);
};

extern const struct core_handler core_handlers[WIRE_OP_MASK + 1];

/** Up-calls of all domains, passed to engines at open. */
extern const struct core_upcalls core_upcall_table;

/** Passes a message to its handler. */
static inline enum core_rx_verdict core_handle_msg(struct core_chan *chan, struct core_head *head,
						   core_retain_t retain)
{
	const struct core_handler *handler = &core_handlers[head->op];

	return handler->on_msg ? handler->on_msg(chan, head, retain) : CORE_RX_BAD;
}

/** Decodes a call and passes it to its handler; `data` follows the operation word. */
enum core_rx_verdict core_handle_call(struct core_chan *chan, struct core_call_ref ref, uint32_t op,
				      const uint8_t *data, uint32_t len, core_retain_t retain);

#endif
