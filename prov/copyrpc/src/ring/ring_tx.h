/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a message get onto the ring, and when does the batch leave?
 * (docs/ring-protocol.md, sections 4 to 6)
 *
 * append: admission (credit, room), wrap if it must, open a batch if none is, write header,
 * extension, payload and zero padding. close: write the metadata with what we released and grant,
 * and post it. Every function takes the device's ops as a compile-time constant and is inlined, so
 * there is one loop per device and no indirect call.
 *
 * Must never block, allocate, or touch bytes that the peer has not released.
 * Shown by test/unit/ring/test_ring_flow.c (two ends, millions of random steps, invariant after each).
 */
#ifndef RING_TX_H
#define RING_TX_H

#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_conn.h"
#include "ring/ring_flush.h"
#include "ring/ring_late.h"
#include "util/copy.h"

#define RING_INLINE static inline __attribute__((always_inline))

/** Does the device move the bytes, so that what was sent arrives later? A constant. */
RING_INLINE bool ring_tx_is_late(const struct dev_link_ops *dev)
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
		tx->join_end = 0;
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
	conn->rx.told = conn->rx.consumer;
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
	       conn->rx.consumer - conn->rx.told <= WIRE_IMM_NEWS_MAX * WIRE_ALIGN &&
	       tx->flow.producer - tx->flush_start <= WIRE_IMM_UNITS_MAX * WIRE_ALIGN;
}

/** Says in the open batch's metadata, or in its immediate alone, what it tells: how it leaves. */
RING_INLINE struct ring_post ring_tx_seal(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	uint32_t news = (uint32_t)(conn->rx.consumer - conn->rx.told) / WIRE_ALIGN;
	uint32_t len = (uint32_t)(tx->flow.producer - tx->flush_start);
	struct ring_post post = { .off = ring_off(tx->flush_start, tx->len),
				  .len = len,
				  .imm = len / WIRE_ALIGN };

	if (ring_tx_is_late(dev))
		post.len = ring_tx_sent_len(tx, post.off, len, tx->msg_cnt);
	if (!ring_tx_is_late(dev) || !ring_tx_is_short(conn)) {
		ring_tx_meta(conn, tx->flush_start, tx->msg_cnt);
		return post;
	}
	conn->rx.told = conn->rx.consumer;
	post.off += WIRE_META_LEN;
	post.len -= WIRE_META_LEN;
	post.imm = wire_imm_short(post.imm, news);
	return post;
}

/** Posts the batch before flush_start so that its end is told: false, it was not posted. */
RING_INLINE bool ring_tx_post_asking(const struct dev_link_ops *dev, struct ring_conn *conn,
				     struct ring_post post)
{
	struct ring_late *late = &conn->late;
	struct ring_tx *tx = &conn->tx;

	if (tx->post_cnt || late->ack_tail - late->ack_head == RING_ACKS_MAX ||
	    dev->write_imm_ack(conn->link, post.off, post.len, post.imm))
		return false;
	late->ack_mark[late->ack_tail++ & (RING_ACKS_MAX - 1)] = tx->flush_start;
	return true;
}

