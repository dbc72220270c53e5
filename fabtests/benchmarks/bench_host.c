/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Services of the machine for benchmarks: a clock, a core, a priority, an instruction counter, and
 * a child process as second rank.
 *
 * None is required: without permission for real-time priority or for the counter a benchmark runs
 * and reports less. Real-time priority is used only while samples are taken, so that helper threads
 * of an MPI library can run during start-up and shutdown.
 */
#include "bench.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RT_LIMIT_S 20 /* A point takes well under a second. */

uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_pin(int core)
{
	cpu_set_t set;

	if (core < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("bench: sched_setaffinity");
}

/*
 * The kernel ends a rank after RT_LIMIT_S of processor time at real-time priority. Otherwise a rank
 * that polls for a peer that has ended would keep its core from every other process. Sleeping, even
 * for a moment, restarts that count.
 */
bool bench_realtime(int prio)
{
	struct sched_param param = { .sched_priority = prio };
	struct rlimit limit = { .rlim_cur = RT_LIMIT_S * 1000000, .rlim_max = RLIM_INFINITY };
	struct timespec moment = { .tv_nsec = 1000 };

	if (prio && setrlimit(RLIMIT_RTTIME, &limit))
		return false;
	if (!prio)
		nanosleep(&moment, NULL);
	return sched_setscheduler(0, prio ? SCHED_FIFO : SCHED_OTHER, &param) == 0;
}

int bench_insn_open(void)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = PERF_COUNT_HW_INSTRUCTIONS;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

uint64_t bench_insn_read(int fd)
{
	uint64_t count = 0;

	if (fd < 0 || read(fd, &count, sizeof(count)) != sizeof(count))
		return 0;
	return count;
}

/* Reaps a child that ended well, and exits if it did not. Async-signal-safe. */
static void child_gone(int sig)
{
	int status = 0;

	if (waitpid(-1, &status, WNOHANG) > 0 && status)
		_exit(EXIT_FAILURE);
}

pid_t bench_fork(void)
{
	pid_t child;

	signal(SIGCHLD, child_gone);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		signal(SIGCHLD, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	return child;
}

void bench_join(pid_t child)
{
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}
