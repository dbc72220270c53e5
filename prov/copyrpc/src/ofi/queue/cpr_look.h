/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Spinning before the first sleep: the number of looks and when to yield the processor. Used by
 * cpr_wait.
 *
 * A look takes tens of nanoseconds over shared memory, and a system call over sockets. Yielding and
 * stopping depend on time, but reading the clock at each look would cost as much as a cheap look.
 * So the clock is read at the fourth look, and then after as many looks as seem to take
 * CPR_LOOK_YIELD_NS; the number adapts.
 *
 * Yielding lets the peer run if both are bound to one processor.
 *
 * Pure: the caller reads the clock.
 */
#ifndef OFI_QUEUE_CPR_LOOK_H
#define OFI_QUEUE_CPR_LOOK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Longer than a round trip in which both ends sleep and wake each other, so that two peers that
 * reply to each other return to spinning.
 */
#define CPR_LOOK_SPIN_NS  50000u
#define CPR_LOOK_YIELD_NS 4000u
#define CPR_LOOK_FIRST    4u
#define CPR_LOOK_MOST     256u /* looks without reading the clock */

struct cpr_look {
	uint32_t left;   /* looks until the clock is read */
	uint32_t step;   /* looks between the last two readings */
	uint64_t end_ns; /* 0: the clock was never read */
	uint64_t read_ns;
	uint64_t yielded_ns;
};

enum cpr_look_next {
	CPR_LOOK_AGAIN,
	CPR_LOOK_YIELD, /* yield the processor, then look again */
	CPR_LOOK_OVER,  /* time is up: sleep */
};

static inline void cpr_look_init(struct cpr_look *l)
{
	*l = (struct cpr_look){ .left = CPR_LOOK_FIRST, .step = CPR_LOOK_FIRST };
}

/** Counts a look that found nothing. Returns true if the clock is to be read. */
static inline bool cpr_look_is_clock_due(struct cpr_look *l)
{
	return !--l->left;
}

/** Returns the next step for the time read. */
static inline enum cpr_look_next cpr_look_at(struct cpr_look *l, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - l->read_ns;
	bool yields;

	if (!l->end_ns) {
		l->end_ns = now_ns + CPR_LOOK_SPIN_NS;
		l->yielded_ns = now_ns;
	} else if (took_ns < CPR_LOOK_YIELD_NS && l->step < CPR_LOOK_MOST) {
		l->step *= 2;
	} else if (took_ns > 2 * CPR_LOOK_YIELD_NS && l->step > 1) {
		l->step /= 2;
	}
	yields = now_ns - l->yielded_ns >= CPR_LOOK_YIELD_NS;
	if (yields)
		l->yielded_ns = now_ns;
	l->left = l->step;
	l->read_ns = now_ns;
	if (now_ns > l->end_ns)
		return CPR_LOOK_OVER;
	return yields ? CPR_LOOK_YIELD : CPR_LOOK_AGAIN;
}

#endif
