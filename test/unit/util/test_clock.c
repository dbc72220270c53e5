/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Monotonic clock: forwards only, one second per second. */
#include <criterion/criterion.h>
#include <time.h>

#include "util/clock.h"

Test(clock, time_never_runs_backwards)
{
	uint64_t last = util_clock_ns();
	bool backwards = false;

	for (int i = 0; i < 100000; i++) {
		uint64_t now = util_clock_ns();

		backwards |= now < last;
		last = now;
	}
	cr_assert_not(backwards);
}

Test(clock, a_sleep_takes_at_least_its_duration)
{
	const struct timespec pause = { .tv_nsec = 20 * UTIL_NS_PER_MS };
	uint64_t start = util_clock_ns();

	cr_assert_eq(nanosleep(&pause, NULL), 0);
	cr_assert_geq(util_clock_ns() - start, 20 * UTIL_NS_PER_MS);
	cr_assert_lt(util_clock_ns() - start, 10 * UTIL_NS_PER_S);
}
