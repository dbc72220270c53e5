/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a benchmark asks of the machine: a clock, a core, a priority, an instruction counter, and
 * for those that bring their own second rank, a child that does not outlive its parent.
 *
 * Nothing here is required: without permission for real-time priority or for the counter the
 * benchmark runs all the same and says less. Real-time priority is held only while samples are
 * taken, so that helper threads of an MPI library get through start-up and shutdown.
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

#define RT_LIMIT_S 20 /* one point takes well under a second */

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
 * A rank that spins on a peer that is gone would hold its core against everything else, the
 * tools that could end it included: the kernel ends it after RT_LIMIT_S. Sleeping, even for a
 * moment, restarts that count.
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

/* Async-signal-safe. A child that ended well is reaped; a child that did not takes us along. */
static void child_gone(int sig)
{
	int status = 0;

	(void)sig;
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