/** Posts the batch before flush_start; whoever waits for its arrival will hear of it. */
RING_INLINE void ring_tx_post_batch(const struct dev_link_ops *dev, struct ring_conn *conn,
				    struct ring_post post, uint32_t msg_cnt)
{
	if (ring_tx_is_late(dev) && conn->late.awaited) {
		conn->late.awaited = false;
		/* Of what was held, core has said whether somebody waits. */
		if (!conn->late.fresh && ring_late_is_idle(conn)) {
			ring_tx_post(dev, conn, post);
			return;
		}
		if (ring_late_should_ask(&conn->late, msg_cnt) &&
		    ring_tx_post_asking(dev, conn, post))
			return;
		ring_late_watch(conn);
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
	tx->lone_room = 0;
	ring_tx_meta(conn, start, WIRE_COUNT_WRAP);
	tx->flush_start = tx->flow.producer;
	ring_tx_post(dev, conn, post);
}

/** Opens a batch where the producer stands (the caller saw that it fits before the end). */
RING_INLINE void ring_tx_open(const struct dev_link_ops *dev, struct ring_tx *tx)
{
	tx->flush_start = tx->flow.producer;
	tx->flow.producer += WIRE_META_LEN;
	tx->msg_cnt = 0;
	tx->open = true;
	if (!ring_tx_is_late(dev))
		tx->lone_room = 0;
}

/** Bytes that a message of `span` moves in all: metadata, skip, itself. */
static inline uint64_t ring_tx_move(const struct ring_tx *tx, uint64_t span)
{
	if (tx->open && !ring_must_wrap(tx->flow.producer, span, tx->len))
		return span;
	return ring_move(tx->flow.producer, WIRE_META_LEN + span, tx->len);
}

/** Makes an open batch with `span` contiguous bytes at the producer, wrapping if it must. */
RING_INLINE void ring_tx_place_cold(const struct dev_link_ops *dev, struct ring_conn *conn,
				    uint64_t span)
{
	struct ring_tx *tx = &conn->tx;

	if (tx->open && !ring_must_wrap(tx->flow.producer, span, tx->len))
		return;
	if (tx->open)
		ring_tx_close(dev, conn);
	if (ring_off(tx->flow.producer, tx->len) &&
	    ring_must_wrap(tx->flow.producer, WIRE_META_LEN + span, tx->len))
		ring_tx_wrap(dev, conn);
	ring_tx_open(dev, tx);
}

RING_INLINE void ring_tx_place(const struct dev_link_ops *dev, struct ring_conn *conn,
			       uint64_t span)
{
	struct ring_tx *tx = &conn->tx;
	uint64_t need = tx->open ? span : WIRE_META_LEN + span;

	if (UTIL_UNLIKELY(ring_must_wrap(tx->flow.producer, need, tx->len)))
		ring_tx_place_cold(dev, conn, span);
	else if (!tx->open)
		ring_tx_open(dev, tx);
}

/** Closes the open batch if a message of `span` bytes does better in a packet of its own. */
RING_INLINE void ring_tx_end_packet(const struct dev_link_ops *dev,
				    const struct ring_flush_cfg *cfg, struct ring_conn *conn,
				    uint64_t span)
{
	struct ring_tx *tx = &conn->tx;
	uint64_t len = tx->flow.producer - tx->flush_start;

	if (!cfg->packet_len || !tx->open || tx->post_cnt)
		return;
	if (ring_tx_is_late(dev) && ring_tx_is_short(conn))
		len -= WIRE_META_LEN;
	if (ring_flush_before(cfg, len, span))
		ring_tx_close(dev, conn);
}

/** Starts a READ of the peer's consumer word: 1 and *pos, 0 and DEV_EV_READ follows, -FI_EAGAIN. */
RING_INLINE int ring_tx_read_start(const struct dev_link_ops *dev, struct ring_conn *conn,
				   uint64_t *pos)
{
	int ret = dev->read_consumer(conn->link, pos);

	if (ret == 0) {
		conn->read = RING_READ_OUT;
		conn->read_known = conn->tx.flow.remote_consumer;
		conn->read_mark = conn->tx.flush_start - ring_tx_waiting(&conn->tx);
	}
	return ret;
}

/** Asks the device how far the peer got: true if there is news now. */
RING_INLINE bool ring_tx_read_consumer(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	uint64_t before = conn->tx.flow.remote_consumer;
	uint64_t pos;

	if (UTIL_UNLIKELY(conn->read != RING_READ_IDLE) && !ring_conn_may_read_cold(conn))
		return false;
	if (ring_tx_read_start(dev, conn, &pos) != 1)
		return false;
	if (!ring_tx_released(&conn->tx, pos))
		ring_conn_fail_cold(conn, -FI_EIO, "consumer word beyond what was sent");
	return conn->tx.flow.remote_consumer != before;
}

/** May a message (not a reply) of `span` bytes go? Looks at the consumer word before it says no. */
RING_INLINE bool ring_tx_admit(const struct dev_link_ops *dev, struct ring_conn *conn,
			       uint64_t span)
{
	struct ring_tx *tx = &conn->tx;

	if (UTIL_LIKELY(ring_flow_admits(&tx->flow, ring_tx_move(tx, span))))
		return true;
	return ring_tx_read_consumer(dev, conn) &&
	       ring_flow_admits(&tx->flow, ring_tx_move(tx, span));
}

/*
 * What was just written in small pieces must not be read back in larger ones: the load would wait
 * until those stores have left the store buffer, on every message. So the header goes out field by
 * field, and the usual extension (tag, 32 bits of data) as the two words that core/ wrote.
 */
static inline void ring_tx_write_hdr(uint8_t *dst, struct wire_hdr hdr)
{
	memcpy(dst + offsetof(struct wire_hdr, call_id), &hdr.call_id, sizeof(hdr.call_id));
	memcpy(dst + offsetof(struct wire_hdr, piggyback), &hdr.piggyback, sizeof(hdr.piggyback));
	memcpy(dst + offsetof(struct wire_hdr, len), &hdr.len, sizeof(hdr.len));
}

static inline void ring_tx_write_ext(uint8_t *dst, const struct core_frame *frame)
{
	if (UTIL_UNLIKELY(frame->ext_len != 12)) {
		util_copy(dst, frame->ext, frame->ext_len);
		return;
	}
	memcpy(dst, &frame->ext[0], 8);
	memcpy(dst + 8, &frame->ext[1], 4);
}

/** Writes header, extension and payload at the producer; the batch is open. */
RING_INLINE void ring_tx_write(struct ring_tx *tx, struct wire_hdr hdr, uint32_t span,
			       const struct core_frame *frame)
{
	uint8_t *dst = tx->base + ring_off(tx->flow.producer, tx->len);

	ring_tx_write_hdr(dst, hdr);
	dst += WIRE_HDR_LEN;
	ring_tx_write_ext(dst, frame);
	dst += frame->ext_len;
	if (UTIL_LIKELY(frame->len && frame->iov_cnt == 1)) /* without bytes iov may be NULL */
		util_copy(dst, (const uint8_t *)frame->iov[0].iov_base + frame->iov_off,
			  frame->len);
	else if (frame->len)
		util_iov_gather(dst, frame->iov, frame->iov_cnt, frame->iov_off, frame->len);
	tx->flow.producer += span;
	tx->msg_cnt++;
}

/**
 * Has the peer something of ours that it has not released? Looks once per batch, it costs a line; and
 * only where the link answers at once: elsewhere the answer would be a round trip late. Nor behind a batch that
 * was full: the peer has hardly seen it, and is about to write that line.
 */
RING_INLINE bool ring_tx_in_flight(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				   struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;

	if (cfg->looks && tx->flow.remote_consumer != tx->flush_start && tx->msg_cnt == 1 &&
	    !tx->filled)
		ring_tx_read_consumer(dev, conn);
	return tx->flow.remote_consumer != tx->flush_start;
}

/**
 * How far a batch that is held may grow before anybody has to think again. It is compared by value, so not in the
 * upper half of all positions, where what is added to one may be a small number.
 */
static inline uint64_t ring_tx_hold_end(const struct ring_flush_cfg *cfg, const struct ring_tx *tx)
{
	uint64_t by_policy = ring_flush_full(cfg, tx->flush_start);
	uint64_t by_wrap = (tx->flush_start | (tx->len - 1)) + 1;
	uint64_t by_room = ring_flow_limit(&tx->flow) + WIRE_ALIGN;
	uint64_t end = by_policy < by_wrap ? by_policy : by_wrap;

	if (UTIL_UNLIKELY((int64_t)tx->flow.producer < 0))
		return 0;
	return end < by_room ? end : by_room;
}

/** Leaves the open batch to the progress call, or to what makes it long enough. */
RING_INLINE void ring_tx_hold(const struct ring_flush_cfg *cfg, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;

	tx->left = false;
	tx->filled = false;
	tx->hold_end = ring_tx_hold_end(cfg, tx);
	tx->join_end = tx->flow.remote_consumer != tx->flush_start ? tx->hold_end : 0;
	ring_conn_mark(conn);
}

/** ring_tx.lone_room, where no batch is open. */
static inline uint64_t ring_tx_lone_room(const struct ring_conn *conn)
{
	const struct ring_tx *tx = &conn->tx;
	uint64_t by_wrap = tx->len - ring_off(tx->flow.producer, tx->len) - WIRE_ALIGN;
	int64_t by_room = (int64_t)(ring_flow_limit(&tx->flow) - tx->flow.producer);

	if (by_room < 0 || tx->post_cnt || tx->flow.granted != tx->flow.grant_max ||
	    !conn->link->inband_len)
		return 0;
	return by_wrap < (uint64_t)by_room ? by_wrap : (uint64_t)by_room;
}

/** A batch has left with its last message. Two in a row: the next ones will be like them. */
RING_INLINE void ring_tx_left(struct ring_conn *conn)
{
	if (conn->tx.left)
		conn->tx.lone_room = ring_tx_lone_room(conn);
	conn->tx.left = true;
}

/** Lets the batch go or leaves it to the progress call. */
RING_INLINE void ring_tx_flush_by_policy(const struct dev_link_ops *dev,
					 const struct ring_flush_cfg *cfg, struct ring_conn *conn,
					 unsigned flags)
{
	struct ring_tx *tx = &conn->tx;
	bool in_flight = !(flags & CORE_SEND_NOW) && ring_tx_in_flight(dev, cfg, conn);

	if (ring_tx_is_late(dev)) {
		conn->late.fresh = !(flags & CORE_SEND_NOW);
		conn->late.awaited = true; /* perhaps; of what joins it, nobody asks here */
	}
	if (UTIL_LIKELY(ring_flush_now(cfg, tx->flush_start, tx->flow.producer,
				       flags & CORE_SEND_MORE, in_flight) &&
			!tx->post_cnt)) {
		tx->filled = tx->msg_cnt > 1 &&
			     ring_flush_is_full(cfg, tx->flush_start, tx->flow.producer);
		assert(!tx->filled || !util_list_is_empty(&conn->dirty_link)); /* it was held */
		ring_tx_close(dev, conn);
		if (!ring_tx_is_late(dev))
			ring_tx_left(conn);
	} else {
		ring_tx_hold(cfg, conn);
	}
	if (ring_tx_is_late(dev))
		conn->late.fresh = false;
}

/** core_chan_ops.send */
RING_INLINE int ring_tx_send(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
			     struct ring_conn *conn, const struct core_frame *frame, unsigned flags)
{
	uint32_t len = frame->ext_len + (uint32_t)frame->len;
	uint32_t span = wire_msg_span(len);
	struct wire_hdr hdr = { .call_id = frame->op, .piggyback = 0, .len = len };

