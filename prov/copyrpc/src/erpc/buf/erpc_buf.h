/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where are messages put together, and who has the memory that the device reads?
 *
 * A message buffer is a header, then the bytes: its first packet leaves with one read. The headers
 * of its other packets are in the endpoint's ring of headers (erpc_out.h), so the bytes are contiguous.
 * Four sizes, from pools that grow on demand and are registered where the device needs that: a
 * session that has nothing to say owns none.
 *
 * What is given back waits for the device, where that does not copy: until tx_done has passed (dgram.h).
 * Those that were sent again ask for a report; the others come back with the reports there are.
 *
 * Owner: the ep. Shown by test/unit/erpc/buf/test_erpc_buf.c.
 */
#ifndef ERPC_BUF_H
#define ERPC_BUF_H

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
	struct util_list link; /* the owner's; free or waiting for the device: the pool's */
	const struct dev_mem *mem;
	uint32_t cap;
	uint32_t len;
	uint32_t last_tx; /* of the last datagram from it that left; of none: one that is done */
	uint8_t cls;
	bool sent;
	bool resent;    /* it was sent more than once */
	bool has_calls; /* a batch with calls: its answer may wait */
	uint8_t pad[8]; /* the bytes begin a cache line */
	uint8_t hdr[WIRE_ERPC_HDR_LEN];
	uint8_t data[];
};

_Static_assert(sizeof(struct erpc_buf) == 64, "the bytes are aligned");

/** What one size has. */
struct erpc_bufs_class {
	struct util_list free;
	struct util_list chunks;
};

struct erpc_bufs {
	const struct dev_dgram *dg;
	struct dev *dev;
	const struct dev_ops *dev_ops; /* NULL, or without mem_reg: nothing is registered */
	struct erpc_bufs_class cls[ERPC_BUF_CLASSES];
	struct util_list waiting; /* for the device */
	size_t used_cnt;          /* handed out */
	size_t mem;               /* bytes from the heap */
};

void erpc_bufs_init(struct erpc_bufs *b, const struct dev_dgram *dg, struct dev *dev,
		    const struct dev_ops *dev_ops);
/** The device has let go of everything. */
void erpc_bufs_fini(struct erpc_bufs *b);

/** A free one of that size, empty. There is one. */
static inline struct erpc_buf *erpc_buf_take(struct erpc_bufs *b, unsigned cls)
{
	struct erpc_buf *buf =
		UTIL_CONTAINER_OF(util_list_pop(&b->cls[cls].free), struct erpc_buf, link);

	buf->len = 0;
	buf->sent = false;
	buf->resent = false;
	buf->has_calls = false;
	buf->last_tx = b->dg->tx_done - 1; /* none of its packets has left */
	b->used_cnt++;
	return buf;
}

/** Is there a free one of the smallest size? */
static inline bool erpc_buf_has_tiny(const struct erpc_bufs *b)
{
	return !util_list_is_empty(&b->cls[0].free);
}

struct erpc_buf *erpc_buf_alloc_cold(struct erpc_bufs *b, uint32_t len);

/** One with room for `len` bytes, empty: NULL: no memory, or more than ERPC_BUF_LARGE. */
static inline struct erpc_buf *erpc_buf_alloc(struct erpc_bufs *b, uint32_t len)
{
	unsigned cls = len > ERPC_BUF_TINY;

	if (UTIL_LIKELY(len <= ERPC_BUF_SMALL && !util_list_is_empty(&b->cls[cls].free)))
		return erpc_buf_take(b, cls);
	return erpc_buf_alloc_cold(b, len);
}

/** A larger one with the same bytes in place of `buf`, which was never sent: NULL: `buf` stays. */
struct erpc_buf *erpc_buf_grow(struct erpc_bufs *b, struct erpc_buf *buf, uint32_t len);

static inline void erpc_buf_put(struct erpc_bufs *b, struct erpc_buf *buf)
{
	b->used_cnt--;
	util_list_push_front(&b->cls[buf->cls].free, &buf->link);
}

/** Does the device still refer to it? What is short was copied. */
static inline bool erpc_buf_is_read(const struct erpc_bufs *b, const struct erpc_buf *buf)
{
	return buf->sent && buf->len + WIRE_ERPC_HDR_LEN > b->dg->inline_max &&
	       !dev_dgram_is_done(b->dg, buf->last_tx);
}

/** Nothing of it is in a burst any more. NULL is harmless. */
static inline void erpc_buf_free(struct erpc_bufs *b, struct erpc_buf *buf)
{
	if (!buf)
		return;
	if (erpc_buf_is_read(b, buf))
		util_list_push_back(&b->waiting, &buf->link);
	else
		erpc_buf_put(b, buf);
}

/** Part of progress while some wait for the device. */
void erpc_bufs_reap_cold(struct erpc_bufs *b);

#endif
