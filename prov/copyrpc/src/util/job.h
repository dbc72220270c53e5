/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Place of this process in its job, from the launcher's environment.
 *
 * Conditions of a host (a wrong parameter, a limit of the kernel) meet every process of a job that
 * runs there. UTIL_WARN_HOST reports them from one of these processes only.
 *
 * The reason of an error is reported by each process: the launcher ends the first one as soon as
 * another one has failed, perhaps before it reports anything.
 */
#ifndef UTIL_JOB_H
#define UTIL_JOB_H

#include <stdbool.h>

#include "util/job_name.h"
#include "util/log.h"

/** Fills in the rank, the number and the host of this process. */
void util_job_self(struct util_job_name *name);

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

/** Likewise, and at most once a minute per call site. */
#define UTIL_WARN_HOST_SELDOM(subsys, ...)                                                         \
	do {                                                                                       \
		if (util_job_is_first())                                                           \
			UTIL_WARN_SELDOM(subsys, __VA_ARGS__);                                     \
	} while (0)

#endif
