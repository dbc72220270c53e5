/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registered slots: see ring_bounce.h. */
#include "ring/ring_bounce.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#define RING_BOUNCE_ALIGN 4096u

static void ring_bounce_free(struct ring_bounce_chunk *chunk)
{
	free(chunk->bytes);
	free(chunk);
}

static struct ring_bounce_chunk *ring_bounce_alloc(void)
{
	struct ring_bounce_chunk *chunk = calloc(1, sizeof(*chunk));

	if (!chunk)
		return NULL;
	chunk->bytes =
		aligned_alloc(RING_BOUNCE_ALIGN, (size_t)RING_BOUNCE_SLOTS * RING_BOUNCE_LEN);
	if (!chunk->bytes) {
		free(chunk);
		return NULL;
	}
	return chunk;
}

static int ring_bounce_grow(struct ring_bounce *bounce, const struct dev_ops *ops, struct dev *dev)
{
	struct ring_bounce_chunk *chunk;
	int ret;

	if (bounce->err)
		return bounce->err;
	if (bounce->chunk_cnt == RING_BOUNCE_CHUNKS_MAX)
		return -FI_EAGAIN;
	chunk = ring_bounce_alloc();
	if (!chunk)
		return -FI_ENOMEM;
	ret = ops->mem_reg(dev, chunk->bytes, (size_t)RING_BOUNCE_SLOTS * RING_BOUNCE_LEN,
			   DEV_MEM_LOCAL, &chunk->mem);
	if (ret) {
		bounce->err = ret;
		ring_bounce_free(chunk);
		return ret;
	}
	for (uint32_t i = 0; i < RING_BOUNCE_SLOTS; i++) {
		struct ring_bounce_slot *slot = &chunk->slots[i];

		slot->mem = chunk->mem;
		slot->bytes = (uint8_t *)chunk->bytes + (size_t)i * RING_BOUNCE_LEN;
		ring_bounce_put(bounce, slot);
	}
	bounce->chunks[bounce->chunk_cnt++] = chunk;
	return 0;
}

struct ring_bounce_slot *ring_bounce_get(struct ring_bounce *bounce, const struct dev_ops *ops,
					 struct dev *dev, int *err)
{
	struct ring_bounce_slot *slot;

	*err = bounce->free ? 0 : ring_bounce_grow(bounce, ops, dev);
	if (*err)
		return NULL;
	slot = bounce->free;
	bounce->free = slot->next;
	return slot;
}

void ring_bounce_fini(struct ring_bounce *bounce, const struct dev_ops *ops, struct dev *dev)
{
	while (bounce->chunk_cnt) {
		struct ring_bounce_chunk *chunk = bounce->chunks[--bounce->chunk_cnt];

		ops->mem_dereg(dev, chunk->mem);
		ring_bounce_free(chunk);
	}
	bounce->free = NULL;
	bounce->err = 0;
}
