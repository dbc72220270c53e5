/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive side of ring connections and progress: polling, parsing, validation, delivery and
 * release (docs/ring-protocol.md, section 7). Called by the engine's progress through
 * ring_template.h.
 *
 * One progress call processes at most RING_RX_BUDGET events, each a whole batch, then the engine's
 * events and failures if there are any (one load tells), then flushes the dirty connections. An
 * idle call costs one poll and two loads.
 *
 * One immediate announces one batch: metadata, then the messages in order. The peer may change any
 * byte during parsing: headers are copied once, and only the validated copy is used. An invalid
 * batch fails the connection, never the process.
 *
 * Tested by test/unit/ring/test_ring_rx*.c, test_ring_loop.c, test_ring_flow.c and
 * test/fuzz/fuzz_ring_rx.c.
 */
#ifndef RING_RING_RX_H
#define RING_RING_RX_H

#include "engine/eng_engine.h"
#include "ring/ring_ack.h"
#include "ring/ring_bulk.h"
#include "ring/ring_conn.h"
#include "ring/ring_flush.h"
#include "util/stats.h"

/** Copies the metadata. Atomic loads keep the compiler from repeating them. */
static inline struct wire_meta ring_rx_load_meta(const uint8_t *src)
{
	const struct wire_meta *m = (const struct wire_meta *)src;
	struct wire_meta meta = {
		.consumer_pos = __atomic_load_n(&m->consumer_pos, __ATOMIC_RELAXED),
		.credit_grant = __atomic_load_n(&m->credit_grant, __ATOMIC_RELAXED),
		.message_count = __atomic_load_n(&m->message_count, __ATOMIC_RELAXED),
		.reserved = __atomic_load_n(&m->reserved, __ATOMIC_RELAXED),
	};

	return meta;
}

static inline struct wire_hdr ring_rx_load_hdr(const uint8_t *src)
{
	const struct wire_hdr *h = (const struct wire_hdr *)src;
	struct wire_hdr hdr = {
		.call_id = __atomic_load_n(&h->call_id, __ATOMIC_RELAXED),
		.piggyback = __atomic_load_n(&h->piggyback, __ATOMIC_RELAXED),
		.len = __atomic_load_n(&h->len, __ATOMIC_RELAXED),
	};

	return hdr;
}

/** Publishes the consumer position, if it advanced. */
static inline void ring_rx_release(struct ring_conn *conn)
{
	struct ring_rx *rx = &conn->rx;
	uint64_t consumer = ring_retained_consumer(&rx->retained, rx->parsed);

	/* In the middle of a batch `parsed` is still the batch's start: never go back to it. */
	if ((int64_t)(consumer - rx->consumer) <= 0) {
		/* The peer may permit a grant while a retained message stops this position. */
		if (UTIL_UNLIKELY(ring_flow_grant_due(&conn->tx.flow)))
			ring_conn_mark_dirty(conn);
		return;
	}
	rx->consumer = consumer;
	/* Release: all loads of those bytes complete before the peer may overwrite them. */
	__atomic_store_n(conn->link->consumer_word, consumer, __ATOMIC_RELEASE);
	if (UTIL_UNLIKELY(ring_flush_control_due(conn)))
		ring_conn_mark_dirty(conn);
}

/** Delivers a response to a local call. Returns NULL, or the reason why the batch is invalid. */
const char *ring_rx_response(struct ring_conn *conn, uint32_t call_id, uint32_t piggyback,
			     const uint8_t *data, uint32_t len, uint64_t pos);
/** Delivers a call of the peer. Returns NULL, or the reason why the batch is invalid. */
const char *ring_rx_call(struct ring_conn *conn, uint32_t call_id, uint32_t piggyback,
			 const uint8_t *data, uint32_t len, uint64_t pos);
/**
 * Retains the message at `pos` if the up-call returned CORE_RX_RETAIN. Returns NULL, or the error.
 */
const char *ring_rx_retain_cold(struct ring_conn *conn, enum core_rx_verdict verdict, uint64_t pos);

/** Returns the ring position of `src`, in the batch received last, which ends at `end`. */
static inline uint64_t ring_rx_pos(const struct ring_conn *conn, const uint8_t *src,
				   const uint8_t *end)
{
	return conn->rx.producer - (uint64_t)(end - src);
}

/**
 * Delivers the message at `src` with header `hdr`. Returns NULL, or the reason why the batch is
 * invalid.
 */
UTIL_INLINE const char *ring_rx_message(struct ring_conn *conn, struct wire_hdr hdr,
					const uint8_t *src, const uint8_t *end)
{
	const uint8_t *data = src + WIRE_HDR_LEN;
	enum core_rx_verdict verdict;

	if (UTIL_UNLIKELY(hdr.call_id & WIRE_ID_RESPONSE))
		return ring_rx_response(conn, hdr.call_id, hdr.piggyback, data, hdr.len,
					ring_rx_pos(conn, src, end));
	if (UTIL_UNLIKELY(hdr.piggyback))
		return ring_rx_call(conn, hdr.call_id, hdr.piggyback, data, hdr.len,
				    ring_rx_pos(conn, src, end));
	verdict = conn->eng.up->on_msg(&conn->eng.chan, hdr.call_id, data, hdr.len,
				       conn->rx.retained.tail);
	if (UTIL_LIKELY(verdict == CORE_RX_DONE))
		return NULL;
	return ring_rx_retain_cold(conn, verdict, ring_rx_pos(conn, src, end));
}

