/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads how often the kernel took the processor from the calling thread: see switches.h. */
#include "util/switches.h"

#include <sys/resource.h>

bool util_switches_read(struct util_switches *s)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		return s->shared;
	s->shared = s->events > 1 && usage.ru_nivcsw - s->seen >= UTIL_SWITCHES_SHARED;
	s->seen = usage.ru_nivcsw;
	return s->shared;
}
