/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When a thread without work sleeps: it yields the processor until `spin_us` have passed without
 * work, since there may be more threads than processors. Then its caller arms what it waits for
 * and calls kv_idle_sleep.
 */
#ifndef KV_IDLE_H
#define KV_IDLE_H

#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct kv_idle {
	uint64_t spin_ns;
	uint64_t since; /* time of the first loop without work; 0: the last loop had some */
};

static inline uint64_t kv_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/** Notes a loop with or without work. Returns true if the thread should sleep now. */
static inline bool kv_idle_due(struct kv_idle *idle, bool worked)
{
	uint64_t now;

	if (worked) {
		idle->since = 0;
		return false;
	}
	now = kv_now_ns();
	if (!idle->since)
		idle->since = now;
	if (now - idle->since >= idle->spin_ns)
		return true;
	sched_yield();
	return false;
}

/** Sleeps until one of the descriptors is readable; looks at the phase of the run now and then. */
static inline void kv_idle_sleep(struct pollfd *fds, unsigned count)
{
	poll(fds, count, 20);
}

#endif
