/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Identity of a process (crl_fork.h). The number stands in a page that the kernel clears in a
 * forked child (MADV_WIPEONFORK), however it was forked; the child takes the next number. The
 * process id would not do: it is used again, and a child may be process 1 of another namespace.
 */
#include "local/crl_fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_once_t crl_fork_once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t *crl_fork_word; /* 0: not numbered yet; NULL: there is no such page */
static _Atomic uint32_t crl_fork_last;  /* number given last, inherited by children */

static void crl_fork_map(void)
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	if (madvise(page, len, MADV_WIPEONFORK))
		munmap(page, len);
	else
		crl_fork_word = page;
}

uint32_t crl_fork_id(void)
{
	uint32_t next, id = 0;

	pthread_once(&crl_fork_once, crl_fork_map);
	if (!crl_fork_word)
		return (uint32_t)getpid();
	if (atomic_load(crl_fork_word))
		return atomic_load(crl_fork_word);
	next = atomic_fetch_add(&crl_fork_last, 1) + 1;
	return atomic_compare_exchange_strong(crl_fork_word, &id, next) ? next : id;
}
