/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registration for membarrier(2): see membarrier.h. */
#include "util/membarrier.h"

#include <linux/membarrier.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Links of /proc/self/task beside those of its threads: "." and its name. */
#define UTIL_TASK_LINKS 2u

static bool util_membarrier_register(int command)
{
	return !syscall(SYS_membarrier, command, 0, 0);
}

bool util_membarrier_register_private(void)
{
	return util_membarrier_register(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

bool util_membarrier_register_global(void)
{
	return util_membarrier_register(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

static bool util_membarrier_is_cheap(void)
{
	struct stat task;

	return !stat("/proc/self/task", &task) && task.st_nlink == UTIL_TASK_LINKS + 1;
}

void util_membarrier_prepare(void)
{
	if (!util_membarrier_is_cheap())
		return;
	util_membarrier_register_private();
	util_membarrier_register_global();
}
