/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rate limit of UTIL_WARN_SELDOM: util/log.h. */
#include "util/log.h"

#include <criterion/criterion.h>

#include "util/clock.h"

Test(util_log, a_rate_limited_line_is_due_at_once_and_again_after_a_minute)
{
	uint64_t next_ns = 0, before_ns = util_clock_ns();
	unsigned i;

	cr_assert(util_log_is_due(&next_ns));
	cr_expect_geq(next_ns, before_ns + 60 * UTIL_NS_PER_S);
	for (i = 0; i < 1000; i++)
		cr_assert(!util_log_is_due(&next_ns));
	next_ns = util_clock_ns(); /* a minute later */
	cr_assert(util_log_is_due(&next_ns));
	cr_assert(!util_log_is_due(&next_ns));
}
