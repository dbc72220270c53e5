/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Provider handle for libfabric's log, and the rate limit of UTIL_WARN_SELDOM. See log.h. */
#include "util/log.h"

#include "util/clock.h"

#define UTIL_LOG_SELDOM_NS (60 * UTIL_NS_PER_S)

struct fi_provider util_log_prov = {
	.name = "copyrpc",
};

bool util_log_is_due(uint64_t *next_ns)
{
	uint64_t now_ns = util_clock_ns(), due_ns = __atomic_load_n(next_ns, __ATOMIC_RELAXED);

	return now_ns >= due_ns &&
	       __atomic_compare_exchange_n(next_ns, &due_ns, now_ns + UTIL_LOG_SELDOM_NS, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
