/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Barriers between a sleeper and those that wake it (crl_sleep.h). */
#include "local/crl_sleep.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_once_t crl_sleep_once = PTHREAD_ONCE_INIT;
static bool crl_sleep_registered;

static void crl_sleep_register_once(void)
{
	crl_sleep_registered =
		!syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

bool crl_sleep_register(void)
{
	pthread_once(&crl_sleep_once, crl_sleep_register_once);
	return crl_sleep_registered;
}

void crl_sleep_barrier(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (crl_sleep_register())
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}
