/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Place of this process in its job: see job.h. */
#include "util/job.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Rank among the processes of the job on this host, in the order of trust: Slurm's comes last,
 * because all processes of an mpirun that Slurm started inherit that of the daemon.
 */
static const char *const util_job_local_ranks[] = {
	"OMPI_COMM_WORLD_LOCAL_RANK", /* Open MPI, PRRTE */
	"PMIX_LOCAL_RANK",
	"MPI_LOCALRANKID",           /* MPICH's Hydra, Intel MPI */
	"MV2_COMM_WORLD_LOCAL_RANK", /* MVAPICH */
	"PALS_LOCAL_RANKID",         /* HPE Cray */
	"PMI_LOCAL_RANK",
	"JSM_NAMESPACE_LOCAL_RANK", /* IBM */
	"FLUX_TASK_LOCAL_ID",
	"SLURM_LOCALID",
};

/* Rank in the job, likewise. */
static const char *const util_job_ranks[] = {
	"OMPI_COMM_WORLD_RANK", "PMIX_RANK",      "PMI_RANK",     "MV2_COMM_WORLD_RANK",
	"PALS_RANKID",          "FLUX_TASK_RANK", "SLURM_PROCID",
};

int util_job_rank(void)
{
	for (size_t i = 0; i < sizeof(util_job_ranks) / sizeof(util_job_ranks[0]); i++) {
		const char *text = getenv(util_job_ranks[i]);
		char *end;
		long rank;

		if (!text || !isdigit((unsigned char)*text))
			continue;
		rank = strtol(text, &end, 10);
		if (!*end && rank <= INT_MAX)
			return (int)rank;
	}
	return -1;
}

void util_job_self(struct util_job_name *name)
{
	memset(name, 0, sizeof(*name));
	name->rank = util_job_rank();
	name->pid = getpid();
	if (gethostname(name->host, sizeof(name->host)) && errno != ENAMETOOLONG)
		name->host[0] = '\0';
	name->host[sizeof(name->host) - 1] = '\0'; /* a name of 64 characters is cut */
	for (char *c = name->host; *c; c++)
		if (!util_job_is_host_char(*c))
			*c = '_';
}

bool util_job_is_first(void)
{
	for (size_t i = 0; i < sizeof(util_job_local_ranks) / sizeof(util_job_local_ranks[0]);
	     i++) {
		const char *rank = getenv(util_job_local_ranks[i]);

		if (rank && *rank)
			return !strcmp(rank, "0");
	}
	return true;
}
