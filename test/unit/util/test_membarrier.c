/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Processes of one thread register for membarrier(2), others do not: util/membarrier.h. */
#include "util/membarrier.h"

#include <criterion/criterion.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Returns whether the kernel runs barriers for this process: only for one that is registered. */
static bool is_registered(void)
{
	return !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

#define GET_REGISTRATIONS (1 << 9) /* of membarrier(2), from Linux 6.3 on */

/* Returns whether the kernel has the process registered for the global kind, or cannot tell. */
static bool may_be_registered_globally(void)
{
	long kinds = syscall(SYS_membarrier, GET_REGISTRATIONS, 0, 0);

	return kinds < 0 || kinds & MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
}

/* Returns whether a child process with `cnt` threads is registered after the call. */
static bool registers_with(unsigned cnt)
{
	pid_t pid = fork();
	pthread_t thread;
	int status;

	if (!pid) {
		if (is_registered())
			_exit(2);
		while (--cnt)
			if (pthread_create(&thread, NULL, wait_for_ever, NULL))
				_exit(3);
		util_membarrier_prepare();
		if (is_registered() && !may_be_registered_globally())
			_exit(4);
		_exit(is_registered());
	}
	cr_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	cr_assert_leq(WEXITSTATUS(status), 1);
	return WEXITSTATUS(status);
}

Test(membarrier, a_process_registers_while_it_has_one_thread)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) <= 0)
		cr_skip_test("the kernel has no membarrier(2)");
	cr_expect(registers_with(1));
	cr_expect_not(registers_with(2));
	cr_expect_not(registers_with(5));
}
