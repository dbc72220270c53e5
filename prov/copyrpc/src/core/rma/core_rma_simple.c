/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ends of simple direct accesses: see core_rma_simple.h. */
#include "core/rma/core_rma_simple.h"

#include <assert.h>
#include <stdlib.h>

#include "util/stats.h"

#define CORE_RMA_SIMPLE_FIRST 64u

bool core_rma_simple_grow(struct core_peer *peer)
{
	struct core_simple *simple = &peer->simple;
	uint64_t cnt = simple->slots ? 2 * (simple->mask + 1) : CORE_RMA_SIMPLE_FIRST;
	struct core_simple_slot *slots;

	if (simple->room || !peer->chan || !peer->chan->reg_dev)
		return false;
	slots = calloc(cnt, sizeof(*slots));
	if (!slots)
		return false;
	for (uint64_t at = simple->head; at != simple->tail; at++)
		slots[at & (cnt - 1)] = *core_simple_at(simple, at);
	free(simple->slots);
	simple->slots = slots;
	simple->mask = cnt - 1;
	simple->room = cnt - (simple->tail - simple->head);
	return false;
}

bool core_rma_simple_undo(struct core_peer *peer)
{
	struct core_simple_slot *slot = core_simple_at(&peer->simple, peer->simple.tail);

	if (slot->reg)
		slot->reg->users--;
	return false;
}

static struct core_cntr *core_rma_simple_cntr(const struct core_ep *ep,
					      const struct core_simple_slot *slot)
{
	return ep->rma_cntr[slot->kind & FI_WRITE ? CORE_CNTR_WRITE : CORE_CNTR_READ];
}

/** Counts the end of an access, writes its completion. */
static void core_rma_simple_end(struct core_ep *ep, const struct core_simple_slot *slot)
{
	struct core_cntr *cntr = core_rma_simple_cntr(ep, slot);

	if (cntr && !(slot->kind & CORE_SIMPLE_ENDED))
		core_cntr_add(cntr, 1);
	if ((slot->kind & CORE_SIMPLE_COMP) && ep->tx.cq)
		core_cq_write(ep->tx.cq, slot->context, slot->kind & (FI_RMA | FI_READ | FI_WRITE),
			      0, NULL, 0, 0, FI_ADDR_NOTAVAIL);
}

void core_rma_simple_ended(struct core_chan *chan, uint32_t cnt)
{
	struct core_peer *peer = chan->peer;
	struct core_simple *simple = &peer->simple;
	uint64_t bytes = 0, begin = simple->head;
	uint64_t end = begin + (uint32_t)(cnt - (uint32_t)begin);

	assert(end <= simple->tail);
	for (; simple->head != end; simple->head++) {
		const struct core_simple_slot *slot = core_simple_at(simple, simple->head);

		bytes += slot->len;
		if (slot->reg)
			slot->reg->users--;
		core_rma_simple_end(peer->ep, slot);
	}
	simple->room += end - begin;
	util_stats_add(&chan->stats->accesses, end - begin);
	util_stats_add(&chan->stats->access_bytes, bytes);
	if (UTIL_UNLIKELY(simple->lease_waits))
		core_rma_lease_accessed(peer);
}

static void core_rma_simple_fail_one(struct core_ep *ep, const struct core_simple_slot *slot,
				     int err)
{
	struct fi_cq_err_entry entry = {
		.op_context = slot->context,
		.flags = slot->kind & (FI_RMA | FI_READ | FI_WRITE),
		.err = -err,
		.prov_errno = -err,
	};

	if (slot->reg)
		slot->reg->users--;
	if (slot->kind & CORE_SIMPLE_ENDED)
		return;
	core_cntr_count(core_rma_simple_cntr(ep, slot), err);
	if (ep->tx.cq)
		core_cq_write_err(ep->tx.cq, &entry, FI_ADDR_NOTAVAIL);
}

void core_rma_simple_fail(struct core_peer *peer, int err)
{
	struct core_simple *simple = &peer->simple;

	for (; simple->head != simple->tail; simple->head++)
		core_rma_simple_fail_one(peer->ep, core_simple_at(simple, simple->head), err);
	free(simple->slots);
	*simple = (struct core_simple){ 0 };
}