/**
 * Delivers the messages that fill [src, end), a part of a batch, which never crosses the ring's
 * end; both are multiples of WIRE_ALIGN. Decrements *left per message or, where that is NULL, adds
 * to the counter of the connection. Returns NULL, or the reason why the batch is invalid.
 */
UTIL_INLINE const char *ring_rx_messages(struct ring_conn *conn, const uint8_t *src,
					 const uint8_t *end, uint32_t *left)
{
	uint64_t *counter = &conn->eng.chan.stats->rx_messages;
	struct wire_hdr hdr;
	const char *why;

	for (; src != end; src += wire_msg_span(hdr.len)) {
		hdr = ring_rx_load_hdr(src);
		if (UTIL_UNLIKELY(hdr.len > (size_t)(end - src) - WIRE_HDR_LEN))
			return "message longer than its batch";
		why = ring_rx_message(conn, hdr, src, end);
		if (UTIL_UNLIKELY(why != NULL))
			return why;
		if (left)
			--*left;
		else
			util_stats_add(counter, 1);
	}
	return NULL;
}

/**
 * Applies the consumer position advertised by the peer. Returns NULL, or the reason why it is
 * invalid.
 */
UTIL_INLINE const char *ring_rx_advertised(const struct dev_link_ops *dev, struct ring_conn *conn,
					   uint64_t pos)
{
	if (UTIL_UNLIKELY(!ring_tx_released(&conn->tx, pos)))
		return "consumer position beyond what was sent";
	if (ring_tx_is_async(dev))
		conn->tx.peer_advertised = pos;
	return NULL;
}

/**
 * Applies the consumer position and credit grant of the metadata. Returns NULL, or the reason why
 * they are invalid.
 */
UTIL_INLINE const char *ring_rx_meta(const struct dev_link_ops *dev, struct ring_conn *conn,
				     const struct wire_meta *meta)
{
	struct ring_tx *tx = &conn->tx;
	const char *why;

	if (UTIL_UNLIKELY(meta->reserved))
		return "reserved metadata bits are set";
	why = ring_rx_advertised(dev, conn, meta->consumer_pos);
	if (UTIL_UNLIKELY(why != NULL))
		return why;
	if (UTIL_LIKELY(!meta->credit_grant))
		return NULL;
	if (meta->credit_grant > conn->rx.len / 4 - tx->credit ||
	    (meta->credit_grant & (WIRE_ALIGN - 1)))
		return "credit beyond a quarter of the ring";
	tx->credit += meta->credit_grant;
	return NULL;
}

/**
 * Processes a batch of `delta` bytes that starts with metadata. Returns NULL, or the reason why it
 * is invalid.
 */
UTIL_INLINE const char *ring_rx_long(const struct dev_link_ops *dev, struct ring_conn *conn,
				     uint64_t delta)
{
	struct ring_rx *rx = &conn->rx;
	uint64_t off = ring_off(rx->producer, rx->len);
	struct wire_meta meta = ring_rx_load_meta(rx->base + off);
	const char *why = ring_rx_meta(dev, conn, &meta);
	uint32_t left = meta.message_count;

	if (UTIL_UNLIKELY(why != NULL))
		return why;
	rx->producer += delta;
	if (UTIL_UNLIKELY(left == WIRE_COUNT_WRAP))
		return off + delta == rx->len ? NULL : "wrap marker not at the end of a lap";
	util_stats_arrived(conn->eng.chan.stats, left, delta);
	why = ring_rx_messages(conn, rx->base + off + WIRE_META_LEN, rx->base + off + delta, &left);
	return UTIL_LIKELY(why || !left) ? why : "a batch of other messages than it counts";
}

/**
 * Processes a batch with a short immediate instead of metadata. Returns NULL, or the reason why it
 * is invalid.
 */
UTIL_INLINE const char *ring_rx_short(const struct dev_link_ops *dev, struct ring_conn *conn,
				      uint32_t imm, uint64_t delta)
{
	struct ring_rx *rx = &conn->rx;
	uint64_t off = ring_off(rx->producer, rx->len);
	uint64_t advance = (uint64_t)wire_imm_advance(imm) * WIRE_ALIGN;
	const char *why;

	if (UTIL_UNLIKELY(delta == WIRE_META_LEN))
		return "short immediate without a message";
	why = ring_rx_advertised(dev, conn, conn->tx.peer_advertised + advance);
	if (UTIL_UNLIKELY(why != NULL))
		return why;
	rx->producer += delta;
	util_stats_arrived(conn->eng.chan.stats, 0, delta);
	return ring_rx_messages(conn, rx->base + off + WIRE_META_LEN, rx->base + off + delta, NULL);
}

