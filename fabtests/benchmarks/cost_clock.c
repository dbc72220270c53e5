/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Clock for counted runs.
 *
 * Protocols over datagrams decide by time: when a response leaves on its own, and when a packet
 * counts as lost. Under insn_count a message takes milliseconds, and on a busy machine the time
 * varies. While messages are counted, each read of the clock therefore returns COST_LOOK_NS more
 * than the previous one, so that it depends on the program only. The clock_gettime of this file is
 * found before libc's by every library that calls it by name, and calls libc's, so that its cost is
 * included. The processor's counter (read by UCX and by copyrpc's datagrams) traps in the counted
 * thread and advances by the same step. It costs its own instruction only, because instructions of
 * a handler are not counted.
 */
#include "cost.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>

#define COST_LOOK_NS 500u
/*
 * Real time that passes before both clocks stop, so that a calibration of one by the other can end
 */
#define COST_REST_NS 20000000

static uint64_t last_ns; /* atomic: of all threads; never decreases */
static bool stands;      /* atomic */

static __thread bool asks_libc; /* A read of the counter that calls libc's clock is one read */

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

/** Returns the real time, or the last value returned to any thread, if that is later. */
static uint64_t running_ns(const struct timespec *real)
{
	uint64_t now = (uint64_t)real->tv_sec * 1000000000u + (uint64_t)real->tv_nsec;
	uint64_t last = __atomic_load_n(&last_ns, __ATOMIC_RELAXED);

	while (last < now && !__atomic_compare_exchange_n(&last_ns, &last, now, true,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return last > now ? last : now;
}

static uint64_t look(void)
{
	return __atomic_add_fetch(&last_ns, COST_LOOK_NS, __ATOMIC_RELAXED);
}

#if defined(__x86_64__)
#include <x86intrin.h>

/* Processor counter of the thread that stopped the clock. */
static uint64_t stood_ns, stood_ticks; /* values at the stop */
static double ticks_per_ns;
static struct sigaction chained;

/*
 * Returns the length of the trapped instruction: 0F 31 (rdtsc), or 0F 01 F9 (rdtscp), which also
 * returns the processor. Returns 0 for another one.
 */
static int counter_insn_len(const uint8_t *insn)
{
	if (insn[0] != 0x0F)
		return 0;
	return insn[1] == 0x31 ? 2 : insn[1] == 0x01 && insn[2] == 0xF9 ? 3 : 0;
}

/* Passes the signal to the model's handler, which may read the clock itself. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	if (!(chained.sa_flags & SA_SIGINFO))
		cost_die("SIGSEGV", "it is nobody's");
	chained.sa_sigaction(number, info, context);
}

static void handle(int number, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	int len = info->si_code == SI_KERNEL ? counter_insn_len((void *)regs[REG_RIP]) : 0;
	uint64_t ticks;

	if (!len) {
		pass_on(number, info, context);
		return;
	}
	ticks = stood_ticks +
		(uint64_t)((double)((asks_libc ? last_ns : look()) - stood_ns) * ticks_per_ns);
	regs[REG_RAX] = (greg_t)(ticks & UINT32_MAX);
	regs[REG_RDX] = (greg_t)(ticks >> 32);
	if (len == 3)
		regs[REG_RCX] = 0;
	regs[REG_RIP] += len;
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Makes the counter advance by reads, from stood_ns on. */
static void counter_stop(void)
{
	const struct timespec rest = { .tv_nsec = COST_REST_NS };
	struct sigaction ours = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER };
	uint64_t ns = monotonic_ns(), ticks = __rdtsc();

	nanosleep(&rest, NULL);
	stood_ticks = __rdtsc();
	stood_ns = monotonic_ns();
	ticks_per_ns = (double)(stood_ticks - ticks) / (double)(stood_ns - ns);
	if (sigaction(SIGSEGV, &ours, &chained) || prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
		cost_die("the processor's counter", "it cannot be stopped");
}

static void counter_start(void)
{
	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	sigaction(SIGSEGV, &chained, NULL);
}

#else /* No code reads it */

static void counter_stop(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
}

static void counter_start(void)
{
}

#endif

void cost_clock_stop(void)
{
	counter_stop();
	__atomic_store_n(&stands, true, __ATOMIC_RELEASE);
}

void cost_clock_start(void)
{
	counter_start();
	__atomic_store_n(&stands, false, __ATOMIC_RELEASE);
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	uint64_t ns;
	int ret;

	asks_libc = true;
	ret = libc_clock(id, now);
	asks_libc = false;
	if (ret || id != CLOCK_MONOTONIC)
		return ret;
	if (__atomic_load_n(&stands, __ATOMIC_ACQUIRE))
		ns = look();
	else
		ns = running_ns(now);
	now->tv_sec = (time_t)(ns / 1000000000u);
	now->tv_nsec = (long)(ns % 1000000000u);
	return 0;
}