	if (UTIL_UNLIKELY(conn->eng.err))
		return conn->eng.err;
	ring_tx_end_packet(dev, cfg, conn, span);
	if (UTIL_UNLIKELY(!ring_tx_admit(dev, conn, span)))
		return -FI_EAGAIN;
	ring_tx_place(dev, conn, span);
	ring_tx_write(&conn->tx, hdr, span, frame);
	ring_tx_flush_by_policy(dev, cfg, conn, flags);
	return 0;
}

/** Writes a response, as ring_tx_write does. */
RING_INLINE void ring_tx_write_answer(struct ring_tx *tx, uint64_t hdr, const struct iovec *iov,
				      size_t iov_cnt, uint32_t len, uint32_t span)
{
	uint8_t *dst = tx->base + ring_off(tx->flow.producer, tx->len);

	memcpy(dst, &hdr, sizeof(hdr));
	memcpy(dst + 8, &len, sizeof(len));
	if (UTIL_LIKELY(iov_cnt == 1))
		util_copy(dst + WIRE_HDR_LEN, iov[0].iov_base, len);
	else
		util_iov_gather(dst + WIRE_HDR_LEN, iov, iov_cnt, 0, len);
	tx->flow.producer += span;
	tx->msg_cnt++;
}

/**
 * The header of a message of one buffer, and its extension in two words: where the buffer's bytes go. hdr:
 * call_id, and the allowance in its upper half.
 */
RING_INLINE uint8_t *ring_tx_write_head_at(uint8_t *dst, uint64_t hdr, uint64_t ext0, uint64_t ext1,
					   uint64_t ext_len, size_t len)
{
	uint32_t hdr_len = (uint32_t)(ext_len + len);

	memcpy(dst, &hdr, sizeof(hdr));
	memcpy(dst + 8, &hdr_len, sizeof(hdr_len));
	memcpy(dst + WIRE_HDR_LEN, &ext0, sizeof(ext0));     /* both within the first 32 bytes, */
	memcpy(dst + WIRE_HDR_LEN + 8, &ext1, sizeof(ext1)); /* and 0 beyond ext_len */
	return dst + WIRE_HDR_LEN + ext_len;
}

/** The same at the producer. */
RING_INLINE uint8_t *ring_tx_write_head(const struct ring_tx *tx, uint64_t hdr, uint64_t ext0,
					uint64_t ext1, uint64_t ext_len, size_t len)
{
	return ring_tx_write_head_at(tx->base + ring_off(tx->flow.producer, tx->len), hdr, ext0,
				     ext1, ext_len, len);
}

/** Writes a message of one buffer, as ring_tx_write does; hdr as above. */
RING_INLINE void ring_tx_write_buf(struct ring_tx *tx, uint64_t hdr, uint64_t ext0, uint64_t ext1,
				   uint64_t ext_len, const void *buf, size_t len, uint64_t span)
{
	util_copy(ring_tx_write_head(tx, hdr, ext0, ext1, ext_len, len), buf, len);
	tx->flow.producer += span;
	tx->msg_cnt++;
}

/** memcpy as the last thing that a function does, which returns `ret`: it needs no frame then. */
static __attribute__((noinline, unused)) int ring_tx_copy_long(void *dst, const void *src,
							       size_t len, int ret)
{
	memcpy(dst, src, len);
	return ret;
}

/** Does such a message join a batch that is held and stays so? */
RING_INLINE bool ring_tx_may_join(const struct ring_conn *conn, uint64_t label, size_t len)
{
	uint64_t ext_len = label >> CORE_LABEL_EXT_SHIFT; /* with a flag nothing has room for it */

	return conn->tx.flow.producer + wire_long_span(ext_len + len) < conn->tx.join_end;
}

/** core_chan_ops.send_buf where it may: there is nothing to decide. */
RING_INLINE int ring_tx_join(const struct dev_link_ops *dev, struct ring_conn *conn, uint64_t label,
			     uint64_t ext0, uint64_t ext1, const void *buf, size_t len)
{
	uint64_t ext_len = label >> CORE_LABEL_EXT_SHIFT;
	struct ring_tx *tx = &conn->tx;
	uint8_t *dst = ring_tx_write_head(tx, core_label_op(label), ext0, ext1, ext_len, len);

	tx->flow.producer += wire_long_span(ext_len + len);
	tx->msg_cnt++;
	if (len > UTIL_COPY_SHORT)
		return ring_tx_copy_long(dst, buf, len, ring_tx_is_late(dev));
	util_copy_short(dst, buf, len);
	return ring_tx_is_late(dev);
}

/** core_chan_ops.send_buf otherwise. */
RING_INLINE int ring_tx_send_buf(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				 struct ring_conn *conn, uint64_t label, uint64_t ext0,
				 uint64_t ext1, const void *buf, size_t len)
{
	uint32_t ext_len = core_label_ext_len(label);
	uint32_t span = wire_msg_span(ext_len + (uint32_t)len);

	if (UTIL_UNLIKELY(conn->eng.err))
		return conn->eng.err;
	ring_tx_end_packet(dev, cfg, conn, span);
	if (UTIL_UNLIKELY(!ring_tx_admit(dev, conn, span)))
		return -FI_EAGAIN;
	ring_tx_place(dev, conn, span);
	ring_tx_write_buf(&conn->tx, core_label_op(label), ext0, ext1, ext_len, buf, len, span);
	ring_tx_flush_by_policy(dev, cfg, conn, core_label_flags(label));
	return ring_tx_is_late(dev);
}

/** core_chan_ops.call: the operation word is the first four bytes of the payload. */
RING_INLINE int ring_tx_call(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
			     struct ring_conn *conn, const struct core_frame *frame,
			     uint32_t allowance, void *context)
{
	struct ring_tx *tx = &conn->tx;
	uint32_t len = (uint32_t)sizeof(frame->op) + frame->ext_len + (uint32_t)frame->len;
	uint32_t span = wire_msg_span(len);
	uint32_t reserve = wire_reservation(allowance);
	struct core_frame out = *frame;
	struct wire_hdr hdr;
	int ret;

	if (UTIL_UNLIKELY(conn->eng.err))
		return conn->eng.err;
	ring_tx_end_packet(dev, cfg, conn, span);
	if (tx->credit < reserve || !ring_tx_admit(dev, conn, span))
		return -FI_EAGAIN;
	ret = util_idmap_alloc(&conn->calls, context, &hdr.call_id);
	if (ret)
		return ret;
	hdr.piggyback = wire_msg_span(allowance) / WIRE_ALIGN;
	hdr.len = len;
	memmove((uint8_t *)out.ext + sizeof(out.op), frame->ext, frame->ext_len);
	memcpy(out.ext, &frame->op, sizeof(out.op));
	out.ext_len += (uint32_t)sizeof(out.op);
	tx->credit -= reserve;
	ring_tx_place(dev, conn, span);
	ring_tx_write(tx, hdr, span, &out);
	ring_tx_flush_by_policy(dev, cfg, conn, 0);
	return 0;
}

/**
 * May this call or answer join the batch that is held, which then stays held? As ring_tx_join, but
 * that FI_MORE is known to hold.
 */
static inline bool ring_tx_joins(const struct ring_tx *tx, const struct ring_flush_cfg *cfg,
				 uint32_t span, unsigned flags)
{
	return tx->flow.producer + span < tx->hold_end &&
	       ((flags & CORE_SEND_MORE) ||
		(!cfg->cheap && tx->flow.remote_consumer != tx->flush_start));
}

/** core_chan_ops.reply_iov: room was reserved when the credit was granted. */
RING_INLINE int ring_tx_reply_iov(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
				  struct ring_conn *conn, struct core_call_ref ref,
				  const struct iovec *iov, size_t iov_cnt, size_t len,
				  unsigned flags)
{
	uint64_t hdr = ref.call_id | WIRE_ID_RESPONSE; /* and no allowance */
	uint32_t span = wire_msg_span((uint32_t)len);
	struct ring_flow *flow = &conn->tx.flow;
	uint32_t reserve = wire_reservation(ref.allowance);
	bool joins;

	if (len > ref.allowance)
		return -FI_EMSGSIZE;
	if (UTIL_UNLIKELY(conn->eng.err))
		return 0; /* nobody waits for it any more */
	assert(flow->claimed >= reserve);
	joins = ring_tx_joins(&conn->tx, cfg, span, flags);
	if (!joins) {
		ring_tx_end_packet(dev, cfg, conn, span);
		ring_tx_place(dev, conn, span);
	}
	ring_tx_write_answer(&conn->tx, hdr, iov, iov_cnt, (uint32_t)len, span);
	flow->claimed -= reserve;
	flow->granted -= reserve;
	if (!joins)
		ring_tx_flush_by_policy(dev, cfg, conn, flags);
	return 0;
}

/** core_chan_ops.reply */
RING_INLINE int ring_tx_reply(const struct dev_link_ops *dev, const struct ring_flush_cfg *cfg,
			      struct ring_conn *conn, struct core_call_ref ref, const void *buf,
			      size_t len)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return ring_tx_reply_iov(dev, cfg, conn, ref, &iov, 1, len, 0);
}

