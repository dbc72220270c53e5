/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The FIFO of held messages: see ring_hold.h. */
#include "ring/ring_hold.h"

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

int ring_holds_grow_cold(struct ring_holds *h)
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
	h->room = cnt;
	return 0;
}
