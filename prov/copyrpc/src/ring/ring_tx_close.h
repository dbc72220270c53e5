/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a closed batch say, and how is it handed to the device? (docs/ring-protocol.md, sections 4 and 6)
 *
 * Closing writes the metadata: what we released, what we grant, how many messages follow; or says all that in the
 * immediate alone, where the device moves the bytes. What the device has no room for waits, in order.
 *
 * Functions of ring_tx_*.h take the device's ops as a compile-time constant and are inlined, so there is
 * one loop per device and no indirect call. They never block, allocate, or touch bytes that the peer has not
 * released.
 *
 * Shown by test/unit/ring/test_ring_tx_close.c.
 */
#ifndef RING_TX_CLOSE_H
#define RING_TX_CLOSE_H

#include <string.h>

#include "ring/ring_conn.h"
#include "ring/ring_ack.h"

#define RING_INLINE static inline __attribute__((always_inline))

/** Does the device move the bytes, so that what was sent arrives later? A constant. */
RING_INLINE bool ring_tx_is_async(const struct dev_link_ops *dev)
{
	return dev->write_imm_ack;
}

/** Bytes that are closed and that the device has not taken. */
static inline uint64_t ring_tx_waiting(const struct ring_tx *tx)
{
	uint64_t len = 0;
	uint32_t i;

	for (i = 0; i < tx->post_cnt; i++)
		len += (uint64_t)wire_imm_units(tx->posts[i].imm) * WIRE_ALIGN;
	return len;
}

/** The peer is known to have released everything before `pos`; false: it cannot have. */
static inline bool ring_tx_released(struct ring_tx *tx, uint64_t pos)
{
	uint64_t advance = pos - tx->flow.remote_consumer;
	uint64_t sent = tx->flush_start - tx->flow.remote_consumer;

	if (UTIL_UNLIKELY(tx->post_cnt))
		sent -= ring_tx_waiting(tx);
	if (UTIL_UNLIKELY(advance > sent))
		return (int64_t)advance <
		       0; /* merely old: a READ and a batch overtake each other */
	if (UTIL_UNLIKELY(pos & (WIRE_ALIGN - 1)))
		return false;
	tx->flow.remote_consumer = pos;
	if (pos == tx->flush_start)
		tx->append_idle_end = 0;
	return true;
}

/** Hands a closed batch or marker to the device, behind those that wait already. */
RING_INLINE void ring_tx_post(const struct dev_link_ops *dev, struct ring_conn *conn,
			      struct ring_post post)
{
	struct ring_tx *tx = &conn->tx;

	if (UTIL_LIKELY(!tx->post_cnt) &&
	    UTIL_LIKELY(!dev->write_imm(conn->link, post.off, post.len, post.imm)))
		return;
	assert(tx->post_cnt < RING_POSTS_MAX);
	tx->posts[tx->post_cnt++] = post;
	ring_conn_mark(conn);
}

/** Tries again what the device had no room for. */
RING_INLINE void ring_tx_repost(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	uint32_t done = 0;

	while (done < tx->post_cnt && !dev->write_imm(conn->link, tx->posts[done].off,
						      tx->posts[done].len, tx->posts[done].imm))
		done++;
	tx->post_cnt -= done;
	memmove(tx->posts, tx->posts + done, tx->post_cnt * sizeof(tx->posts[0]));
}

/** All of the metadata but the link's own word. */
RING_INLINE void ring_tx_write_meta(struct wire_meta *meta, uint64_t consumer, uint64_t grant,
				    uint32_t count)
{
	meta->consumer_pos = consumer;
	meta->credit_grant = grant;
	meta->message_count = count;
	meta->reserved = 0;
}

/** Writes metadata at `pos`: what we released, what we grant, how many messages follow. */
RING_INLINE void ring_tx_meta(struct ring_conn *conn, uint64_t pos, uint32_t count)
{
	struct ring_tx *tx = &conn->tx;
	struct wire_meta *meta = (struct wire_meta *)(tx->base + ring_off(pos, tx->len));
	uint64_t grant = 0;

	if (tx->flow.granted != tx->flow.grant_max)
		grant = ring_flow_grantable(&tx->flow);
	ring_tx_write_meta(meta, conn->rx.consumer, grant, count);
	if (!conn->link->inband_len)
		meta->link_word = 0;
	conn->rx.advertised = conn->rx.consumer;
	tx->flow.granted += grant;
}

