/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Early registration for membarrier(2): see membarrier.h. */
#include "util/membarrier.h"

#include <linux/membarrier.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Links of /proc/self/task beside those of its threads: "." and its name. */
#define UTIL_TASK_LINKS 2u

static bool util_membarrier_is_cheap(void)
{
	struct stat task;

	return !stat("/proc/self/task", &task) && task.st_nlink == UTIL_TASK_LINKS + 1;
}

void util_membarrier_prepare(void)
{
	if (!util_membarrier_is_cheap())
		return;
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}
