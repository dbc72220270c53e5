/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The FIFO of held messages: see ring_hold.h. */
#include "ring/ring_hold.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#define RING_HOLDS_FIRST 16u

void ring_holds_init(struct ring_holds *h)
{
	memset(h, 0, sizeof(*h));
}

void ring_holds_fini(struct ring_holds *h)
{
	free(h->slots);
	ring_holds_init(h);
}

static int ring_holds_grow(struct ring_holds *h)
{
	uint64_t cnt = h->slots ? 2 * (h->mask + 1) : RING_HOLDS_FIRST;
	struct ring_hold_slot *slots = calloc(cnt, sizeof(*slots));
	uint64_t seq;

	if (!slots)
		return -FI_ENOMEM;
	for (seq = h->head; seq != h->tail; seq++)
		slots[seq & (cnt - 1)] = h->slots[seq & h->mask];
	free(h->slots);
	h->slots = slots;
	h->mask = cnt - 1;
	return 0;
}

int ring_holds_add(struct ring_holds *h, uint64_t pos)
{
	if ((!h->slots || h->tail - h->head > h->mask) && ring_holds_grow(h))
		return -FI_ENOMEM;
	h->slots[h->tail++ & h->mask] = (struct ring_hold_slot){ .pos = pos, .open = true };
	return 0;
}

bool ring_holds_release(struct ring_holds *h, uint64_t seq)
{
	uint64_t head = h->head;

	if (seq - h->head >= h->tail - h->head || !h->slots[seq & h->mask].open)
		return false;
	h->slots[seq & h->mask].open = false;
	while (h->head != h->tail && !h->slots[h->head & h->mask].open)
		h->head++;
	return h->head != head;
}
