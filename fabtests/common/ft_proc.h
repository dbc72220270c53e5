/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State of each process that the runner (ft_case.c) and the processes of a case (ft.c) share in
 * memory.
 */
#ifndef FT_PROC_H
#define FT_PROC_H

#include "ft.h"

#include <stdatomic.h>
#include <sys/types.h>

struct ft_shared {
	atomic_int pid[FT_PROCS_MAX];
	atomic_bool gone[FT_PROCS_MAX];  /* True once no process waits for it */
	atomic_bool ended[FT_PROCS_MAX]; /* the runner has reaped it */
};

void ft_proc_begin(struct ft *ft);
/** Returns the verdict of a case that came to its end, for the runner. */
int ft_proc_verdict(void);

static inline bool ft_proc_is_gone(const struct ft *ft, int rank)
{
	return ft->sock[rank] < 0 || (ft->shared && atomic_load(&ft->shared->gone[rank]));
}

static inline void ft_proc_mark_gone(struct ft *ft, int rank)
{
	if (ft->shared)
		atomic_store(&ft->shared->gone[rank], true);
}

static inline bool ft_proc_has_ended(const struct ft *ft, int rank)
{
	return atomic_load(&ft->shared->ended[rank]);
}

static inline pid_t ft_proc_pid(const struct ft *ft, int rank)
{
	return atomic_load(&ft->shared->pid[rank]);
}

#endif