/** Bytes of a closed batch that travel: not the padding behind a lone message. */
static inline uint32_t ring_tx_sent_len(const struct ring_tx *tx, uint64_t off, uint32_t len,
					uint32_t msg_cnt)
{
	uint32_t body;

	if (msg_cnt != 1)
		return len;
	memcpy(&body, tx->base + off + WIRE_META_LEN + offsetof(struct wire_hdr, len),
	       sizeof(body));
	return WIRE_META_LEN + WIRE_HDR_LEN + body;
}

/** May the metadata of the open batch, should it close now, go into its immediate? */
static inline bool ring_tx_is_short(const struct ring_conn *conn)
{
	const struct ring_tx *tx = &conn->tx;

	return tx->msg_cnt && tx->flow.granted == tx->flow.grant_max &&
	       conn->rx.consumer - conn->rx.advertised <= WIRE_IMM_NEWS_MAX * WIRE_ALIGN &&
	       tx->flow.producer - tx->flush_start <= WIRE_IMM_UNITS_MAX * WIRE_ALIGN;
}

/** Says in the open batch's metadata, or in its immediate alone, what it tells: how it leaves. */
RING_INLINE struct ring_post ring_tx_seal(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	uint32_t news = (uint32_t)(conn->rx.consumer - conn->rx.advertised) / WIRE_ALIGN;
	uint32_t len = (uint32_t)(tx->flow.producer - tx->flush_start);
	struct ring_post post = { .off = ring_off(tx->flush_start, tx->len),
				  .len = len,
				  .imm = len / WIRE_ALIGN };

	if (ring_tx_is_async(dev))
		post.len = ring_tx_sent_len(tx, post.off, len, tx->msg_cnt);
	if (!ring_tx_is_async(dev) || !ring_tx_is_short(conn)) {
		ring_tx_meta(conn, tx->flush_start, tx->msg_cnt);
		return post;
	}
	conn->rx.advertised = conn->rx.consumer;
	post.off += WIRE_META_LEN;
	post.len -= WIRE_META_LEN;
	post.imm = wire_imm_short(post.imm, news);
	return post;
}

/** Posts the batch before flush_start so that its end is told: false, it was not posted. */
RING_INLINE bool ring_tx_post_asking(const struct dev_link_ops *dev, struct ring_conn *conn,
				     struct ring_post post)
{
	struct ring_ack *ack = &conn->ack;
	struct ring_tx *tx = &conn->tx;

	if (tx->post_cnt || ack->ack_tail - ack->ack_head == RING_ACKS_MAX ||
	    dev->write_imm_ack(conn->link, post.off, post.len, post.imm))
		return false;
	ack->ack_mark[ack->ack_tail++ & (RING_ACKS_MAX - 1)] = tx->flush_start;
	return true;
}

/** Posts the batch before flush_start; whoever waits for its arrival will hear of it. */
RING_INLINE void ring_tx_post_batch(const struct dev_link_ops *dev, struct ring_conn *conn,
				    struct ring_post post, uint32_t msg_cnt)
{
	if (ring_tx_is_async(dev) && conn->ack.awaited) {
		conn->ack.awaited = false;
		/* Of what was held, core has said whether somebody waits. */
		if (!conn->ack.fresh && ring_ack_is_idle(conn)) {
			ring_tx_post(dev, conn, post);
			return;
		}
		if (ring_ack_should_request(&conn->ack, msg_cnt) &&
		    ring_tx_post_asking(dev, conn, post))
			return;
		ring_ack_watch(conn);
	}
	ring_tx_post(dev, conn, post);
}

/** Closes the open batch and posts it. */
RING_INLINE void ring_tx_close(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	struct ring_post post = ring_tx_seal(dev, conn);
	uint32_t msg_cnt = tx->msg_cnt;

	tx->open = false;
	ring_conn_unhold(conn);
	tx->msg_cnt = 0;
	tx->flush_start = tx->flow.producer;
	ring_tx_post_batch(dev, conn, post, msg_cnt);
}

/** Posts a marker at the producer and moves to the next lap. There is at least 32 bytes of this one. */
RING_INLINE void ring_tx_wrap(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	uint64_t start = tx->flow.producer;
	uint64_t skip = ring_skip(start, tx->len);
	struct ring_post post = { .off = ring_off(start, tx->len),
				  .len = WIRE_META_LEN,
				  .imm = (uint32_t)(skip / WIRE_ALIGN) };

	tx->flow.producer += skip;
	tx->single_room = 0;
	ring_tx_meta(conn, start, WIRE_COUNT_WRAP);
	tx->flush_start = tx->flow.producer;
	ring_tx_post(dev, conn, post);
}

#endif
