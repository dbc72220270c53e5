/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads without work: when they stay, yield and sleep. There may be more threads than processors,
 * and another one may be what this one waits for. A thread without work
 *
 *   stays    for KV_STAY_NS, less than a change of the thread costs (1.5 us): a daemon that runs
 *            replies within that time, mostly. After stays in vain it yields at once in most waits,
 *            since the daemon then waits for this processor, or for another node.
 *   yields   the processor until `spin_us` have passed without work
 *   sleeps   after that: its caller arms what it waits for and calls kv_idle_sleep
 *
 * Tested by test/unit/benchkv/test_kv_idle.c.
 */
#ifndef KV_IDLE_H
#define KV_IDLE_H

#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define KV_STAY_NS   500u
#define KV_STAY_MISS 3u /* at least one wait in 2^KV_STAY_MISS stays */

struct kv_idle {
	uint64_t spin_ns;
	uint64_t since; /* time of the first loop without work; 0: the last loop had some */
	bool stays;     /* this wait has not yielded yet */
	uint32_t miss;  /* stays in vain in a row, at most KV_STAY_MISS */
	uint32_t skip;  /* waits that yield at once */
};

static inline uint64_t kv_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Begins a wait. */
static inline void kv_idle_begin(struct kv_idle *idle, uint64_t now)
{
	idle->since = now;
	idle->stays = !idle->skip;
	idle->skip -= idle->skip > 0;
}

/* Ends a stay in vain. */
static inline void kv_idle_miss(struct kv_idle *idle)
{
	idle->stays = false;
	idle->miss += idle->miss < KV_STAY_MISS;
	idle->skip = (1u << idle->miss) - 1;
}

/* Notes work, and that the stay before it was not in vain. */
static inline void kv_idle_end(struct kv_idle *idle)
{
	if (idle->since && idle->stays)
		idle->miss = 0;
	idle->since = 0;
}

/** Notes a loop with or without work. Returns true if the thread should sleep now. */
static inline bool kv_idle_due(struct kv_idle *idle, bool worked)
{
	uint64_t now;

	if (worked) {
		kv_idle_end(idle);
		return false;
	}
	now = kv_now_ns();
	if (!idle->since)
		kv_idle_begin(idle, now);
	if (now - idle->since >= idle->spin_ns)
		return true;
	if (idle->stays && now - idle->since < KV_STAY_NS)
		return false;
	if (idle->stays)
		kv_idle_miss(idle);
	sched_yield();
	return false;
}

/** Sleeps until one of the descriptors is readable; looks at the phase of the run now and then. */
static inline void kv_idle_sleep(struct pollfd *fds, unsigned count)
{
	poll(fds, count, 20);
}

#endif
