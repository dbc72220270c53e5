/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* States of processes, whatever their names are. (util/proc.h) */
#include "util/proc.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

Test(proc, stopped_and_running_processes_differ)
{
	pid_t child = fork();
	int status;

	cr_assert_geq(child, 0);
	if (!child) {
		prctl(PR_SET_NAME, ") R (");
		raise(SIGSTOP);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
	cr_expect_eq(util_proc_state(child), 'T');
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(util_proc_state(child), '\0', "it is gone");
	cr_expect_eq(util_proc_state(getpid()), 'R');
}

Test(proc, numbers_of_no_process_have_no_state)
{
	cr_expect_eq(util_proc_state(0), '\0');
	cr_expect_eq(util_proc_state(-1), '\0');
}
