/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls by operation. See core_handler.h. */
#include "core/core_handler.h"

enum core_rx_verdict core_handle_call(struct core_chan *chan, struct core_call_ref ref, uint32_t op,
				      const uint8_t *data, uint32_t len, core_retain_t retain)
{
	const struct core_handler *handler;
	struct core_head head;

	if (ref.resp_max < sizeof(struct wire_status) || !core_head_parse(&head, op, data, len))
		return CORE_RX_BAD;
	handler = &core_handlers[head.op];
	return handler->on_call ? handler->on_call(chan, ref, &head, retain) : CORE_RX_BAD;
}
