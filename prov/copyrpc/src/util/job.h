/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Place of this process in its job, from the launcher's environment.
 *
 * Conditions of a host (a wrong parameter, a limit of the kernel) meet every process of a job that
 * runs there. UTIL_WARN_HOST reports them from one of these processes only.
 */
#ifndef UTIL_JOB_H
#define UTIL_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "util/log.h"

#define UTIL_JOB_HOST_LEN 64u

/** Identity of a process, for people. A peer may state any: nothing is decided by it. */
struct util_job_name {
	int32_t rank;                 /* -1: unknown */
	int32_t pid;                  /* in its own PID namespace; 0: unknown */
	char host[UTIL_JOB_HOST_LEN]; /* letters, digits and "._-", ended by 0; may be empty */
};

/** Fills in the rank, the number and the host of this process. */
void util_job_self(struct util_job_name *name);

/** Returns true if a host's name may contain this character. */
static inline bool util_job_is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

/**
 * Returns false if a launcher (Open MPI, MPICH, PALS, Flux, Slurm and others) says that this
 * process is not the first one of its job on this host; true for the first one, and without a
 * launcher.
 */
bool util_job_is_first(void);

/** Returns the rank of this process in its job, or -1 if no launcher states one. */
int util_job_rank(void);

/** Warns in the first process of the job on this host only. */
#define UTIL_WARN_HOST(subsys, ...)                                                                \
	do {                                                                                       \
		if (util_job_is_first())                                                           \
			UTIL_WARN(subsys, __VA_ARGS__);                                            \
	} while (0)

#endif
