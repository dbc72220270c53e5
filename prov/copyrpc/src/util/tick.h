/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Time of util_clock_ns from the processor's counter: a dozen instructions instead of a hundred.
 *
 * Used only where the kernel's clock source is the counter, which then runs at a constant rate on
 * all processors. Elsewhere every call reads the clock.
 *
 * The clock is read every UTIL_TICK_EVERY_NS; two reads give the counter's rate. The time may
 * deviate by some parts in 100,000 of the interval and step back by that much at a calibration, so
 * callers that need monotonic time keep the later value. The first reads, and those after a pause,
 * come from the clock.
 *
 * Not locked.
 */
#ifndef UTIL_TICK_H
#define UTIL_TICK_H

#include <stdint.h>

#include "util/bits.h"
#include "util/clock.h"

#define UTIL_TICK_EVERY_NS (100 * UTIL_NS_PER_MS)
#define UTIL_TICK_LEAST_NS (10 * UTIL_NS_PER_MS) /* shortest interval that gives a rate */
#define UTIL_TICK_MOST_NS  UTIL_NS_PER_S /* longest interval that gives a rate: without a pause */

struct util_tick {
	uint64_t at;   /* counter at the last calibration */
	uint64_t ns;   /* time at the last calibration */
	uint64_t rate; /* nanoseconds per tick, 32.32 fixed point */
	uint64_t most; /* ticks for which `rate` is valid; 0: not calibrated */
};

/** Returns the counter. */
static inline uint64_t util_tick_count(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/** Returns the counter once all earlier loads have their values. */
static inline uint64_t util_tick_after_loads(void)
{
#if defined(__x86_64__)
	__asm__ volatile("lfence" ::: "memory");
#endif
	return util_tick_count();
}

/** Starts the calibration. */
void util_tick_init(struct util_tick *t);

/** Calibrates with the counter at `at` and the time `ns`. Pure. */
void util_tick_set(struct util_tick *t, uint64_t at, uint64_t ns);

/** Reads the clock and calibrates. Returns the time. */
uint64_t util_tick_look(struct util_tick *t);

/**
 * Returns the time at counter `at`, which is less than `most` ticks after the calibration. Pure.
 */
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
