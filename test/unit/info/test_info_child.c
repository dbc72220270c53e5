/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Children: output, log, exit status, death, and work without end. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info/info_child.h"

static int speak(void *arg, int out)
{
	dprintf(out, "to out: %s", (const char *)arg);
	fprintf(stderr, "to log");
	printf("to nowhere");
	return 7;
}

Test(info_child, output_and_log_are_captured)
{
	struct info_child child;

	cr_assert_eq(info_child_run(speak, "hello", INFO_CHILD_SECONDS, &child), 0);
	cr_expect(child.ended);
	cr_expect_eq(child.status, 7);
	cr_expect_str_eq(child.out, "to out: hello");
	cr_expect_eq(child.len, strlen(child.out));
	cr_expect_str_eq(child.log, "to log");
	info_child_fini(&child);
}

static int fill(void *arg, int out)
{
	static char bytes[300000];

	(void)arg;
	memset(bytes, 'x', sizeof(bytes));
	for (size_t done = 0; done < sizeof(bytes);) {
		ssize_t len = write(out, bytes + done, sizeof(bytes) - done);

		if (len < 0)
			return 1;
		done += (size_t)len;
	}
	return write(STDERR_FILENO, bytes, sizeof(bytes)) != sizeof(bytes);
}

Test(info_child, much_output_does_not_block_the_child)
{
	struct info_child child;

	cr_assert_eq(info_child_run(fill, NULL, INFO_CHILD_SECONDS, &child), 0);
	cr_expect(child.ended);
	cr_expect_eq(child.status, 0);
	cr_expect_eq(child.len, 300000);
	cr_expect_eq(strlen(child.log), 300000);
	info_child_fini(&child);
}

static int crash(void *arg, int out)
{
	(void)arg;
	(void)out;
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 0;
}

Test(info_child, a_crash_is_a_status)
{
	struct info_child child;

	cr_assert_eq(info_child_run(crash, NULL, INFO_CHILD_SECONDS, &child), 0);
	cr_expect(child.ended);
	cr_expect_eq(child.status, 128 + SIGSEGV);
	cr_expect_str_eq(child.out, "");
	info_child_fini(&child);
}

/* Leaves a process of its own behind, which keeps the output open. */
static int never(void *arg, int out)
{
	(void)arg;
	(void)out;
	fork();
	while (pause())
		;
	return 0;
}

Test(info_child, work_without_end_is_killed_with_its_children)
{
	struct info_child child;

	cr_assert_eq(info_child_run(never, NULL, 1, &child), 0);
	cr_expect_not(child.ended);
	cr_expect_eq(child.status, 128 + SIGKILL);
	info_child_fini(&child);
}

Test(info_child, a_program_that_is_missing_is_status_127)
{
	const char *const none[] = { "/no/such/program", NULL }, *const echo[] = { "echo", "a b",
										   NULL };
	struct info_child child;

	cr_assert_eq(info_child_exec(none, INFO_CHILD_SECONDS, &child), 0);
	cr_expect_eq(child.status, 127);
	info_child_fini(&child);
	cr_assert_eq(info_child_exec(echo, INFO_CHILD_SECONDS, &child), 0);
	cr_expect_eq(child.status, 0);
	cr_expect_str_eq(child.out, "a b\n");
	info_child_fini(&child);
}