/** A batch without messages (or a marker, at the end of a lap): tells consumer and grant. */
RING_INLINE bool ring_tx_credit_only(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;

	if (tx->post_cnt || !ring_flow_admits_control(&tx->flow, WIRE_META_LEN))
		return false;
	if (ring_must_wrap(tx->flow.producer, WIRE_META_LEN, tx->len)) {
		ring_tx_wrap(dev, conn);
		return true;
	}
	ring_tx_open(dev, tx);
	ring_tx_close(dev, conn);
	return true;
}

/**
 * Are there bytes that might not have arrived? Where the device moves them, a READ behind them tells:
 * it comes back when they are placed. For fi_close, which asks until there are none; the peer is
 * told what we have taken in, so that it knows of its own messages before it hears goodbye.
 */
RING_INLINE bool ring_tx_is_busy(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;
	uint64_t pos;

	if (tx->open || tx->post_cnt)
		return !conn->eng.err;
	if (ring_tx_is_late(dev) && !conn->eng.err &&
	    conn->rx.consumer - conn->rx.told > WIRE_META_LEN)
		ring_tx_credit_only(dev, conn);
	if ((conn->link->caps & DEV_CAP_DIRECT) || conn->eng.err ||
	    tx->flow.remote_consumer == tx->flush_start || tx->placed == tx->flush_start)
		return false;
	if (conn->read != RING_READ_OUT && ring_tx_read_start(dev, conn, &pos) == 1)
		return false;
	return true;
}

/** Has the peer something to hear that no message carries? */
static inline bool ring_tx_control_due(const struct ring_conn *conn)
{
	return conn->rx.consumer - conn->rx.told > RING_TOLD_MAX(conn->rx.len) ||
	       ring_flow_grant_due(&conn->tx.flow);
}

/** What a progress call does for a marked connection: true when nothing is left to do. */
RING_INLINE bool ring_tx_progress(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	struct ring_tx *tx = &conn->tx;

	tx->filled = false;
	if (tx->post_cnt)
		ring_tx_repost(dev, conn);
	if (tx->post_cnt)
		return false;
	if (tx->open) {
		ring_tx_close(dev, conn);
		return !tx->post_cnt;
	}
	if (!ring_tx_control_due(conn) || ring_tx_credit_only(dev, conn))
		return !tx->post_cnt;
	ring_tx_read_consumer(dev, conn);
	return false;
}

#endif
