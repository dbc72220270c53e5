/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What time is it, for who asks again and again?
 *
 * util_clock_ns by the processor's counter: a dozen instructions instead of a hundred. Only where the kernel
 * keeps its own time by that counter, which then runs evenly and alike on all processors; elsewhere it asks the
 * clock each time.
 *
 * The clock is looked at all the same, every UTIL_TICK_EVERY_NS: what passed between two looks says how fast the
 * counter runs. So it may be off by some parts in 100,000 of that, and go back by as much when it is set:
 * who minds keeps the later time. The first looks, and those after a pause, are the clock's.
 *
 * Owner: whoever asks; it is not locked. Shown by test/unit/util/test_tick.c.
 */
#ifndef UTIL_TICK_H
#define UTIL_TICK_H

#include <stdint.h>

#include "util/bits.h"
#include "util/clock.h"

#define UTIL_TICK_EVERY_NS (100 * UTIL_NS_PER_MS)
#define UTIL_TICK_LEAST_NS (10 * UTIL_NS_PER_MS) /* of a stretch that says how fast it runs, */
#define UTIL_TICK_MOST_NS  UTIL_NS_PER_S         /* and of one without a pause */

struct util_tick {
	uint64_t at;   /* the counter, when it was set, */
	uint64_t ns;   /* and the time then */
	uint64_t rate; /* nanoseconds of a tick, with 32 bits behind the point */
	uint64_t most; /* ticks for which that is good; 0: not known yet */
};

/** How far the counter is. */
static inline uint64_t util_tick_count(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/** Now begins what says how fast it runs. */
void util_tick_init(struct util_tick *t);

/** The counter was at `at` when it was `ns`. Pure. */
void util_tick_set(struct util_tick *t, uint64_t at, uint64_t ns);

/** The time by the clock, by which it is set. */
uint64_t util_tick_look(struct util_tick *t);

/** The time when the counter is at `at`, which is less than `most` beyond where it was set. Pure. */
static inline uint64_t util_tick_at(const struct util_tick *t, uint64_t at)
{
	return t->ns + ((at - t->at) * t->rate >> 32);
}

static inline uint64_t util_tick_ns(struct util_tick *t)
{
	uint64_t at = util_tick_count();

	if (UTIL_UNLIKELY(at - t->at >= t->most))
		return util_tick_look(t);
	return util_tick_at(t, at);
}

#endif
