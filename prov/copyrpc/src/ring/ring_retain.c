/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FIFO of retained messages: see ring_retain.h. */
#include "ring/ring_retain.h"

#include <stdlib.h>
#include <string.h>

#define RING_RETAINED_FIRST 16u

void ring_retained_init(struct ring_retained *h)
{
	memset(h, 0, sizeof(*h));
}

void ring_retained_fini(struct ring_retained *h)
{
	free(h->slots);
	ring_retained_init(h);
}

int ring_retained_grow_cold(struct ring_retained *h)
{
	uint64_t cnt = h->slots ? 2 * (h->mask + 1) : RING_RETAINED_FIRST;
	struct ring_retain_slot *slots = calloc(cnt, sizeof(*slots));
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
