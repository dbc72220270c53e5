/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Barriers between a sleeper and those that wake it (crl_sleep.h). */
#include "local/crl_sleep.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
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

void crl_sleep_init(struct crl_sleep *sleep, _Atomic uint32_t *word)
{
	sleep->word = word;
	crl_sleep_publish(sleep, crl_sleep_register() ? 0 : CRL_SLEEP_FENCE);
}

/* Continues without membarrier(2). */
static void crl_sleep_use_fences(struct crl_sleep *sleep)
{
	struct timespec settle = { .tv_nsec = CRL_SLEEP_SETTLE_US * 1000 };

	crl_sleep_publish(sleep, sleep->value | CRL_SLEEP_FENCE);
	while (nanosleep(&settle, &settle))
		;
	atomic_thread_fence(memory_order_seq_cst);
}

void crl_sleep_barrier(struct crl_sleep *sleep)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!(sleep->value & CRL_SLEEP_FENCE) &&
	    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0))
		crl_sleep_use_fences(sleep);
}