/** Processes a batch whose immediate is in the link word of its head (dev/dev.h). */
const char *ring_rx_in_word_cold(const struct dev_link_ops *dev, struct ring_conn *conn);

UTIL_INLINE const char *ring_rx_batch_bytes(const struct dev_link_ops *dev, struct ring_conn *conn,
					    uint32_t imm)
{
	bool is_short = ring_tx_is_async(dev) && (imm & WIRE_IMM_SHORT);
	uint64_t delta = (uint64_t)(is_short ? wire_imm_units(imm) : imm) * WIRE_ALIGN;
	struct ring_rx *rx = &conn->rx;

	if (UTIL_UNLIKELY(!delta || ring_off(rx->producer, rx->len) + delta > rx->len))
		return !imm && ring_tx_is_async(dev) ? ring_rx_in_word_cold(dev, conn)
						     : "immediate zero or across the ring's end";
	if (UTIL_UNLIKELY(rx->producer + delta - rx->consumer > rx->len))
		return "ring overrun";
	return is_short ? ring_rx_short(dev, conn, imm, delta) : ring_rx_long(dev, conn, delta);
}

/** Implements core_chan_ops.retain. */
int ring_rx_keep(struct core_chan *chan, core_retain_t *retain);

/** Implements core_chan_ops.release. */
void ring_rx_release_retained(struct core_chan *chan, core_retain_t retain);

/** Processes the batch that an immediate announced. */
UTIL_INLINE void ring_rx_batch(const struct dev_link_ops *dev, struct ring_conn *conn, uint32_t imm)
{
	const char *why;

	if (UTIL_UNLIKELY(conn->eng.err))
		return;
	why = ring_rx_batch_bytes(dev, conn, imm);
	if (UTIL_UNLIKELY(why != NULL)) {
		ring_conn_fail_cold(conn, -FI_EIO, why);
		return;
	}
	conn->rx.parsed = conn->rx.producer;
	ring_rx_release(conn);
}

#define RING_RX_BUDGET 64u

/** Handles the failure of the connection's link. */
void ring_rx_down_cold(struct ring_conn *conn, int err);

/** Handles the events that are not a batch. */
static inline void ring_rx_event_cold(struct ring_conn *conn, const struct dev_event *ev)
{
	switch (ev->kind) {
	case DEV_EV_READ: ring_conn_read_done_cold(conn, ev->value); break;
	case DEV_EV_ACK: ring_ack_received(conn); break;
	case DEV_EV_GET: ring_bulk_get_done(conn, ev->get); break;
	case DEV_EV_ACCESS: ring_access_ended(conn, (uint32_t)ev->value); break;
	case DEV_EV_WITHDRAWN: eng_conn_withdrawn(&conn->eng); break;
	case DEV_EV_DOWN: ring_rx_down_cold(conn, ev->status); break;
	case DEV_EV_IMM: break;
	}
}

UTIL_INLINE void ring_rx_flush_dirty(const struct dev_link_ops *link_ops,
				     struct ring_transport *transport)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->dirty) {
		if (ring_flush_dirty(link_ops, UTIL_CONTAINER_OF(it, struct ring_conn, dirty_link)))
			util_list_remove(it);
	}
}

/** Processes arrived events. Returns true if there may be more. */
UTIL_INLINE bool ring_rx_poll(const struct dev_ops *dev, const struct dev_link_ops *link_ops,
			      struct ring_transport *transport)
{
	unsigned budget = RING_RX_BUDGET;
	struct dev_event ev;

	if (link_ops->write_imm_ack)
		transport->polls++;
	while (dev->poll(transport->dev, &ev)) {
		struct ring_conn *conn = ev.link->user;

		if (UTIL_UNLIKELY(ev.kind != DEV_EV_IMM)) {
			ring_rx_event_cold(conn, &ev);
		} else {
			ring_rx_batch(link_ops, conn, ev.imm);
			if (link_ops->write_imm_ack)
				ring_ack_on_progress(conn, ev.imm);
		}
		if (!--budget)
			return true;
	}
	return false;
}

/** Runs the progress of an engine with this as first transport. */
UTIL_INLINE void ring_rx_progress(const struct dev_ops *dev, const struct dev_link_ops *link_ops,
				  struct core_engine *engine)
{
	struct ring_transport *transport = ring_transport_of(eng_transport_at(engine, 0));

	ring_rx_poll(dev, link_ops, transport);
	if (UTIL_UNLIKELY(eng_has_attention(engine)))
		eng_progress_cold(engine);
	if (UTIL_UNLIKELY(transport->dirty.next != &transport->dirty))
		ring_rx_flush_dirty(link_ops, transport);
	if (link_ops->write_imm_ack)
		ring_ack_progress(transport);
}

#endif
