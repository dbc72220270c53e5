/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Encoding of messages: header, extension and payload, at the producer of an open batch. Called by
 * the send side after reservation.
 *
 * Tested by test/unit/ring/test_ring_tx_write.c.
 */
#ifndef RING_TX_WRITE_H
#define RING_TX_WRITE_H

#include <string.h>

#include "core/core_chan.h"
#include "ring/ring_conn.h"
#include "ring/ring_tx_close.h"
#include "util/copy.h"

/*
 * Bytes written in small pieces must not be read back in larger ones: the load would stall until
 * those stores have left the store buffer, on every message. The header is therefore written field
 * by field, and the usual extension (tag, 32 bits of data) as the two words that core wrote.
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

/** Writes header, extension and payload at the producer. The batch is open. */
RING_INLINE void ring_tx_write(struct ring_tx *tx, struct wire_hdr hdr, uint32_t span,
			       const struct core_frame *frame)
{
	uint8_t *dst = tx->base + ring_off(tx->flow.producer, tx->len);

	ring_tx_write_hdr(dst, hdr);
	dst += WIRE_HDR_LEN;
	ring_tx_write_ext(dst, frame);
	dst += frame->ext_len;
	if (UTIL_LIKELY(frame->len && frame->iov_cnt == 1)) /* Without bytes iov may be NULL */
		util_copy(dst, (const uint8_t *)frame->iov[0].iov_base + frame->iov_off,
			  frame->len);
	else if (frame->len)
		util_iov_gather(dst, frame->iov, frame->iov_cnt, frame->iov_off, frame->len);
	tx->flow.producer += span;
	tx->msg_cnt++;
}

/** Writes a response at the producer. The batch is open. */
RING_INLINE void ring_tx_write_reply(struct ring_tx *tx, uint64_t hdr, const struct iovec *iov,
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
 * Writes the header of a message of one buffer, and its extension as two words. Returns the address
 * for the buffer's bytes. hdr: call_id, and the maximum response size in its upper half.
 */
RING_INLINE uint8_t *ring_tx_write_head_at(uint8_t *dst, uint64_t hdr, uint64_t ext0, uint64_t ext1,
					   uint64_t ext_len, size_t len)
{
	uint32_t hdr_len = (uint32_t)(ext_len + len);

	memcpy(dst, &hdr, sizeof(hdr));
	memcpy(dst + 8, &hdr_len, sizeof(hdr_len));
	memcpy(dst + WIRE_HDR_LEN, &ext0, sizeof(ext0));     /* Both within the first 32 bytes, */
	memcpy(dst + WIRE_HDR_LEN + 8, &ext1, sizeof(ext1)); /* and 0 beyond ext_len */
	return dst + WIRE_HDR_LEN + ext_len;
}

/** Writes header and extension at the producer, like ring_tx_write_head_at. */
RING_INLINE uint8_t *ring_tx_write_head(const struct ring_tx *tx, uint64_t hdr, uint64_t ext0,
					uint64_t ext1, uint64_t ext_len, size_t len)
{
	return ring_tx_write_head_at(tx->base + ring_off(tx->flow.producer, tx->len), hdr, ext0,
				     ext1, ext_len, len);
}

/**
 * Writes a message of one buffer at the producer. The batch is open. hdr: see
 * ring_tx_write_head_at.
 */
RING_INLINE void ring_tx_write_buf(struct ring_tx *tx, uint64_t hdr, uint64_t ext0, uint64_t ext1,
				   uint64_t ext_len, const void *buf, size_t len, uint64_t span)
{
	util_copy(ring_tx_write_head(tx, hdr, ext0, ext1, ext_len, len), buf, len);
	tx->flow.producer += span;
	tx->msg_cnt++;
}

/**
 * Copies as the last step of a function that returns `ret`. The tail call spares the function a
 * frame.
 */
static __attribute__((noinline, unused)) int ring_tx_copy_long(void *dst, const void *src,
							       size_t len, int ret)
{
	memcpy(dst, src, len);
	return ret;
}

#endif
