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

/** Returns true as soon as `ready` does, false after spin_us. */
static inline bool crl_wait_spin(bool (*ready)(void *object), void *object, int32_t spin_us)
{
	uint64_t end;

	if (ready(object))
		return true;
	if (spin_us < 0)
		return false;
	end = util_clock_ns() + (uint64_t)spin_us * 1000;
	do {
		for (int i = 0; i < CRL_WAIT_LOOKS; i++) {
			if (ready(object))
				return true;
			util_cpu_relax();
		}
	} while (util_clock_ns() < end);
	return false;
}

/** Sleeps until `fd` is readable. Returns 0, also after a signal, or -ETIMEDOUT. */
static inline int crl_wait_sleep(int fd, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, timeout_ms) ? 0 : -ETIMEDOUT;
}

#endif
