/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The user of a namespace without a map is no proof of anything: util/uid.h. */
#define _GNU_SOURCE
#include "util/uid.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns the exit status of a child that runs `child`. */
static int status_of(int (*child)(void))
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (!pid)
		_exit(child());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Returns 77 where the kernel permits no user namespace, 0 if the user is not known there. */
static int unmapped(void)
{
	if (unshare(CLONE_NEWUSER))
		return 77;
	return geteuid() != UTIL_UID_OVERFLOW || util_uid_is_known(geteuid());
}

Test(uid, this_user_is_known)
{
	cr_expect(util_uid_is_known(geteuid()));
	cr_expect(util_uid_is_known(0));
}

Test(uid, a_user_without_a_map_is_not)
{
	int status = status_of(unmapped);

	if (status == 77)
		cr_skip_test("no user namespace here");
	cr_expect_eq(status, 0);
}
