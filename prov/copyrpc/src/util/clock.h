/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Monotonic nanoseconds since an arbitrary start. A call costs about 25 ns: never call per message.
 */
#ifndef UTIL_CLOCK_H
#define UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define UTIL_NS_PER_MS 1000000ull
#define UTIL_NS_PER_S  1000000000ull

static inline uint64_t util_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UTIL_NS_PER_S + (uint64_t)ts.tv_nsec;
}

#endif
