/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FIFO of retained messages (docs/ring-protocol.md, section 2). Called by the receive side to
 * compute the consumer position.
 *
 * Parsed bytes are not released while a message is retained: release is in order, so the message
 * keeps its own bytes and everything behind it. A message released before an older one stays in the
 * queue until the older one is released. The consumer position is the start of the oldest retained
 * message, or the parse position if there is none.
 *
 * A retained message is identified by its sequence number, so stale and invalid numbers are
 * detected.
 */
#ifndef RING_RING_RETAIN_H
#define RING_RING_RETAIN_H

#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/bits.h"

struct ring_retain_slot {
	uint64_t pos; /* Start of the retained message */
	bool open;
};

struct ring_retained {
	uint64_t head; /* Sequence number of the oldest message */
	uint64_t tail; /* Sequence number of the next message */
	/* Not read while nothing is retained */
	struct ring_retain_slot *slots; /* Ring of mask + 1 slots; NULL until first used */
	uint64_t mask;
	uint64_t room; /* Number of slots: 0 or mask + 1 */
};

void ring_retained_init(struct ring_retained *h);
void ring_retained_fini(struct ring_retained *h);

/** Doubles the slots. Returns 0 or -FI_ENOMEM. */
int ring_retained_grow_cold(struct ring_retained *h);

/**
 * Retains the message at `pos`, which is not below earlier ones, under the number h->tail. Returns
 * 0 or
 * -FI_ENOMEM.
 */
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

/**
 * Releases message `seq`. Returns true if the oldest position changed, false also for an unknown or
 * released number.
 */
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

/** Returns the consumer position when everything before `parse_pos` is parsed. */
static inline uint64_t ring_retained_consumer(const struct ring_retained *h, uint64_t parse_pos)
{
	return h->head == h->tail ? parse_pos : h->slots[h->head & h->mask].pos;
}

#endif
