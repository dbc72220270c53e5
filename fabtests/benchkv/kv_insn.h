/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counter of a thread's instructions in user mode, by perf_event_open(2). */
#ifndef KV_INSN_H
#define KV_INSN_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Starts to count the calling thread. Returns a descriptor, or -1 if that is not permitted. */
static inline int kv_insn_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0ul);
}

/**
 * Returns the instructions so far, 0 without a counter: the caller knows whether there is one. Any
 * thread of the process may call.
 */
static inline uint64_t kv_insn_read(int fd)
{
	uint64_t count = 0;

	return fd >= 0 && read(fd, &count, sizeof(count)) == (ssize_t)sizeof(count) ? count : 0;
}

#endif
