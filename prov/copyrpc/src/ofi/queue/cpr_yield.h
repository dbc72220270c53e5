/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How often a thread that reads an empty queue in a loop yields the processor. Used by cpr_cq,
 * cpr_cntr and cpr_poll, through cpr_idle.
 *
 * On a processor of its own a yield returns at once and is worth nothing. If the peer shares the
 * processor, each empty read delays the peer: over sockets a read is a system call, and a thousand
 * of them take half a millisecond. The time that a yield takes tells both cases apart. After one
 * that let another thread run, each empty read yields. After one that did not, the number of reads
 * doubles up to CPR_YIELD_READS. A yield of CPR_YIELD_SLICE_NS or more let a stranger use up its
 * time slice and counts as one that did not help.
 *
 * Pure: the caller reads the clock.
 */
#ifndef OFI_QUEUE_CPR_YIELD_H
#define OFI_QUEUE_CPR_YIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "ofi/base/cpr_pdom.h"

#define CPR_YIELD_READS    1024u    /* empty reads between yields, at most */
#define CPR_YIELD_SHARE_NS 1500u    /* shorter yields let no other thread run */
#define CPR_YIELD_SLICE_NS 1000000u /* less than a time slice */

struct cpr_yield {
	uint32_t reads; /* empty reads in a row */
	uint32_t step;  /* empty reads between yields, a power of two */
	uint32_t mask;  /* reads & mask is 0 where there may be something to do */
};

static inline void cpr_yield_set(struct cpr_yield *y, uint32_t step)
{
	y->step = step;
	y->mask = (step < CPR_PDOM_IDLE_READS ? step : CPR_PDOM_IDLE_READS) - 1;
}

static inline void cpr_yield_init(struct cpr_yield *y)
{
	y->reads = 0;
	cpr_yield_set(y, CPR_YIELD_READS);
}

/** Counts an empty read. Returns true if others may need progress, or a yield is due. */
static inline bool cpr_yield_is_due(struct cpr_yield *y)
{
	return !(++y->reads & y->mask);
}

/** Notes that a yield took `ns`. */
static inline void cpr_yield_took(struct cpr_yield *y, uint64_t ns)
{
	bool shared = ns >= CPR_YIELD_SHARE_NS && ns < CPR_YIELD_SLICE_NS;

	if (shared)
		cpr_yield_set(y, 1);
	else if (y->step < CPR_YIELD_READS)
		cpr_yield_set(y, 2 * y->step);
}

#endif
