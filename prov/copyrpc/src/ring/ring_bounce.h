/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered slots through which short direct accesses move bytes of memory that is not registered.
 * Called by ring_direct.c and ring_bulk.c.
 *
 * A transport allocates and registers slots in chunks when they are first needed, up to
 * RING_BOUNCE_CHUNKS_MAX, and keeps them until it is closed. Without a free slot an access waits.
 *
 * Owner: the thread that holds the domain. Tests: test/unit/ring/test_ring_direct.c.
 */
#ifndef RING_RING_BOUNCE_H
#define RING_RING_BOUNCE_H

#include <stdint.h>

#include "dev/dev.h"

#define RING_BOUNCE_LEN        8192u /* bytes of a slot */
#define RING_BOUNCE_SLOTS      32u   /* of a chunk */
#define RING_BOUNCE_CHUNKS_MAX 16u

struct ring_bounce_slot {
	struct ring_bounce_slot *next; /* free slots */
	struct dev_mem *mem;
	uint8_t *bytes; /* RING_BOUNCE_LEN */
};

struct ring_bounce_chunk {
	void *bytes;
	struct dev_mem *mem;
	struct ring_bounce_slot slots[RING_BOUNCE_SLOTS];
};

/** Slots of a transport. All zero: none yet. */
struct ring_bounce {
	struct ring_bounce_slot *free;
	struct ring_bounce_chunk *chunks[RING_BOUNCE_CHUNKS_MAX];
	uint32_t chunk_cnt;
	int err; /* of the last registration: none is tried again */
};

/**
 * Returns a slot, or NULL: `*err` is then -FI_EAGAIN if all are in use, or the error of the
 * registration.
 */
struct ring_bounce_slot *ring_bounce_get(struct ring_bounce *bounce, const struct dev_ops *ops,
					 struct dev *dev, int *err);

static inline void ring_bounce_put(struct ring_bounce *bounce, struct ring_bounce_slot *slot)
{
	slot->next = bounce->free;
	bounce->free = slot;
}

/** Deregisters and frees all slots. None is in use. */
void ring_bounce_fini(struct ring_bounce *bounce, const struct dev_ops *ops, struct dev *dev);

#endif
