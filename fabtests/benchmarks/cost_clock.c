/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What time is it while costs are counted?
 *
 * Protocols over datagrams decide by time: when an answer leaves alone, what counts as lost. Under
 * insn_count a message takes milliseconds, and on a busy machine anything may. So while messages
 * are counted, who asks for the time finds COST_LOOK_NS more than who asked before: it depends on
 * nothing but the program. This clock_gettime stands before libc's for every library that calls it
 * by that name, and calls it, so that it costs what it costs. Who reads the processor's counter
 * (UCX) is not reached; fabtests/scripts/cost compares the packets.
 */
#include "cost.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define COST_LOOK_NS 500u

static uint64_t last_ns; /* atomic: of all threads; it never goes back */
static bool stands;      /* atomic */

typedef int clock_fn(clockid_t id, struct timespec *now);

static int libc_clock(clockid_t id, struct timespec *now)
{
	static clock_fn *found;
	clock_fn *fn = __atomic_load_n(&found, __ATOMIC_RELAXED);
	void *sym;

	if (!fn) {
		sym = dlsym(RTLD_NEXT, "clock_gettime");
		memcpy(&fn, &sym, sizeof(fn));
		__atomic_store_n(&found, fn, __ATOMIC_RELAXED);
	}
	return fn(id, now);
}

/** The real time, or the last that anybody was told, if that is later. */
static uint64_t running_ns(const struct timespec *real)
{
	uint64_t now = (uint64_t)real->tv_sec * 1000000000u + (uint64_t)real->tv_nsec;
	uint64_t last = __atomic_load_n(&last_ns, __ATOMIC_RELAXED);

	while (last < now && !__atomic_compare_exchange_n(&last_ns, &last, now, true,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return last > now ? last : now;
}

void cost_clock_stop(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	__atomic_store_n(&stands, true, __ATOMIC_RELEASE);
}

void cost_clock_start(void)
{
	__atomic_store_n(&stands, false, __ATOMIC_RELEASE);
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	int ret = libc_clock(id, now);
	uint64_t ns;

	if (ret || id != CLOCK_MONOTONIC)
		return ret;
	if (__atomic_load_n(&stands, __ATOMIC_ACQUIRE))
		ns = __atomic_add_fetch(&last_ns, COST_LOOK_NS, __ATOMIC_RELAXED);
	else
		ns = running_ns(now);
	now->tv_sec = (time_t)(ns / 1000000000u);
	now->tv_nsec = (long)(ns % 1000000000u);
	return 0;
}
