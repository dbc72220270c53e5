/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is said seldom: util/log.h. */
#include "util/log.h"

#include <criterion/criterion.h>

#include "util/clock.h"

Test(util_log, what_is_said_seldom_is_said_at_once_and_again_after_a_minute)
{
	uint64_t next_ns = 0, before_ns = util_clock_ns();
	unsigned i;

	cr_assert(util_log_is_due(&next_ns));
	cr_expect_geq(next_ns, before_ns + 60 * UTIL_NS_PER_S);
	for (i = 0; i < 1000; i++)
		cr_assert(!util_log_is_due(&next_ns));
	next_ns = util_clock_ns(); /* as if it were long ago */
	cr_assert(util_log_is_due(&next_ns));
	cr_assert(!util_log_is_due(&next_ns));
}
