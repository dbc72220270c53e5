/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bounded spinning and sleep, common to servers, clients and members. Used by their ..._wait
 * functions.
 */
#ifndef LOCAL_CRL_WAIT_H
#define LOCAL_CRL_WAIT_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/bits.h"
#include "util/clock.h"

#define CRL_WAIT_LOOKS 32 /* looks between two readings of the clock */

/** Wait in progress. */
struct crl_wait {
	uint64_t spin_end, end; /* ns; UINT64_MAX: without limit */
};

/** Begins a wait of at most timeout_ms; negative: without limit. */
static inline struct crl_wait crl_wait_begin(int timeout_ms, int32_t spin_us)
{
	uint64_t now = util_clock_ns();
	uint64_t end = timeout_ms < 0 ? UINT64_MAX : now + (uint64_t)timeout_ms * UTIL_NS_PER_MS;
	uint64_t spin_end = spin_us < 0 ? now : now + (uint64_t)spin_us * 1000;

	return (struct crl_wait){ .spin_end = spin_end < end ? spin_end : end, .end = end };
}

/** Returns true as soon as `ready` does, false after the time to spin. */
static inline bool crl_wait_spin(const struct crl_wait *wait, bool (*ready)(void *object),
				 void *object)
{
	while (!ready(object)) {
		if (util_clock_ns() >= wait->spin_end)
			return false;
		for (int i = 0; i < CRL_WAIT_LOOKS && !ready(object); i++)
			util_cpu_relax();
	}
	return true;
}

/** Returns the milliseconds until the end, rounded up, as poll(2) takes them. */
static inline int crl_wait_left(const struct crl_wait *wait)
{
	uint64_t ms, now;

	if (wait->end == UINT64_MAX)
		return -1;
	now = util_clock_ns();
	ms = now < wait->end ? (wait->end - now + UTIL_NS_PER_MS - 1) / UTIL_NS_PER_MS : 0;
	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/**
 * Sleeps until `fd` is readable. Returns 0, -ETIMEDOUT, or -EINTR after a signal. After the end it
 * returns -ETIMEDOUT even if `fd` is readable: others may keep it so without work.
 */
static inline int crl_wait_sleep(const struct crl_wait *wait, int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int left = crl_wait_left(wait), ret = poll(&pfd, 1, left);

	if (ret < 0)
		return -errno;
	return ret && left ? 0 : -ETIMEDOUT;
}

#endif
