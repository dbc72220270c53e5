/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FIFO of the simple direct accesses to a peer (core_chan_ops.access). Embedded by core_peer,
 * filled and emptied by rma/core_rma_simple.h, read by core_op and rma.
 *
 * The channel ends them in order and reports their number, so an entry is all that its completion
 * needs, and its place is its number. Those whose completion was written at the start are entries,
 * too, but nothing waits for them: a queue pair executes whatever follows behind a write.
 */
#ifndef CORE_CORE_SIMPLE_H
#define CORE_CORE_SIMPLE_H

#include <stdbool.h>
#include <stdint.h>

struct core_reg;

/** Bits of core_simple_slot.kind, beside FI_RMA and FI_READ or FI_WRITE. */
#define CORE_SIMPLE_COMP  (1u << 31) /* a completion is written at the end */
#define CORE_SIMPLE_ENDED (1u << 30) /* completed at the start: no failure is reported */

struct core_simple_slot {
	void *context;
	struct core_reg *reg; /* of the local buffer, or NULL */
	uint32_t len;
	uint32_t kind;
};

struct core_simple {
	struct core_simple_slot *slots; /* ring of mask + 1, NULL until first used */
	uint64_t mask;
	uint64_t room;    /* free slots */
	uint64_t head;    /* accesses that have ended */
	uint64_t tail;    /* accesses that were started on this channel */
	uint64_t awaited; /* number of the last one that has not completed at its start */
	bool may;         /* accesses may start, on an endpoint without orders */
	bool lease_waits; /* a lease is revoked when the awaited ones have ended */
};

/** Returns true while accesses are in progress that have not completed. */
static inline bool core_simple_is_awaited(const struct core_simple *simple)
{
	return simple->head < simple->awaited;
}

static inline struct core_simple_slot *core_simple_at(const struct core_simple *simple,
						      uint64_t number)
{
	return &simple->slots[number & simple->mask];
}

#endif
