/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "util/job_name.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect_text(struct util_job_name name, const char *expected)
{
	char text[UTIL_JOB_TEXT_LEN];

	cr_expect_str_eq(util_job_text(&name, text), expected);
}

Test(job_name, the_text_of_an_identity_has_what_is_known)
{
	struct util_job_name all = { .rank = INT32_MAX, .pid = INT32_MAX };
	char text[UTIL_JOB_TEXT_LEN];

	expect_text((struct util_job_name){ 17, 4711, "node7" }, "rank 17 (node7, pid 4711)");
	expect_text((struct util_job_name){ 17, 4711, "" }, "rank 17 (pid 4711)");
	expect_text((struct util_job_name){ 0, 0, "node7" }, "rank 0 (node7)");
	expect_text((struct util_job_name){ 17, 0, "" }, "rank 17");
	expect_text((struct util_job_name){ -1, 4711, "node7" }, "pid 4711 on node7");
	expect_text((struct util_job_name){ -1, 4711, "" }, "pid 4711");
	expect_text((struct util_job_name){ -1, 0, "node7" }, "a process on node7");
	expect_text((struct util_job_name){ -1, 0, "" }, "");
	memset(all.host, 'h', sizeof(all.host) - 1);
	cr_expect_str_eq(strrchr(util_job_text(&all, text), 'h') + 1, ", pid 2147483647)");
}

Test(job_name, the_kernels_word_for_a_peers_number_goes_before_its_own)
{
	struct util_job_name stated = { 17, 4711, "node7" }, who = util_job_peer(&stated, 42);

	cr_expect(who.rank == 17 && who.pid == 42 && !strcmp(who.host, "node7"));
	cr_expect_eq(util_job_peer(&stated, 0).pid, 4711);
	who = util_job_peer(NULL, 42);
	cr_expect(who.rank == -1 && who.pid == 42 && !*who.host);
}
