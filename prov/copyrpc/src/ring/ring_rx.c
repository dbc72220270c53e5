/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rarer messages of a batch: calls, answers, and those that are kept. See ring_rx.h. */
#include "ring/ring_rx.h"

const char *ring_rx_hold_cold(struct ring_conn *conn, enum core_rx_verdict verdict, uint64_t pos)
{
	if (verdict != CORE_RX_HOLD)
		return verdict == CORE_RX_DONE ? NULL : "message not understood";
	return ring_holds_add(&conn->rx.holds, pos) ? "out of memory for held messages" : NULL;
}

const char *ring_rx_response_cold(struct ring_conn *conn, uint32_t call_id, uint32_t piggyback,
				  const uint8_t *data, uint32_t len, uint64_t pos)
{
	uint32_t id = call_id & ~WIRE_ID_RESPONSE;
	void *context = util_idmap_lookup(&conn->calls, id);

	if (!context)
		return "answer to a call that does not wait";
	if (piggyback)
		return "answer with an allowance";
	util_idmap_release(&conn->calls, id);
	conn->rx.answer_pos = pos;
	conn->eng.up->on_reply(&conn->eng.chan, context, 0, data, len);
	return NULL;
}

int ring_rx_keep(struct core_chan *chan, core_hold_t *hold)
{
	struct ring_rx *rx = &ring_conn_of(chan)->rx;

	*hold = rx->holds.tail;
	return ring_holds_add(&rx->holds, rx->answer_pos);
}

const char *ring_rx_call_cold(struct ring_conn *conn, uint32_t call_id, uint32_t piggyback,
			      const uint8_t *data, uint32_t len, uint64_t pos)
{
	struct ring_flow *flow = &conn->tx.flow;
	struct core_call_ref ref;
	uint64_t reserve;

	if (piggyback > flow->grant_max / WIRE_ALIGN)
		return "allowance beyond the credit granted";
	ref.call_id = call_id;
	ref.allowance = piggyback * WIRE_ALIGN - WIRE_HDR_LEN;
	reserve = wire_reservation(ref.allowance);
	if (reserve > flow->granted - flow->claimed)
		return "allowance beyond the credit granted";
	flow->claimed += reserve;
	return ring_rx_hold_cold(
		conn, conn->eng.up->on_call(&conn->eng.chan, ref, data, len, conn->rx.holds.tail),
		pos);
}

void ring_rx_release_hold(struct core_chan *chan, core_hold_t hold)
{
	struct ring_conn *conn = ring_conn_of(chan);

	if (ring_holds_release(&conn->rx.holds, hold))
		ring_rx_release(conn);
}
