/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How often a thread that reads an empty queue in a loop yields the processor. Used by cpr_cq,
 * cpr_cntr and cpr_poll, through cpr_idle.
 *
 * On a processor of its own a yield returns at once and is worth nothing. If the peer shares the
 * processor, each empty read delays the peer: over sockets a read is a system call, and a thousand
 * of them take half a millisecond. The time that a yield takes, and whether something is there
 * afterwards, tell the cases apart:
 *
 *   no other thread ran            the number of reads doubles up to CPR_YIELD_READS
 *   one did, something is there    the peer: each empty read yields from now on
 *   one did, nothing is there      either: the number stays
 *   for CPR_YIELD_SLICE_NS         a stranger that used up its time slice: at least
 *                                  CPR_YIELD_READS reads, and twice as many as before
 *
 * Beside strangers the number grows until the reads take about a time slice, but not beyond
 * CPR_YIELD_MOST. Two processes that wait for each other make progress while both run: a process
 * that gives its slice away after a few reads is rarely there when its peer is.
 *
 * Pure: the caller reads the clock.
 */
#ifndef OFI_QUEUE_CPR_YIELD_H
#define OFI_QUEUE_CPR_YIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "ofi/base/cpr_pdom.h"

#define CPR_YIELD_READS    1024u    /* empty reads between yields of a thread that is alone */
#define CPR_YIELD_MOST     32768u   /* beside strangers */
#define CPR_YIELD_SHARE_NS 1500u    /* shorter yields let no other thread run */
#define CPR_YIELD_SLICE_NS 1000000u /* less than a time slice */

struct cpr_yield {
	uint32_t reads;  /* empty reads in a row */
	uint32_t yields; /* among them */
	uint32_t step;   /* empty reads between yields, a power of two */
	uint32_t mask;   /* reads & mask is 0 where there may be something to do */
	uint64_t end_ns; /* end of the last of them */
};

/** A yield: when it began and ended. Both 0: there was none. */
struct cpr_rest {
	uint64_t begin_ns, end_ns;
};

static inline void cpr_yield_set(struct cpr_yield *y, uint32_t step)
{
	y->step = step;
	y->mask = (step < CPR_PDOM_IDLE_READS ? step : CPR_PDOM_IDLE_READS) - 1;
}

static inline void cpr_yield_init(struct cpr_yield *y)
{
	y->reads = 0;
	y->yields = 0;
	cpr_yield_set(y, CPR_YIELD_READS);
}

/** Notes a read that found something. */
static inline void cpr_yield_found(struct cpr_yield *y)
{
	y->reads = 0;
	y->yields = 0;
}

/** Counts an empty read. Returns true if others may need progress, or a yield is due. */
static inline bool cpr_yield_is_due(struct cpr_yield *y)
{
	return !(++y->reads & y->mask);
}

/** Returns the largest number of reads to the next yield, after one that took `ns`. */
static inline uint32_t cpr_yield_most(const struct cpr_yield *y, struct cpr_rest rest, uint64_t ns)
{
	if (ns < CPR_YIELD_SHARE_NS)
		return CPR_YIELD_READS;
	/* All reads since the last yield were empty, and took a time slice. */
	if (y->yields && rest.begin_ns - y->end_ns >= CPR_YIELD_SLICE_NS)
		return y->step;
	return CPR_YIELD_MOST;
}

/** Notes a yield, and whether the look after it found something. */
static inline void cpr_yield_took(struct cpr_yield *y, struct cpr_rest rest, bool found)
{
	uint64_t ns = rest.end_ns - rest.begin_ns;
	uint32_t step = 2 * y->step, most = cpr_yield_most(y, rest, ns);

	if (ns >= CPR_YIELD_SLICE_NS)
		step = step > CPR_YIELD_READS ? step : CPR_YIELD_READS;
	else if (ns >= CPR_YIELD_SHARE_NS)
		step = found ? 1 : y->step;
	cpr_yield_set(y, step < most ? step : most);
	y->yields++;
	y->end_ns = rest.end_ns;
}

#endif
