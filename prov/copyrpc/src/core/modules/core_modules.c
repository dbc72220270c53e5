/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables that connect core with its modules msg, rma, coll, rpc and watch: hooks, handlers by
 * operation, and the up-calls for engines. The only file that includes all modules; core uses the
 * tables.
 */
#include <string.h>

#include "core/coll/core_coll_msg.h"
#include "core/core_conn.h"
#include "core/core_failback.h"
#include "core/core_handler.h"
#include "core/core_module.h"
#include "core/core_op.h"
#include "core/core_peer.h"
#include "core/core_peer_name.h"
#include "core/core_pending.h"
#include "core/msg/core_msg.h"
#include "core/msg/core_offload.h"
#include "core/msg/core_rx.h"
#include "core/msg/core_rx_bulk.h"
#include "core/msg/core_tx_bulk.h"
#include "core/rma/core_atomic.h"
#include "core/rma/core_rma.h"
#include "core/rma/core_rma_lease.h"
#include "core/rma/core_rma_simple.h"
#include "core/rpc/core_rpc.h"
#include "core/watch/core_watch.h"
#include "util/bits.h"

const struct core_module core_modules[CORE_MODULE_CNT] = {
	{
		/* first: the devices then leave receives and sends of messaging alone */
		.ep_stop = core_offload_ep_stop,
		.peer_up = core_offload_peer_up,
		.peer_failing = core_offload_peer_failing,
	},
	{
		.ep_open = core_msg_ep_open,
		.ep_stop = core_msg_ep_stop,
		.ep_close = core_msg_ep_close,
		.ep_show = core_msg_ep_show,
		.peer_awaited = core_msg_peer_awaited,
		.ep_flush = core_rx_flush,
		.ep_lost = core_rx_fail_lost,
		.peer_failing = core_rx_fail_peer,
		.peer_merged = core_rx_merge_peers,
		.peer_free = core_rx_forget_peer,
	},
	{
		.ep_close = core_coll_fini,
		.peer_up = core_coll_peer_up,
		.peer_failed = core_coll_fail_peer,
		.peer_free = core_coll_forget_peer,
	},
	{
		.peer_free = core_watch_forget_peer,
	},
	{
		.ep_open = core_rma_ep_open,
		.ep_close = core_rma_ep_close,
		.peer_failed = core_rma_peer_failed,
		.peer_closed = core_rma_peer_closed,
		.mr_revoke = core_rma_mr_revoke,
	},
	{
		.ep_open = core_rpc_ep_open,
		.ep_stop = core_rpc_unlisten,
		.ep_close = core_rpc_ep_close,
		.chan_down = core_rpc_chan_down,
	},
};

const struct core_handler core_handlers[WIRE_OP_MASK + 1] = {
	[WIRE_OP_FAILBACK] = { .on_msg = core_failback_on_msg },
	[WIRE_OP_PART] = { .on_msg = core_rx_on_part },
	[WIRE_OP_CONT] = { .on_msg = core_rx_on_cont, .on_call = core_rx_on_last_cont },
	[WIRE_OP_RNDV] = { .on_call = core_rx_on_rndv },
	[WIRE_OP_DLVR] = { .on_call = core_rx_on_dlvr },
	[WIRE_OP_WRITE] = { .on_call = core_rma_on_call },
	[WIRE_OP_READ] = { .on_call = core_rma_on_call },
	[WIRE_OP_FETCH] = { .on_call = core_rma_on_call },
	[WIRE_OP_EXPOSE] = { .on_msg = core_rma_on_msg, .on_call = core_rma_on_call },
	[WIRE_OP_ATOMIC] = { .on_call = core_atomic_on_call },
	[WIRE_OP_SYNC] = { .on_msg = core_offload_on_msg, .on_call = core_rx_on_sync },
	[WIRE_OP_DONE] = { .on_msg = core_tx_bulk_on_done },
	[WIRE_OP_LEASE] = { .on_call = core_rma_on_lease },
	[WIRE_OP_COLL] = { .on_call = core_coll_on_call },
};

static enum core_rx_verdict core_modules_on_call(struct core_chan *chan, struct core_call_ref ref,
						 const uint8_t *data, uint32_t len,
						 core_retain_t retain)
{
	uint32_t op;

	if (UTIL_UNLIKELY(len < sizeof(op)))
		return CORE_RX_BAD;
	memcpy(&op, data, sizeof(op));
	if (UTIL_LIKELY((op & WIRE_OP_MASK) == WIRE_OP_RPC))
		return core_rpc_on_call(chan, ref, data, len, retain);
	return core_handle_call(chan, ref, op, data + sizeof(op), len - (uint32_t)sizeof(op),
				retain);
}

static void core_modules_on_get_done(struct core_chan *chan, struct core_get *get)
{
	get->done(get);
}

const struct core_upcalls core_upcall_table = {
	.on_msg = core_rx_on_msg,
	.on_call = core_modules_on_call,
	.on_reply = core_op_on_reply,
	.on_get_done = core_modules_on_get_done,
	.on_acked = core_pending_on_acked,
	.on_accessed = core_rma_simple_ended,
	.on_limits = core_peer_on_limits,
	.on_up = core_peer_on_up,
	.on_connect_failed = core_peer_on_connect_failed,
	.on_alias = core_peer_on_alias,
	.on_accepted = core_conn_on_accepted,
	.on_refused = core_conn_on_refused,
	.on_watch = core_watch_ep,
	.on_regained = core_failback_look,
	.on_event = core_conn_on_event,
	.on_down = core_peer_on_down,
};
