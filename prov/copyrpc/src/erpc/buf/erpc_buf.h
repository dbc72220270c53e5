/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Message buffers that the device reads, in pools per size class. Called by tx/ and bulk/ to
 * assemble requests and responses.
 *
 * A message buffer is a header and the bytes, so one read of the device sends the first packet. The
 * headers of the other packets are in the endpoint's header ring (erpc_out.h), so the bytes are
 * contiguous. Pools of four sizes grow on demand and are registered where the device requires it.
 * An idle session owns no buffer.
 *
 * If the device does not copy, a freed buffer waits until tx_done has passed its last datagram
 * (dgram.h). Retransmitted buffers request a report; others return with the reports of other
 * packets.
 *
 * Owner: the endpoint. Tested in test/unit/erpc/buf/test_erpc_buf.c.
 */
#ifndef ERPC_BUF_ERPC_BUF_H
#define ERPC_BUF_ERPC_BUF_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/dgram.h"
#include "util/bits.h"
#include "util/list.h"
#include "wire/wire_erpc.h"

#define ERPC_BUF_TINY  192u /* bytes behind the header */
#define ERPC_BUF_SMALL 4096u
#define ERPC_BUF_LONG  (16u << 10)
#define ERPC_BUF_LARGE (66u << 10)

enum { ERPC_BUF_CLASSES = 4 };

struct erpc_buf {
	struct util_list link; /* the owner's; while free or waiting for the device: the pool's */
	const struct dev_mem *mem;
	uint32_t cap;
	uint32_t len;
	uint32_t last_tx; /* number of the last datagram sent from it; initially one that is done */
	uint8_t cls;
	bool sent;
	bool resent;    /* sent more than once */
	bool has_calls; /* a batch with calls: the response may wait for replies */
	uint8_t pad[8]; /* aligns the bytes to a cache line */
	uint8_t hdr[WIRE_ERPC_HDR_LEN];
	uint8_t data[];
};

static_assert(sizeof(struct erpc_buf) == 64, "bytes begin a cache line");

/** Pool of one size class. */
struct erpc_bufs_class {
	struct util_list free;
	struct util_list chunks;
};

struct erpc_bufs {
	const struct dev_dgram *dg;
	struct dev *dev;
	const struct dev_ops *dev_ops; /* NULL, or without mem_reg: nothing is registered */
	struct erpc_bufs_class cls[ERPC_BUF_CLASSES];
	struct util_list waiting; /* freed, the device may still read them */
	size_t used_cnt;          /* buffers in use */
	size_t mem;               /* bytes from the heap */
};

void erpc_bufs_init(struct erpc_bufs *b, const struct dev_dgram *dg, struct dev *dev,
		    const struct dev_ops *dev_ops);
/** Requires that the device has completed all datagrams. */
void erpc_bufs_fini(struct erpc_bufs *b);

/** Takes a free, empty buffer of the size class, which must have one. */
static inline struct erpc_buf *erpc_buf_take(struct erpc_bufs *b, unsigned cls)
{
	struct erpc_buf *buf =
		UTIL_CONTAINER_OF(util_list_pop(&b->cls[cls].free), struct erpc_buf, link);

	buf->len = 0;
	buf->sent = false;
	buf->resent = false;
	buf->has_calls = false;
	buf->last_tx = b->dg->tx_done - 1; /* none of the packets has left */
	b->used_cnt++;
	return buf;
}

/** Returns true if the smallest class has a free buffer. */
static inline bool erpc_buf_has_tiny(const struct erpc_bufs *b)
{
	return !util_list_is_empty(&b->cls[0].free);
}

struct erpc_buf *erpc_buf_alloc_cold(struct erpc_bufs *b, uint32_t len);

/** Returns an empty buffer for `len` bytes, or NULL without memory or beyond ERPC_BUF_LARGE. */
static inline struct erpc_buf *erpc_buf_alloc(struct erpc_bufs *b, uint32_t len)
{
	unsigned cls = len > ERPC_BUF_TINY;

	if (UTIL_LIKELY(len <= ERPC_BUF_SMALL && !util_list_is_empty(&b->cls[cls].free)))
		return erpc_buf_take(b, cls);
	return erpc_buf_alloc_cold(b, len);
}

/**
 * Moves the bytes of `buf`, which was never sent, to a larger buffer and frees `buf`. Returns NULL
 * without memory; `buf` remains.
 */
struct erpc_buf *erpc_buf_grow(struct erpc_bufs *b, struct erpc_buf *buf, uint32_t len);

static inline void erpc_buf_put(struct erpc_bufs *b, struct erpc_buf *buf)
{
	b->used_cnt--;
	util_list_push_front(&b->cls[buf->cls].free, &buf->link);
}

/** Returns true if the device may still read the buffer. Short packets were copied. */
static inline bool erpc_buf_is_read(const struct erpc_bufs *b, const struct erpc_buf *buf)
{
	return buf->sent && buf->len + WIRE_ERPC_HDR_LEN > b->dg->inline_max &&
	       !dev_dgram_is_done(b->dg, buf->last_tx);
}

/** Frees a buffer that no packet in the burst refers to, or NULL. */
static inline void erpc_buf_free(struct erpc_bufs *b, struct erpc_buf *buf)
{
	if (!buf)
		return;
	if (erpc_buf_is_read(b, buf))
		util_list_push_back(&b->waiting, &buf->link);
	else
		erpc_buf_put(b, buf);
}

/** Frees buffers that the device has completed. Called by progress while some wait. */
void erpc_bufs_reap_cold(struct erpc_bufs *b);

#endif
