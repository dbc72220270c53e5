/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_buf.h. */
#include "erpc/buf/erpc_buf.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/held.h"
#include "util/log.h"

/** Bytes of a chunk, and of each buffer in it, per size class. */
static const struct {
	size_t chunk;
	uint32_t cap;
} erpc_buf_sizes[ERPC_BUF_CLASSES] = {
	{ .chunk = 64u << 10, .cap = ERPC_BUF_TINY },
	{ .chunk = 256u << 10, .cap = ERPC_BUF_SMALL },
	{ .chunk = 512u << 10, .cap = ERPC_BUF_LONG },
	{ .chunk = 2u << 20, .cap = ERPC_BUF_LARGE },
};

/** Header of a chunk's memory. */
struct erpc_chunk {
	struct util_list link;
	struct dev_mem *mem;
};

#define ERPC_CHUNK_HEAD 64u

void erpc_bufs_init(struct erpc_bufs *b, const struct dev_dgram *dg, struct dev *dev,
		    const struct dev_ops *dev_ops)
{
	unsigned i;

	*b = (struct erpc_bufs){ .dg = dg, .dev = dev, .dev_ops = dev_ops };
	util_list_init(&b->waiting);
	for (i = 0; i < ERPC_BUF_CLASSES; i++) {
		util_list_init(&b->cls[i].free);
		util_list_init(&b->cls[i].chunks);
	}
}

void erpc_bufs_fini(struct erpc_bufs *b)
{
	struct util_list *first;
	unsigned i;

	for (i = 0; i < ERPC_BUF_CLASSES; i++) {
		while ((first = util_list_pop(&b->cls[i].chunks))) {
			struct erpc_chunk *chunk =
				UTIL_CONTAINER_OF(first, struct erpc_chunk, link);

			if (chunk->mem)
				b->dev_ops->mem_dereg(b->dev, chunk->mem);
			util_held_add(UTIL_HELD_SLOTS, -(int64_t)erpc_buf_sizes[i].chunk);
			free(chunk);
		}
	}
}

static int erpc_chunk_register(struct erpc_bufs *b, struct erpc_chunk *chunk, size_t len)
{
	chunk->mem = NULL;
	if (!b->dev_ops || !b->dev_ops->mem_reg)
		return 0;
	return b->dev_ops->mem_reg(b->dev, chunk, len, DEV_MEM_LOCAL, &chunk->mem);
}

static int erpc_bufs_grow(struct erpc_bufs *b, unsigned cls)
{
	size_t len = erpc_buf_sizes[cls].chunk;
	size_t step = sizeof(struct erpc_buf) + erpc_buf_sizes[cls].cap, at;
	struct erpc_chunk *chunk = aligned_alloc(len < 4096 ? 64 : len, len);

	if (!chunk)
		return -FI_ENOMEM;
	if (len >= 2u << 20)
		madvise(chunk, len, MADV_HUGEPAGE);
	if (erpc_chunk_register(b, chunk, len)) {
		free(chunk);
		return -FI_ENOMEM;
	}
	util_list_push_back(&b->cls[cls].chunks, &chunk->link);
	b->mem += len;
	util_held_add(UTIL_HELD_SLOTS, (int64_t)len);
	for (at = ERPC_CHUNK_HEAD; at + step <= len; at += step) {
		struct erpc_buf *buf = (struct erpc_buf *)((uint8_t *)chunk + at);

		buf->mem = chunk->mem;
		buf->cap = erpc_buf_sizes[cls].cap;
		buf->cls = (uint8_t)cls;
		util_list_push_back(&b->cls[cls].free, &buf->link);
	}
	return 0;
}

static unsigned erpc_buf_class(uint32_t len)
{
	unsigned cls = 0;

	while (cls < ERPC_BUF_CLASSES - 1 && len > erpc_buf_sizes[cls].cap)
		cls++;
	return cls;
}

struct erpc_buf *erpc_buf_alloc_cold(struct erpc_bufs *b, uint32_t len)
{
	unsigned cls = erpc_buf_class(len);

	if (len > ERPC_BUF_LARGE)
		return NULL;
	if (util_list_is_empty(&b->cls[cls].free) && erpc_bufs_grow(b, cls))
		return NULL;
	return erpc_buf_take(b, cls);
}

struct erpc_buf *erpc_buf_grow(struct erpc_bufs *b, struct erpc_buf *buf, uint32_t len)
{
	struct erpc_buf *larger = erpc_buf_alloc(b, len);

	if (!larger)
		return NULL;
	memcpy(larger->data, buf->data, buf->len);
	larger->len = buf->len;
	larger->has_calls = buf->has_calls;
	erpc_buf_free(b, buf);
	return larger;
}

void erpc_bufs_reap_cold(struct erpc_bufs *b)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &b->waiting) {
		struct erpc_buf *buf = UTIL_CONTAINER_OF(it, struct erpc_buf, link);

		if (!dev_dgram_is_done(b->dg, buf->last_tx))
			return; /* most of those behind it are in use, too */
		util_list_remove(it);
		erpc_buf_put(b, buf);
	}
}
