/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Up to where are received bytes no longer needed? (docs/ring-protocol.md, section 2)
 *
 * Parsed is not released: a message that is still referred to keeps its bytes, and everything
 * behind it, since release is in order. A FIFO of held messages; one that ends before an older one
 * waits for it. The consumer position is the start of the oldest held message, or the parse
 * position if none is held.
 *
 * A hold is named by its sequence number, so a stale or invented one is recognised.
 * Shown by test/unit/ring/test_ring_retain.c.
 */
#ifndef RING_RETAIN_H
#define RING_RETAIN_H

#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/bits.h"

struct ring_retain_slot {
	uint64_t pos; /* start of the held message */
	bool open;
};

struct ring_retained {
	struct ring_retain_slot *slots; /* ring of mask + 1, NULL until first used */
	uint64_t mask;
	uint64_t room; /* of slots: 0 or mask + 1 */
	uint64_t head; /* sequence number of the oldest */
	uint64_t tail; /* of the next one */
};

void ring_retained_init(struct ring_retained *h);
void ring_retained_fini(struct ring_retained *h);

/** More slots: 0 or -FI_ENOMEM. */
int ring_retained_grow_cold(struct ring_retained *h);

/** Holds the message at `pos` (not below earlier ones): its number is the old h->tail. 0, -FI_ENOMEM. */
static inline int ring_retained_add(struct ring_retained *h, uint64_t pos)
{
	struct ring_retain_slot *slot;

	if (UTIL_UNLIKELY(h->tail - h->head == h->room) && ring_retained_grow_cold(h))
		return -FI_ENOMEM;
	slot = &h->slots[h->tail++ & h->mask];
	slot->pos = pos;
	slot->open = true;
	return 0;
}

/** Ends hold `seq`: true if the oldest position changed. Unknown or ended numbers: false. */
static inline bool ring_retained_release(struct ring_retained *h, uint64_t seq)
{
	struct ring_retain_slot *slot;

	if (UTIL_UNLIKELY(seq - h->head >= h->tail - h->head))
		return false;
	slot = &h->slots[seq & h->mask];
	if (UTIL_UNLIKELY(!slot->open))
		return false;
	slot->open = false;
	if (seq != h->head)
		return false;
	do
		h->head++;
	while (h->head != h->tail && !h->slots[h->head & h->mask].open);
	return true;
}

/** The consumer position when everything before `parse_pos` has been parsed. */
static inline uint64_t ring_retained_consumer(const struct ring_retained *h, uint64_t parse_pos)
{
	return h->head == h->tail ? parse_pos : h->slots[h->head & h->mask].pos;
}

#endif
