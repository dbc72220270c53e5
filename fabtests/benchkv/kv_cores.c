/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Processors of a node: see kv_cores.h. */
#include "kv_cores.h"

#include <sched.h>
#include <unistd.h>

void kv_cores_bind(uint32_t index)
{
	cpu_set_t usable, one;
	int left;

	if (sched_getaffinity(0, sizeof(usable), &usable))
		return;
	left = (int)(index % (uint32_t)CPU_COUNT(&usable));
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &usable) && !left--) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof(one), &one);
			return;
		}
}

uint32_t kv_cores_usable(void)
{
	cpu_set_t usable;

	return sched_getaffinity(0, sizeof(usable), &usable) ? 0 : (uint32_t)CPU_COUNT(&usable);
}

uint32_t kv_cores_lacking(uint32_t threads)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t cnt = kv_cores_usable();

	return cnt < threads && cnt < online ? cnt : 0;
}
