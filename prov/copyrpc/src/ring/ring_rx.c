/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Delivery of calls and responses, retained messages, and rare batches: see ring_rx.h. */
#include "ring/ring_rx.h"

#include <endian.h>

#include "ring/ring_call.h"
#include "ring/ring_takeover.h"

static const char *ring_rx_refused(enum core_rx_verdict verdict)
{
	return verdict == CORE_RX_BAD ? "message not understood"
				      : "out of memory for retained messages";
}

const char *ring_rx_retain_cold(struct ring_conn *conn, enum core_rx_verdict verdict, uint64_t pos)
{
	if (verdict == CORE_RX_RETAIN && !ring_retained_add(&conn->rx.retained, pos))
		return NULL;
	return verdict == CORE_RX_DONE ? NULL : ring_rx_refused(verdict);
}

const char *ring_rx_response(struct ring_conn *conn, uint32_t call_id, uint32_t piggyback,
			     const uint8_t *data, uint32_t len, uint64_t pos)
{
	void *context;

	if (UTIL_UNLIKELY(piggyback))
		return "response with a maximum response size";
	context = util_idmap_take(&conn->calls, call_id & ~WIRE_ID_RESPONSE);
	if (UTIL_UNLIKELY(!context))
		return "response to an unknown call";
	conn->rx.resp_pos = pos;
	conn->eng.up->on_reply(&conn->eng.chan, context, 0, data, len);
	return NULL;
}

int ring_rx_keep(struct core_chan *chan, core_retain_t *retain)
{
	struct ring_rx *rx = &ring_conn_of(chan)->rx;

	*retain = rx->retained.tail;
	return ring_retained_add(&rx->retained, rx->resp_pos);
}

const char *ring_rx_call(struct ring_conn *conn, uint32_t call_id, uint32_t piggyback,
			 const uint8_t *data, uint32_t len, uint64_t pos)
{
	struct ring_flow *flow = &conn->tx.flow;
	uint64_t reserve = ((uint64_t)piggyback + 1) * WIRE_ALIGN; /* Equals wire_reservation */
	enum core_rx_verdict verdict;
	struct core_call_ref ref;

	if (UTIL_UNLIKELY(reserve > flow->granted - flow->claimed))
		return "call reserves more than the credit granted";
	flow->claimed += reserve;
	ref.call_id = call_id;
	ref.resp_max = piggyback * WIRE_ALIGN - WIRE_HDR_LEN;
	verdict = conn->eng.up->on_call(&conn->eng.chan, ref, data, len, conn->rx.retained.tail);
	if (UTIL_LIKELY(verdict == CORE_RX_RETAIN) &&
	    UTIL_LIKELY(!ring_retained_add(&conn->rx.retained, pos)))
		return NULL;
	return verdict == CORE_RX_DONE ? NULL : ring_rx_refused(verdict);
}

void ring_rx_release_retained(struct core_chan *chan, core_retain_t retain)
{
	ring_call_release(ring_conn_of(chan), retain);
}

void ring_rx_down_cold(struct ring_conn *conn, int err)
{
	if (!conn->rail || !ring_takeover_begin(conn))
		ring_conn_fail_cold(conn, err, NULL);
}

const char *ring_rx_in_word_cold(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	const uint8_t *head = conn->rx.base + ring_off(conn->rx.producer, conn->rx.len);
	uint32_t imm = le32toh(
		__atomic_load_n((const uint32_t *)(head + DEV_LINK_WORD_OFF), __ATOMIC_RELAXED));

	return imm ? ring_rx_batch_bytes(dev, conn, imm) : "immediate zero";
}
