/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Environment of launchers: util/job.c. */
#include "util/job.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {
	"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK",
	"PALS_LOCAL_RANKID",          "SLURM_LOCALID",   "FLUX_TASK_LOCAL_ID",
};

#define NAME_CNT (sizeof(names) / sizeof(names[0]))

static void forget_launchers(void)
{
	for (size_t i = 0; i < NAME_CNT; i++)
		unsetenv(names[i]);
}

TestSuite(job, .init = forget_launchers);

Test(job, a_process_without_a_launcher_is_the_first)
{
	cr_expect(util_job_is_first());
	setenv("SLURM_LOCALID", "", 1);
	cr_expect(util_job_is_first());
}

Test(job, of_each_launchers_processes_on_a_host_one_is_the_first)
{
	for (size_t i = 0; i < NAME_CNT; i++) {
		setenv(names[i], "0", 1);
		cr_expect(util_job_is_first(), "%s", names[i]);
		setenv(names[i], "1", 1);
		cr_expect_not(util_job_is_first(), "%s", names[i]);
		setenv(names[i], "10", 1);
		cr_expect_not(util_job_is_first(), "%s", names[i]);
		unsetenv(names[i]);
	}
}

/* mpirun in a Slurm allocation: its daemon is Slurm's process 0 of the host. Its ranks are too. */
Test(job, the_innermost_launcher_decides)
{
	setenv("SLURM_LOCALID", "0", 1);
	setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3", 1);
	cr_expect_not(util_job_is_first());
	setenv("SLURM_LOCALID", "3", 1);
	setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
	cr_expect(util_job_is_first());
}

Test(job, the_rank_is_the_launchers_or_unknown)
{
	static const char *const ranks[] = {
		"OMPI_COMM_WORLD_RANK", "PMIX_RANK",      "PMI_RANK",    "MV2_COMM_WORLD_RANK",
		"PALS_RANKID",          "FLUX_TASK_RANK", "SLURM_PROCID"
	};
	const size_t cnt = sizeof(ranks) / sizeof(ranks[0]);

	for (size_t i = 0; i < cnt; i++)
		unsetenv(ranks[i]);
	cr_expect_eq(util_job_rank(), -1);
	for (size_t i = 0; i < cnt; i++) {
		setenv(ranks[i], "12", 1);
		cr_expect_eq(util_job_rank(), 12, "%s", ranks[i]);
		setenv(ranks[i], "x", 1);
		cr_expect_eq(util_job_rank(), -1, "%s", ranks[i]);
		setenv(ranks[i], "99999999999", 1);
		cr_expect_eq(util_job_rank(), -1, "%s", ranks[i]);
		unsetenv(ranks[i]);
	}
}

Test(job, a_process_knows_who_it_is_and_its_name_is_one_of_a_host)
{
	struct util_job_name name;

	setenv("OMPI_COMM_WORLD_RANK", "12", 1);
	memset(&name, 'x', sizeof(name));
	util_job_self(&name);
	cr_expect_eq(name.rank, 12);
	cr_expect_eq(name.pid, getpid());
	cr_assert_lt(strlen(name.host), sizeof(name.host));
	for (const char *c = name.host; *c; c++)
		cr_expect(util_job_is_host_char(*c), "%d", *c);
	for (int c = 0; c < 256; c++)
		cr_expect_eq(util_job_is_host_char((char)c),
			     (c < 128 && isalnum(c)) || c == '.' || c == '_' || c == '-', "%d", c);
}

/** Expects a host with a name of `len` characters to be known by as many as fit. */
static void expect_host(size_t len)
{
	struct util_job_name name;
	char host[65];

	memset(host, 'h', len);
	host[len] = '\0';
	cr_assert_eq(sethostname(host, len), 0);
	util_job_self(&name);
	cr_expect_eq(strlen(name.host), len < 63 ? len : 63, "%zu of %zu", strlen(name.host), len);
	cr_expect_eq(strspn(name.host, "h"), strlen(name.host));
}

Test(job, a_host_with_a_long_name_is_known_by_its_begin)
{
	if (unshare(CLONE_NEWUTS))
		cr_skip_test("needs root");
	expect_host(1);
	expect_host(62);
	expect_host(63);
	expect_host(64);
}
